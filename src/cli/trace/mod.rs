//! `underfire trace`: what can be done with a trace without sending it. One file per command.

mod convert;
mod fit;
mod generate;
mod inspect;
mod lint;
mod picture;
mod place;

use clap::{Args, Subcommand};

use super::Exit;
use super::console::say;
use crate::run::Traffic;

/// Arguments of `trace`.
#[derive(Debug, Args)]
pub(super) struct TraceArgs {
    #[command(subcommand)]
    command: TraceCommand,
}

#[derive(Debug, Subcommand)]
enum TraceCommand {
    /// Show what a trace is like: arrivals, lengths, sessions, shared prefixes
    Inspect(inspect::InspectArgs),
    /// List the faults of a trace, line by line; exits 2 when there are any
    Lint(lint::LintArgs),
    /// Write a trace, or a part or change of it, as another file
    Convert(Box<convert::ConvertArgs>),
    /// Write the rows of a workload as a native trace
    Generate(generate::GenerateArgs),
    /// Make a workload file whose traffic is like a trace, and say how like
    Fit(Box<fit::FitArgs>),
}

/// Carries out the command.
pub(super) fn trace(args: &TraceArgs) -> anyhow::Result<Exit> {
    match &args.command {
        TraceCommand::Inspect(args) => inspect::inspect(args),
        TraceCommand::Lint(args) => lint::lint(args),
        TraceCommand::Convert(args) => convert::convert(args),
        TraceCommand::Generate(args) => generate::generate(args),
        TraceCommand::Fit(args) => fit::run(args),
    }
}

/// What a person should know about the source.
fn say_notices(traffic: &Traffic) {
    for notice in traffic.notices() {
        say(&format!("note: {notice}"));
    }
}
