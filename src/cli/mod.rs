//! The commands: arguments in, library call, words out. One file per command.
//!
//! Deliberately absent: anything that computes. A command parses what was typed, calls the rooms,
//! and prints. Data goes to stdout, all else to stderr; a closed pipe is no error.

mod args;
mod ask;
mod body_keys;
mod calibrate;
mod calibration;
mod calibration_course;
mod calibration_words;
mod client_watch;
mod console;
mod content_args;
mod fidelity;
mod link_args;
mod live;
mod predial;
mod prompt_fit;
mod prompts;
mod rating;
mod reach;
mod reach_args;
mod report;
mod results;
mod run;
mod scraping;
mod server;
mod server_count;
mod sim;
mod simulated;
mod teller;
mod text_count;
mod trace;
mod traffic;
mod truth;
mod watch;
mod watch_words;
mod watched;

use anyhow::Context;
use clap::{Parser, Subcommand};

use crate::machine::disk;

pub use args::RunArgs;
pub use console::complain;

/// Open-loop traffic replay for LLM servers.
#[derive(Debug, Parser)]
#[command(version, about, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Replay a workload (.toml) or a trace against a server, and write what happened as CSV
    Run(Box<RunArgs>),
    /// Make summary.csv and the console summary again from a run's files
    Report(report::ReportArgs),
    /// Measure the client's own error on this machine, against the built-in server of known truth
    Calibrate(Box<calibrate::CalibrateArgs>),
    /// Show tok/s and queue of a running server from its /metrics; no load is sent
    Watch(Box<watch::WatchArgs>),
    /// Look at a trace, find its faults, or make another file of it
    Trace(Box<trace::TraceArgs>),
    /// Run the simulated server alone
    Sim(Box<sim::SimArgs>),
}

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It ran.
    Ok = 0,
    /// Stopped by a rule of the user's: `--abort-on`, `--max-refused`.
    Stopped = 1,
    /// Usage, input or I/O.
    Usage = 2,
    /// What was asked cannot be answered.
    CannotAnswer = 3,
    /// No request succeeded.
    NothingSucceeded = 4,
    /// Interrupted; partial results are written and marked.
    Interrupted = 130,
}

/// Carries out a command. `quit` ends the process at once, for a second interrupt.
pub fn dispatch(cli: Cli, quit: fn(Exit) -> !) -> anyhow::Result<Exit> {
    disk::outlive_file_limit().context("cannot set up signals")?;
    match cli.command {
        Command::Run(args) => run::run(&args, quit),
        Command::Report(args) => report::report(&args),
        Command::Calibrate(args) => calibrate::calibrate(&args, quit),
        Command::Watch(args) => watch::watch(&args),
        Command::Trace(args) => trace::trace(&args),
        Command::Sim(args) => sim::sim(&args),
    }
}
