//! `underfire calibrate`: how wrong this client's own figures are on this machine, under a load that is
//! asked for, or under the largest that this machine holds.
//!
//! Deliberately absent: the measurement of one load, and the words for it.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use tokio::sync::watch;

use super::Exit;
use super::calibration::{Calibration, Scratch, measure};
use super::calibration_words as words;
use super::console::{print, say};
use super::live::stop_on_signals;
use crate::clock::Utc;
use crate::lab::Load;
use crate::replay::capacity;
use crate::replay::drain::Stop;
use crate::report::Folder;
use crate::schedule::PlanFacts;
use crate::units::{NS_PER_S, Nanos, UnitError};

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

/// Streams of the first step of the search; each next one doubles them.
const FIRST_STREAMS: u32 = 250;
/// And of the last.
const MOST_STREAMS: u32 = 16_000;
/// How long a step is measured.
const STEP: Nanos = Nanos::from_millis(2_000);
/// A load is held while every error stays below this: what is called good elsewhere too.
const HELD_MS: f64 = 5.0;
/// A disturbance from outside lasts no longer than a step; twice is no disturbance.
const TRIES: u32 = 2;
/// How long an answer lasts where only its rate, or only the number of streams, is given.
const LIFE_OF_RATE: Nanos = Nanos::from_secs(1);
const LIFE_OF_STREAMS_S: f64 = 10.0;
/// So many arrivals a second bound a p99 in the default duration.
const LEAST_RATE: f64 = 40.0;

/// The short form before a run: a token every so often, so many streams and arrivals a second at the
/// bounds, for so long.
const PLAN_GAP: Nanos = Nanos::from_millis(50);
const PLAN_MOST_STREAMS: f64 = 4_000.0;
const PLAN_LEAST_RATE: f64 = 2.0;
const PLAN_SPAN: Nanos = Nanos::from_secs(3);
/// What an answer is taken to have where no row asks for a length; about a chat's.
pub(super) const UNKNOWN_ANSWER_TOK: f64 = 250.0;

/// Carries out the command.
pub(super) fn calibrate(args: &CalibrateArgs, quit: fn(Exit) -> !) -> anyhow::Result<Exit> {
    let workers = args.workers.map_or_else(cores, usize::from);
    let asked = args.asked();
    if let Some(load) = asked {
        load.check()?;
    }
    let folder = args.out.as_ref().map(|out| Folder::create(Some(out), "", &Utc::now().compact()));
    let folder = folder.transpose()?;
    let (stop, _) = watch::channel(Stop::No);
    stop_on_signals(&stop, quit).context("cannot watch for signals")?;
    let load = match asked {
        Some(load) => load,
        None => Load { span: args.duration, ..search(args.gap, workers, &stop)? },
    };
    if *stop.borrow() == Stop::All {
        return Ok(Exit::Interrupted);
    }
    if let Some(shortage) = capacity::shortage(u64::from(load.streams)) {
        say(&format!("warning: {shortage}"));
    }
    say(&format!("calibrating: {}", words::load(&load)));
    let calibration = match &folder {
        Some(folder) => keep(measure(load, workers, folder, &stop)?, folder)?,
        None => measure(load, workers, Scratch::make()?.folder(), &stop)?,
    };
    if args.json {
        print(&format!("{:#}\n", words::json(&calibration)));
        say(&words::sentence(&calibration));
    } else {
        print(&words::page(&calibration));
    }
    Ok(exit(&calibration))
}

/// Writes the result beside the files that it was made of.
fn keep(calibration: Calibration, folder: &Folder) -> anyhow::Result<Calibration> {
    let path = folder.file("calibration.json");
    std::fs::write(&path, format!("{:#}\n", words::json(&calibration)))
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

/// One worker for each.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
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

/// The largest load that is held, by doubling; the first step where not even that is.
fn search(gap: Nanos, workers: usize, stop: &watch::Sender<Stop>) -> anyhow::Result<Load> {
    let of = |streams: u32| {
        // Answers of two seconds: a step of two sees as many begin as end.
        Load { interval: interval(f64::from(streams) / 2.0), streams, gap, span: STEP }
    };
    let mut held = of(FIRST_STREAMS);
    let mut streams = FIRST_STREAMS;
    while streams <= MOST_STREAMS && capacity::shortage(u64::from(streams)).is_none() {
        let load = of(streams);
        let mut holds = false;
        for _ in 0..TRIES {
            let calibration = measure(load, workers, Scratch::make()?.folder(), stop)?;
            let error_ms = calibration.worst_ms();
            holds = calibration.is_whole() && error_ms.is_some_and(|ms| ms <= HELD_MS);
            let (load, error) = (words::load(&load), words::worst(&calibration));
            say(&format!("{load}: {error}{}", if holds { "" } else { "; not held" }));
            if holds || calibration.interrupted {
                break;
            }
        }
        if !holds {
            break;
        }
        held = load;
        streams *= 2;
    }
    if streams == FIRST_STREAMS {
        say("note: not even the least load of the search was held; it is measured all the same");
    }
    Ok(held)
}

/// A plan's own load, as far as it is known before it is sent: streams are taken to last as long as
/// their mean answer at 20 tok/s, and no more of them are opened than the built-in server carries.
pub(super) fn of_plan(facts: &PlanFacts, slots: Option<usize>) -> Load {
    let answer_tok = mean_answer_tok(facts).unwrap_or(UNKNOWN_ANSWER_TOK);
    let life_s = (answer_tok * PLAN_GAP.as_secs_f64()).max(PLAN_GAP.as_secs_f64());
    let paced = |span: Nanos| facts.rows as f64 / span.as_secs_f64();
    let (rate, streams) = match (slots, facts.last_due.filter(|last| *last > Nanos::ZERO)) {
        (Some(slots), _) => (slots as f64 / life_s, slots as f64),
        (None, Some(span)) => (paced(span), paced(span) * life_s),
        // All at once.
        (None, None) => (facts.rows as f64 / life_s, facts.rows as f64),
    };
    let streams = streams.min(facts.rows as f64).min(PLAN_MOST_STREAMS);
    let streams = streams_of(streams, Nanos::from_secs(1));
    Load { interval: interval(rate.max(PLAN_LEAST_RATE)), streams, gap: PLAN_GAP, span: PLAN_SPAN }
}

/// The mean answer of the rows that ask for a length; `None` where none does.
pub(super) fn mean_answer_tok(facts: &PlanFacts) -> Option<f64> {
    let limited_rows = facts.rows.saturating_sub(facts.output.natural_rows);
    (limited_rows > 0).then(|| facts.output.limited_tok as f64 / limited_rows as f64)
}

/// Streams that `rate` arrivals a second keep open.
fn streams_of(rate: f64, life: Nanos) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to fit")]
    let streams = (rate * life.as_secs_f64()).ceil().clamp(1.0, 1e6) as u32;
    streams
}

/// Between two of `rate` arrivals a second.
fn interval(rate: f64) -> Nanos {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to fit")]
    let ns = (NS_PER_S as f64 / rate).round().clamp(1.0, 1e18) as u64;
    Nanos(ns)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::OutputSum;

    #[test]
    fn a_plan_s_load_is_its_rate_and_the_streams_that_its_answers_keep_open() {
        // 10 requests a second of 100 tokens, 5 s each at 20 tok/s.
        let facts = PlanFacts {
            rows: 600,
            output: OutputSum::of(60_000),
            last_due: Some(Nanos::from_secs(60)),
            ..PlanFacts::default()
        };
        let load = of_plan(&facts, None);
        assert_eq!((load.interval, load.streams), (Nanos::from_millis(100), 50));
        // In the closed loop 20 slots send 4 a second.
        let load = of_plan(&facts, Some(20));
        assert_eq!((load.interval, load.streams), (Nanos::from_millis(250), 20));
        // Answers of no length asked for count for no tokens, and not as empty ones either.
        let output = OutputSum { limited_tok: 30_000, natural_rows: 300 };
        assert_eq!(mean_answer_tok(&PlanFacts { output, ..facts.clone() }), Some(100.0));
        let output = OutputSum { limited_tok: 0, natural_rows: 600 };
        let natural = PlanFacts { output, ..facts.clone() };
        assert_eq!((mean_answer_tok(&natural), of_plan(&natural, None).streams), (None, 125));
        // Once an hour is not calibrated at once an hour, and no plan opens more streams than it has rows.
        let rare = PlanFacts { rows: 3, last_due: Some(Nanos::from_secs(7_200)), ..facts.clone() };
        assert_eq!(of_plan(&rare, None).check(), Ok(()));
        let burst = PlanFacts { rows: 7, last_due: Some(Nanos::ZERO), ..facts };
        assert_eq!(of_plan(&burst, None).streams, 7);
    }
}
