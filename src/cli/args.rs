//! What `underfire run` takes.

use std::path::PathBuf;

use clap::Args;

use super::content_args::ContentArgs;
use super::reach_args::ReachArgs;
use crate::client::dialect::Api;
use crate::metrics::abort::AbortRule;
use crate::record::ReaderPace;
use crate::replay::drain::Drain;
use crate::schedule::rate::{Dequantise, Method, Rate};
use crate::trace::read::{Failed, Format, TimeUnit};
use crate::units::{Nanos, Speed, UnitError};

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// A workload file (.toml), a trace file (.csv, .jsonl, also .gz and .zst), or - for stdin
    pub source: PathBuf,

    #[command(flatten)]
    pub(super) target: TargetArgs,
    #[command(flatten)]
    pub(super) reach: ReachArgs,
    #[command(flatten)]
    pub(super) reading: ReadArgs,
    #[command(flatten)]
    pub(super) shape: ShapeArgs,
    #[command(flatten)]
    pub(super) content: ContentArgs,
    #[command(flatten)]
    pub(super) limits: LimitArgs,
    #[command(flatten)]
    pub(super) judgement: JudgementArgs,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Judgement")]
pub(super) struct JudgementArgs {
    /// Stop sending when more than that share of the requests that ended in the last so-much time
    /// failed: `error_rate>5%/30s` (repeatable)
    #[arg(long, value_name = "RULE")]
    pub(super) abort_on: Vec<AbortRule>,
    /// Stop sending when so many connections in a row could not be made; 0: never
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(super) max_refused: u64,
    /// Exit with 3 where this client was the bottleneck
    #[arg(long)]
    pub(super) strict: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Target")]
pub(super) struct TargetArgs {
    /// Server, as `http[s]://host:port[/base]`; several share the load, by session, else in turn.
    /// Without any the built-in simulated server is started
    #[arg(long)]
    pub(super) url: Vec<String>,
    /// Model name (default: the first that /v1/models lists)
    #[arg(long)]
    pub(super) model: Option<String>,
    /// API to speak: chat or completions
    #[arg(long, default_value = "chat", value_name = "API")]
    pub(super) api: Api,
    /// Do not ask for token usage (for gateways that refuse `stream_options`)
    #[arg(long)]
    pub(super) no_usage: bool,
    /// Ask the server to ignore the end-of-sequence token; a shorter answer is then outcome `short`
    #[arg(long)]
    pub(super) ignore_eos: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Source")]
pub(super) struct ReadArgs {
    /// Format of the trace, where its content misleads: native, azure, burstgpt, mooncake, timed-trace,
    /// bailian, ragpulse, weka, tracelab, tracelab-replay, lengths, otel, litellm, dynamo, sglang
    #[arg(long)]
    pub(super) format: Option<Format>,
    /// Unit of the trace's time stamps: s, ms, us, ns (default: the format's own)
    #[arg(long)]
    pub(super) time_unit: Option<TimeUnit>,
    /// Tokens per prefix block (default: the format's own)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) block_tok: Option<u32>,
    /// Rows recorded with no output: drop (and count) or keep
    #[arg(long, default_value = "drop", value_name = "WHAT")]
    pub(super) failed: Failed,
    /// Skip the validating pass; an inversion or a bad row then ends the sending
    #[arg(long)]
    pub(super) assume_sorted: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Shape")]
pub(super) struct ShapeArgs {
    /// Replay X times as fast as recorded
    #[arg(long, value_name = "X", default_value = "1", value_parser = Speed::parse,
          conflicts_with = "rate")]
    pub(super) speed: Speed,
    /// Send R requests a second, by the method of --scale; rows without times of their own arrive so
    #[arg(long, value_name = "R", conflicts_with = "concurrency")]
    pub(super) rate: Option<Rate>,
    /// How --rate is brought about: compress (time runs faster or slower), thin (sessions are left out),
    /// clone (sent several times at once), per-client (each class by itself)
    #[arg(
        long,
        value_name = "METHOD",
        default_value = "compress",
        requires_if("thin", "rate"),
        requires_if("clone", "rate"),
        requires_if("per-client", "rate")
    )]
    pub(super) scale: Method,
    /// What becomes of rows of equal, rounded times: none (sent at once) or uniform (spread)
    #[arg(long, value_name = "HOW", default_value = "none")]
    pub(super) dequantise: Dequantise,
    /// Leave out sessions that start before this trace time
    #[arg(long, value_name = "T", value_parser = duration)]
    pub(super) from: Option<Nanos>,
    /// Leave out sessions that start at this trace time or later
    #[arg(long, value_name = "T", value_parser = duration)]
    pub(super) to: Option<Nanos>,
    /// Shorten longer gaps between rows to this (in replayed time, after speed)
    #[arg(long, value_name = "D", value_parser = duration)]
    pub(super) max_gap: Option<Nanos>,
    /// Send at most this many rows
    #[arg(long, value_name = "N")]
    pub(super) limit: Option<u64>,
    /// Send rows due before this (in replayed time)
    #[arg(long, value_name = "D", value_parser = duration)]
    pub(super) duration: Option<Nanos>,
    /// Replay the shaped source N times, end to end; --limit and --duration hold for each (in the closed
    /// loop --duration holds for all together)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(super) repeat: u64,
    /// Closed loop: keep N requests in flight instead of following the schedule
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) concurrency: Option<u32>,
    /// Keep at most N requests in flight: rows that find no room leave later, their latency counts from
    /// when they were due, and the wait shows as lag
    #[arg(long, value_name = "N", conflicts_with = "concurrency",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) max_in_flight: Option<u32>,
    /// Cut prompts to N tokens
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_input_tok: Option<u32>,
    /// Cut completions to N tokens
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_output_tok: Option<u32>,
    /// Seed of everything that is drawn at random
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) seed: u64,
    /// Words mixed into the prompts, so that no other run has filled the prefix cache: TEXT, run
    /// (another in every run) or none
    #[arg(long, value_name = "TEXT", default_value = "run")]
    pub(super) salt: String,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Window and timeouts")]
pub(super) struct LimitArgs {
    /// Rows due in the first D are warm-up: sent and recorded, not measured
    #[arg(long, value_name = "D", default_value = "0s", value_parser = duration)]
    pub(super) warmup: Nanos,
    /// Follow streams for D after the last due row, or `unlimited` (default: until no open stream
    /// has received a byte for 60 s)
    #[arg(long, value_name = "D", value_parser = drain)]
    pub(super) drain: Option<Drain>,
    /// Limit on connecting
    #[arg(long, value_name = "D", default_value = "10s", value_parser = time_limit)]
    pub(super) connect_timeout: Nanos,
    /// Limit from send to first token (default: none)
    #[arg(long, value_name = "D", value_parser = time_limit)]
    pub(super) first_token_timeout: Option<Nanos>,
    /// Limit between two arrivals of bytes (default: none)
    #[arg(long, value_name = "D", value_parser = time_limit)]
    pub(super) idle_timeout: Option<Nanos>,
    /// Limit on a whole request (default: none)
    #[arg(long, value_name = "D", value_parser = time_limit)]
    pub(super) timeout: Option<Nanos>,
    /// Send a row again that failed before its first token in a way that may pass (no connection, 408,
    /// 429, 5xx), up to N times: after `Retry-After`, else after 0.5 s, 1 s, 2 s … Its latency counts from
    /// when it was due, limits from its first send
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=100))]
    pub(super) retries: u32,
    /// Reader for `stall_ms`: one who reads V tokens a second from the first token on
    #[arg(long, value_name = "V", default_value = "20", value_parser = ReaderPace::parse)]
    pub(super) reader_pace: ReaderPace,
    /// Threads that send and receive (default: one per core)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) workers: Option<u16>,
    /// Connections to dial before the first row (default: in a closed loop one a slot, else none)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub(super) predial: Option<u32>,
    /// Stamp arrivals by our own clock alone, not by the kernel's
    #[arg(long)]
    pub(super) no_rx_time: bool,
    /// Before the first row, measure this client's own error here for a few seconds, at the plan's rate
    /// and against a built-in server, and show it beside the figures
    #[arg(long)]
    pub(super) calibrate: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(super) struct OutputArgs {
    /// Show the plan and send nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Write the plan row by row
    #[arg(long, value_name = "FILE.csv")]
    pub(super) plan: Option<PathBuf>,
    /// Write into exactly this folder, which must not hold a run
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Name of the run folder below results/ (default: the source's)
    #[arg(long)]
    pub(super) name: Option<String>,
    /// Write a line per token event to chunks.csv
    #[arg(long)]
    pub(super) chunks: bool,
    /// A label for run.json (repeatable)
    #[arg(long, value_name = "K=V", value_parser = label)]
    pub(super) label: Vec<(String, String)>,
    /// The summary as JSON to stdout; what people read goes to stderr
    #[arg(long)]
    pub(super) json: bool,
    /// No progress, no notes, no summary; warnings and errors only
    #[arg(long)]
    pub(super) quiet: bool,
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write it as KEY=VALUE".to_owned()),
    }
}

fn duration(text: &str) -> Result<Nanos, UnitError> {
    Nanos::parse_duration(text)
}

/// A time that something may take.
fn time_limit(text: &str) -> Result<Nanos, String> {
    match duration(text).map_err(|error| error.to_string())? {
        Nanos::ZERO => Err("a limit of no time lets nothing through; give a longer one".to_owned()),
        limit => Ok(limit),
    }
}

fn drain(text: &str) -> Result<Drain, UnitError> {
    match text {
        "unlimited" => Ok(Drain::Unlimited),
        text => duration(text).map(Drain::After),
    }
}
