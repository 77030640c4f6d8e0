//! `underfire trace fit`: a workload file that makes traffic like a recorded trace.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;

use super::place::Place;
use crate::cli::Exit;
use crate::cli::args::{ReadArgs, ShapeArgs};
use crate::cli::console::say;
use crate::cli::trace::say_notices;
use crate::client::dialect::Api;
use crate::run::Traffic;
use crate::workload::fit::{FitError, fit};

/// Arguments of `trace fit`.
#[derive(Debug, Args)]
#[command(mut_arg("concurrency", |arg| arg.hide(true)), mut_arg("max_in_flight", |arg| arg.hide(true)),
          mut_arg("salt", |arg| arg.hide(true)))]
pub(super) struct FitArgs {
    /// A trace file, a folder of sessions, or - for stdin
    source: PathBuf,
    /// The workload file to write (.toml), or - for stdout
    #[arg(default_value = "-")]
    out: PathBuf,
    /// Replace the file where it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    reading: ReadArgs,
    #[command(flatten)]
    shape: ShapeArgs,
}

/// Carries out the command.
pub(super) fn run(args: &FitArgs) -> anyhow::Result<Exit> {
    if args.shape.concurrency.is_some() || args.shape.max_in_flight.is_some() {
        bail!("--concurrency and --max-in-flight belong to `run`: a trace holds times");
    }
    let traffic =
        Traffic::open(&args.source, &args.reading.options(), &args.shape.settings(), Api::Chat)?;
    say_notices(&traffic);
    let fitted = match fit(traffic.shaped_rows()?, traffic.name()) {
        Err(FitError::Rows(error)) => return Err(error.into()),
        other => other?,
    };
    let place = Place { source: &args.source, out: &args.out, force: args.force };
    let written = place.save(|out| {
        out.write_all(fitted.text.as_bytes())?;
        Ok(1)
    })?;
    if written.is_some() {
        say(&format!("workload written to {}", args.out.display()));
    }
    say("recorded ÷ generated:");
    for line in &fitted.report {
        say(&format!("  {line}"));
    }
    for warning in &fitted.warnings {
        say(&format!("warning: {warning}"));
    }
    Ok(Exit::Ok)
}
