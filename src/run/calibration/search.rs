//! The largest load that this machine holds.

use std::path::Path;

use tokio::sync::watch;

use super::figures::{describe_load, describe_worst};
use super::load::interval;
use super::measure::measure;
use super::scratch::Scratch;
use crate::lab::Load;
use crate::replay::capacity;
use crate::replay::drain::Stop;
use crate::run::error::RunError;
use crate::run::events::{Event, Observer};
use crate::units::Nanos;

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
/// The largest load that is held, by doubling; the first step where not even that is.
pub fn search(
    gap: Nanos,
    workers: usize,
    program: &Path,
    stop: &watch::Sender<Stop>,
    observer: &mut dyn Observer,
) -> Result<Load, RunError> {
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
            let calibration =
                measure(load, workers, program, Scratch::make()?.folder(), stop, observer)?;
            let error_ms = calibration.worst_ms();
            holds = calibration.is_whole() && error_ms.is_some_and(|ms| ms <= HELD_MS);
            let (load, error) = (describe_load(&load), describe_worst(&calibration));
            let held = if holds { "" } else { "; not held" };
            observer.observe(Event::Step(&format!("{load}: {error}{held}")));
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
        observer.observe(Event::Note(
            "not even the least load of the search was held; it is measured all the same",
        ));
    }
    Ok(held)
}
