//! Everything that decides a run, as plain data with defaults: what `run.json` says was asked for is
//! this value, serialised.
//!
//! Deliberately absent: arguments as typed (see [`crate::cli`]), and anything that is found out: the
//! plan, the servers, the prompts (see [`super::Prepared`]).

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::metrics::abort::AbortRule;
use crate::record::ReaderPace;
use crate::redact::redact_url;
use crate::replay::drain::Drain;
use crate::schedule::Shape;
use crate::schedule::rate::{Dequantise, Method, Rate};
use crate::server::ServerSettings;
use crate::sim;
use crate::trace::read::ReadOptions;
use crate::units::Nanos;

/// A run, as asked for. The default is a minute of nothing: give it a `source`, and a `target` where the
/// requests are not for the simulated server in virtual time.
///
/// Serialised it holds no key, no header and no prompt.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Settings {
    /// A workload file (`.toml`), a trace file or folder, or `-` for stdin.
    pub source: PathBuf,
    /// How the trace is read.
    pub reading: ReadOptions,
    /// When rows leave.
    pub schedule: ScheduleSettings,
    /// Where requests go.
    pub target: Target,
    /// What is wished of the servers.
    pub server: ServerSettings,
    /// What requests say.
    pub content: ContentSettings,
    /// What is measured and for how long things are waited for.
    pub limits: LimitSettings,
    /// When the run stops by itself.
    pub judgement: JudgementSettings,
    /// What is kept of it.
    pub output: OutputSettings,
}

/// When rows leave.
#[derive(Clone, Debug, Serialize)]
pub struct ScheduleSettings {
    /// Window, speed, gap cap and limits.
    #[serde(flatten)]
    pub shape: Shape,
    /// Requests a second, brought about by `scale`; in the place of a speed.
    pub rate: Option<Rate>,
    /// How the rate is brought about.
    pub scale: Method,
    /// What becomes of rows of equal, rounded times.
    pub dequantise: Dequantise,
    /// The shaped source is replayed so many times, end to end.
    pub repeat: u64,
    /// Closed loop: so many requests in flight, in the place of the schedule.
    pub concurrency: Option<u32>,
    /// At most so many requests in flight; what finds no room leaves later.
    pub max_in_flight: Option<u32>,
    /// Of everything that is drawn at random.
    pub seed: u64,
}

impl Default for ScheduleSettings {
    fn default() -> Self {
        Self {
            shape: Shape::default(),
            rate: None,
            scale: Method::default(),
            dequantise: Dequantise::default(),
            repeat: 1,
            concurrency: None,
            max_in_flight: None,
            seed: 0,
        }
    }
}

/// Where requests go.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// Servers, as `http[s]://host:port[/base]`; several share the load.
    Servers(#[serde(serialize_with = "redacted")] Vec<String>),
    /// The simulated server on a port of its own, as a process: `program sim …`.
    Simulated {
        /// The program `underfire`.
        program: PathBuf,
    },
    /// The simulated server in memory and in virtual time: an hour takes seconds, and every figure is
    /// exact. Options that are about a network or a machine have no effect.
    Virtual(sim::Settings),
}

impl Default for Target {
    fn default() -> Self {
        Self::Virtual(sim::Settings::default())
    }
}

fn redacted<S: Serializer>(urls: &[String], out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(urls.iter().map(|url| redact_url(url)))
}

/// What requests say.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ContentSettings {
    /// Real prompts for the rows, in turn.
    pub prompts: Option<PathBuf>,
    /// Take them in an order drawn from the seed.
    pub shuffle_prompts: bool,
    /// The same prompt for every row. Never serialised.
    #[serde(skip)]
    pub prompt: Option<String>,
    /// JSON object merged into every body. Never serialised: it may hold words.
    #[serde(skip)]
    pub extra: Option<String>,
    /// Keep what answers say in this file.
    pub save_text: Option<PathBuf>,
    /// The model's own `tokenizer.json`.
    pub tokenizer: Option<PathBuf>,
    /// Requests sent before the first row is due.
    pub prime: Option<u32>,
    /// Mixed into the prompts, so that no other run has filled the prefix cache.
    pub salt: Salt,
    /// Cut prompts and completions that are together too long for the server.
    pub clip_to_server: bool,
}

/// What is mixed into the prompts of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Salt {
    /// Another one in every run.
    #[default]
    Run,
    /// Nothing.
    None,
    /// This text.
    Text(String),
}

/// What is measured, and for how long things are waited for.
#[derive(Clone, Debug, Serialize)]
pub struct LimitSettings {
    /// Rows due earlier are warm-up: sent and recorded, not measured.
    pub warmup: Nanos,
    /// How long streams are followed after the last due row.
    pub drain: Drain,
    /// Limit on connecting.
    pub connect_timeout: Nanos,
    /// Limit from send to first token.
    pub first_token_timeout: Option<Nanos>,
    /// Limit between two arrivals of bytes.
    pub idle_timeout: Option<Nanos>,
    /// Limit on a whole request.
    pub timeout: Option<Nanos>,
    /// How often a row that failed before its first token is sent again.
    pub retries: u32,
    /// The reader whose waits `stall_ms` tells of.
    pub reader_pace: ReaderPace,
    /// Threads that send and receive; `None`: one per core.
    pub workers: Option<u16>,
    /// Connections dialled before `t0`; `None`: in a closed loop one a slot, else none.
    pub predial: Option<u32>,
    /// Have the kernel stamp arrivals.
    pub rx_time: bool,
    /// Measure this client's own error before the first row, against the simulated server of this
    /// program (`underfire`).
    pub calibrate_with: Option<PathBuf>,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            warmup: Nanos::ZERO,
            drain: Drain::default(),
            connect_timeout: Nanos::from_secs(10),
            first_token_timeout: None,
            idle_timeout: None,
            timeout: None,
            retries: 0,
            reader_pace: ReaderPace::default(),
            workers: None,
            predial: None,
            rx_time: true,
            calibrate_with: None,
        }
    }
}

/// When the run stops by itself.
#[derive(Clone, Debug, Serialize)]
pub struct JudgementSettings {
    /// Sending stops when one of these is broken.
    pub abort_on: Vec<AbortRule>,
    /// Sending stops when so many connections in a row could not be made; 0: never.
    pub max_refused: u64,
}

impl Default for JudgementSettings {
    fn default() -> Self {
        Self { abort_on: Vec::new(), max_refused: 100 }
    }
}

/// What is kept of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OutputSettings {
    /// Where its files go.
    pub folder: FolderSettings,
    /// The plan, row by row.
    pub plan: Option<PathBuf>,
    /// A line per token event in `chunks.csv`.
    pub chunks: bool,
    /// Metrics pages, and whether any is read.
    pub metrics: MetricsPages,
    /// Labels for `run.json`.
    #[serde(skip)]
    pub labels: BTreeMap<String, String>,
    /// The command line for `run.json`, without the program.
    #[serde(skip)]
    pub command: Vec<String>,
}

/// Where the files of a run go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FolderSettings {
    /// Nowhere: there are only the figures.
    #[default]
    None,
    /// Into exactly this folder, which must not hold a run.
    At(PathBuf),
    /// Into `results/NAME-UTC`; `None`: the name of the source.
    Named(Option<String>),
}

/// Whose pages are read while the run lasts, to hold the server's count against the run's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricsPages {
    /// The servers' own, where they have any.
    #[default]
    Own,
    /// None.
    Off,
    /// These.
    Given(#[serde(serialize_with = "redacted")] Vec<String>),
}

impl Settings {
    /// The same for `run.json`.
    #[must_use]
    pub fn manifest(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}
