//! `underfire sim`: the simulated server alone.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use tokio::io::AsyncReadExt;
use tokio::signal::unix::{SignalKind, signal};

use super::Exit;
use super::console::{print, say};
use crate::sim::fault::{FaultRule, GRAMMAR};
use crate::sim::{Exposition, Settings, run_blocking};
use crate::units::{NS_PER_S, Nanos, UnitError};

/// Arguments of `sim`.
#[derive(Debug, Args)]
pub(super) struct SimArgs {
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    host: std::net::IpAddr,
    /// Port to listen on; 0 takes a free one
    #[arg(long, default_value_t = 8000)]
    port: u16,
    /// Log what was really sent, a CSV row per request
    #[arg(long, value_name = "FILE.csv")]
    truth: Option<PathBuf>,
    /// Seed of jitter, lengths and words
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Time to first token of an empty prompt
    #[arg(long, value_name = "D", value_parser = duration)]
    prefill_base: Option<Nanos>,
    /// Time to first token added by each prompt token
    #[arg(long, value_name = "D", value_parser = duration)]
    prefill_per_tok: Option<Nanos>,
    /// Time per decode step of a lone stream
    #[arg(long, value_name = "D", value_parser = duration)]
    step_base: Option<Nanos>,
    /// Time added to a decode step by each running stream
    #[arg(long, value_name = "D", value_parser = duration)]
    step_per_stream: Option<Nanos>,
    /// Tokens a second in all, however many streams share them (instead of the two above)
    #[arg(long, value_name = "N", conflicts_with_all = ["step_base", "step_per_stream"],
        value_parser = clap::value_parser!(u64).range(1..=NS_PER_S))]
    output_tok_s: Option<u64>,
    /// Streams that run at a time; more wait in a queue
    #[arg(long, value_name = "N")]
    max_running: Option<usize>,
    /// Requests that may wait; more are refused with 503
    #[arg(long, value_name = "N")]
    max_queued: Option<usize>,
    /// Longest prompt plus completion
    #[arg(long, value_name = "N")]
    max_model_len_tok: Option<u64>,
    /// Random share of every time, 0 to 1
    #[arg(long, value_name = "SHARE")]
    jitter: Option<f64>,
    /// Mean of answers that end by themselves (default: every answer runs to its `max_tokens`;
    /// of those that name none, the mean is 211)
    #[arg(long, value_name = "N")]
    mean_output_tok: Option<f64>,
    /// Names under which /metrics tells of the server
    #[arg(long, value_name = "NAMES", default_value = "vllm",
        value_parser = PossibleValuesParser::new(Exposition::WORDS).map(Exposition::of))]
    metrics: Exposition,
    /// Do wrong on purpose, as in refuse@rows=3,7 or stall=2s@rate=1% (repeatable; --help lists all)
    #[arg(long, value_name = "FAULT", long_help = GRAMMAR)]
    fault: Vec<FaultRule>,
    /// End when stdin closes
    #[arg(long, hide = true)]
    until_stdin_closes: bool,
}

impl SimArgs {
    fn settings(&self) -> Settings {
        let default = Settings::default();
        // A step of r streams then takes r times as long as one token is due.
        let shared = self.output_tok_s.map(|tok_s| Nanos(NS_PER_S / tok_s));
        Settings {
            prefill_base: self.prefill_base.unwrap_or(default.prefill_base),
            prefill_per_tok: self.prefill_per_tok.unwrap_or(default.prefill_per_tok),
            step_base: self.step_base.or(shared.map(|_| Nanos::ZERO)).unwrap_or(default.step_base),
            step_per_stream: self.step_per_stream.or(shared).unwrap_or(default.step_per_stream),
            max_running: self.max_running.unwrap_or(default.max_running),
            max_queued: self.max_queued.unwrap_or(default.max_queued),
            max_model_len_tok: self.max_model_len_tok.unwrap_or(default.max_model_len_tok),
            jitter: self.jitter.unwrap_or(default.jitter),
            mean_output_tok: self.mean_output_tok.or(default.mean_output_tok),
            seed: self.seed,
            metrics: self.metrics,
            faults: self.fault.clone().into(),
            ..default
        }
    }
}

/// Serves until interrupted.
pub(super) fn sim(args: &SimArgs) -> anyhow::Result<Exit> {
    let settings = args.settings();
    settings.check()?;
    if !args.until_stdin_closes {
        say(&format!(
            "simulated server: {} streams at a time, {:.0} tok/s at the most; Ctrl-C ends it",
            settings.max_running,
            settings.capacity_tok_s()
        ));
    }
    let address = SocketAddr::new(args.host, args.port);
    let on_ready = |address: SocketAddr| print(&format!("listening on http://{address}\n"));
    run_blocking(settings, address, args.truth.clone(), on_ready, ended(args.until_stdin_closes))
        .context("the simulated server failed")?;
    Ok(Exit::Ok)
}

/// Resolves when the server should end.
async fn ended(until_stdin_closes: bool) {
    if until_stdin_closes {
        // An interrupt at the terminal reaches the whole process group; the parent decides.
        let _ignored = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
        let mut byte = [0];
        while tokio::io::stdin().read(&mut byte).await.is_ok_and(|read| read > 0) {}
        return;
    }
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

fn duration(text: &str) -> Result<Nanos, UnitError> {
    Nanos::parse_duration(text)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Alone {
        #[command(flatten)]
        sim: SimArgs,
    }

    #[test]
    fn settings_come_back_from_their_arguments() {
        let settings = Settings {
            prefill_base: Nanos(1),
            prefill_per_tok: Nanos(2),
            step_base: Nanos(3),
            step_per_stream: Nanos(4),
            max_running: 5,
            max_queued: 6,
            max_model_len_tok: 7,
            jitter: 0.25,
            seed: 8,
            ..Settings::default()
        };
        let words = std::iter::once("sim".to_owned()).chain(settings.arguments());
        assert_eq!(Alone::parse_from(words).sim.settings(), settings);
    }
}
