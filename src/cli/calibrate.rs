//! `underfire calibrate`: how wrong this client's own figures are on this machine, under a load that is
//! asked for, or under the largest that this machine holds.
//!
//! Deliberately absent: the measurement of one load, and the words for it.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use tokio::sync::watch;

use super::Exit;
use super::calibration_page::page;
use super::console::{print, say, this_program};
use super::progress::Console;
use super::signals::stop_on_signals;
use crate::clock::Utc;
use crate::lab::Load;
use crate::machine::host;
use crate::replay::capacity;
use crate::replay::drain::Stop;
use crate::report::Folder;
use crate::run::calibration::{
    Calibration, Scratch, describe_load, interval, json, meaning, measure, search, streams_of,
};
use crate::units::{Nanos, UnitError};

/// Arguments of `calibrate`.
#[derive(Debug, Args)]
pub(super) struct CalibrateArgs {
    /// Arrivals a second (default: a tenth of the streams, and 40 at the least)
    #[arg(long, value_name = "R", value_parser = rate)]
    rate: Option<f64>,
    /// Streams open at a time (default: as many as --rate opens in a second). With neither, the most
    /// that this machine holds are looked for
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    streams: Option<u32>,
    /// Time between two tokens of a stream
    #[arg(long, value_name = "D", default_value = "50ms", value_parser = span)]
    gap: Nanos,
    /// How long the load is measured, once its streams are open
    #[arg(long, value_name = "D", default_value = "10s", value_parser = span)]
    duration: Nanos,
    /// Threads that send and receive (default: one per core)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
    /// Keep rows, timeline, the server's log and the result in this folder, which must not hold a run
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The result as JSON to stdout
    #[arg(long)]
    json: bool,
}

/// How long an answer lasts where only its rate, or only the number of streams, is given.
const LIFE_OF_RATE: Nanos = Nanos::from_secs(1);
const LIFE_OF_STREAMS_S: f64 = 10.0;
/// So many arrivals a second bound a p99 in the default duration.
const LEAST_RATE: f64 = 40.0;

/// Carries out the command.
pub(super) fn calibrate(args: &CalibrateArgs, quit: fn(Exit) -> !) -> anyhow::Result<Exit> {
    let workers = args.workers.map_or_else(|| host::cores().unwrap_or(1), usize::from);
    let asked = args.asked();
    if let Some(load) = asked {
        load.check()?;
    }
    let folder = args.out.as_ref().map(|out| Folder::create(Some(out), "", &Utc::now().compact()));
    let folder = folder.transpose()?;
    let (stop, _) = watch::channel(Stop::No);
    stop_on_signals(&stop, quit).context("cannot watch for signals")?;
    let (program, console) = (this_program()?, &mut Console::new(false));
    let load = if let Some(load) = asked {
        load
    } else {
        let held = search(args.gap, workers, &program, &stop, console)?;
        Load { span: args.duration, ..held }
    };
    if *stop.borrow() == Stop::All {
        return Ok(Exit::Interrupted);
    }
    if let Some(shortage) = capacity::shortage(u64::from(load.streams)) {
        say(&format!("warning: {shortage}"));
    }
    say(&format!("calibrating: {}", describe_load(&load)));
    let calibration = match &folder {
        Some(folder) => keep(measure(load, workers, &program, folder, &stop, console)?, folder)?,
        None => measure(load, workers, &program, Scratch::make()?.folder(), &stop, console)?,
    };
    if args.json {
        print(&format!("{:#}\n", json(&calibration)));
        say(&meaning(&calibration));
    } else {
        print(&page(&calibration));
    }
    Ok(exit(&calibration))
}

/// Writes the result beside the files that it was made of.
fn keep(calibration: Calibration, folder: &Folder) -> anyhow::Result<Calibration> {
    let path = folder.file("calibration.json");
    std::fs::write(&path, format!("{:#}\n", json(&calibration)))
        .with_context(|| format!("failed to write {}", path.display()))?;
    Ok(calibration)
}

/// What a calibration is worth.
fn exit(calibration: &Calibration) -> Exit {
    match calibration {
        Calibration { interrupted: true, .. } => Exit::Interrupted,
        Calibration { ok: 0, .. } => Exit::NothingSucceeded,
        calibration if calibration.is_whole() => Exit::Ok,
        _ => Exit::CannotAnswer,
    }
}

impl CalibrateArgs {
    /// The load that was asked for, if any was.
    fn asked(&self) -> Option<Load> {
        let (rate, streams) = match (self.rate, self.streams) {
            (None, None) => return None,
            (Some(rate), Some(streams)) => (rate, streams),
            (Some(rate), None) => (rate, streams_of(rate, LIFE_OF_RATE)),
            (None, Some(streams)) => {
                ((f64::from(streams) / LIFE_OF_STREAMS_S).max(LEAST_RATE), streams)
            }
        };
        Some(Load { interval: interval(rate), streams, gap: self.gap, span: self.duration })
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| (1e-6..=1e6).contains(rate));
    rate.ok_or_else(|| "write arrivals a second, up to 1000000".to_owned())
}

fn span(text: &str) -> Result<Nanos, UnitError> {
    Nanos::parse_duration(text).and_then(|span| match span {
        Nanos::ZERO => Err(UnitError::Zero),
        span => Ok(span),
    })
}
