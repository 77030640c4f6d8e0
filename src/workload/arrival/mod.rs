//! When requests, or sessions, arrive: a renewal process, sped up and slowed down by an envelope, and
//! interrupted by silences between bursts.
//!
//! The process draws gaps in seconds of its own time. An envelope makes that time run faster or slower,
//! so that it shapes the rate and leaves the process its kind; bursts put a silence in the place of a
//! gap. No one of the three makes real arrivals alone: a gamma with the CV of a production trace has
//! none of its shape. Nothing is remembered but how far time has come.

mod envelope;
mod process;
#[cfg(test)]
mod tests;

use super::WorkloadError;
use super::distribution::{Distribution, FACTORS, REQUESTS, SECONDS, whole};
use super::draw::{Draws, Purpose};
use super::keys::Keys;
use crate::units::Nanos;
use envelope::{Cursor, Envelope};
use process::{PROCESSES, Process};

/// The most requests that a closed loop keeps in flight.
const LIMIT_SLOTS: u64 = 1_000_000;

/// When rows arrive.
#[derive(Clone, Debug)]
pub(super) enum Arrival {
    /// Each at a time of its own.
    Open(Box<Open>),
    /// Whenever one of so many has ended.
    Closed(Closed),
}

/// A closed loop, as a workload file asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// Requests in flight.
    pub slots: u32,
    /// The first of them are spread over this time.
    pub ramp: Nanos,
}

/// Arrivals in time.
#[derive(Clone, Debug)]
pub(super) struct Open {
    process: Process,
    envelope: Option<Envelope>,
    bursts: Option<Bursts>,
}

/// Requests come in bursts with silence between them.
#[derive(Clone, Debug)]
struct Bursts {
    size: Distribution,
    off: Distribution,
    /// A factor on the rate inside each burst.
    pace: Option<Distribution>,
}

impl Arrival {
    /// Reads `[arrival]`.
    pub(super) fn read(mut keys: Keys<'_>) -> Result<Self, WorkloadError> {
        let field = keys.need("process", "write for example process = \"poisson\"")?;
        let arrival = match field.text()? {
            "closed" => Self::Closed(Closed::read(&mut keys)?),
            word if PROCESSES.contains(&word) => {
                let process = Process::read(word, &mut keys)?;
                let envelope = keys.section_if_any("envelope")?.map(Envelope::read).transpose()?;
                let bursts = keys.section_if_any("bursts")?.map(Bursts::read).transpose()?;
                Self::Open(Box::new(Open { process, envelope, bursts }))
            }
            _ => return Err(field.unknown_word("process", &PROCESSES)),
        };
        keys.finish()?;
        Ok(arrival)
    }
}

impl Closed {
    fn read(keys: &mut Keys<'_>) -> Result<Self, WorkloadError> {
        let slots = keys.need("concurrency", "it is the number of requests in flight")?;
        let slots = u32::try_from(slots.whole_in(1, LIMIT_SLOTS)?).expect("the limit fits");
        let ramp = keys.get("ramp").map(|field| field.duration()).transpose()?;
        Ok(Self { slots, ramp: ramp.unwrap_or_default() })
    }

    /// When slot `at` of all is first free, as an offset from the start.
    #[must_use]
    pub fn first_free(self, at: u64) -> Nanos {
        let share = u128::from(self.ramp.0) * u128::from(at) / u128::from(self.slots.max(1));
        Nanos(u64::try_from(share).unwrap_or(u64::MAX).min(self.ramp.0))
    }
}

impl Bursts {
    fn read(mut keys: Keys<'_>) -> Result<Self, WorkloadError> {
        let size = keys.section("size", "add a distribution of requests in a burst")?;
        let off = keys.section("off", "add a distribution of seconds between bursts")?;
        let pace = keys.section_if_any("pace")?;
        keys.finish()?;
        Ok(Self {
            size: Distribution::read(size, REQUESTS)?,
            off: Distribution::read(off, SECONDS)?,
            pace: pace.map(|keys| Distribution::read(keys, FACTORS)).transpose()?,
        })
    }
}

/// How far a stream of arrivals has come.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    arrivals: u64,
    at: Nanos,
    cursor: Cursor,
    bursts: u64,
    /// Requests that the burst still has.
    left: u64,
    pace: f64,
}

impl Clock {
    /// The next arrival; [`Nanos::MAX`] stands for never.
    pub(super) fn next(&mut self, arrival: &Arrival, draws: &mut Draws) -> Nanos {
        let row = self.arrivals;
        self.arrivals += 1;
        self.at = match arrival {
            Arrival::Closed(closed) => closed.first_free(row.min(u64::from(closed.slots))),
            Arrival::Open(open) => self.next_open(open, row, draws),
        };
        self.at
    }

    fn next_open(&mut self, open: &Open, row: u64, draws: &mut Draws) -> Nanos {
        if let (Process::Constant { .. }, None, None) = (open.process, &open.envelope, &open.bursts)
        {
            return open.process.evenly(row);
        }
        let gap_s = match &open.bursts {
            Some(bursts) => self.burst_gap(bursts, &open.process, row, draws),
            None => open.process.gap_s(row, draws),
        };
        match &open.envelope {
            Some(envelope) => self.cursor.advance(envelope, gap_s),
            None => self.at + Nanos(whole(gap_s * 1e9)),
        }
    }

    /// The gap before a row where there are bursts: the first row of a burst comes after the silence,
    /// and the very first at once.
    fn burst_gap(
        &mut self,
        bursts: &Bursts,
        process: &Process,
        row: u64,
        draws: &mut Draws,
    ) -> f64 {
        if self.left > 0 {
            self.left -= 1;
            return process.gap_s(row, draws) / self.pace;
        }
        let burst = self.bursts;
        self.bursts += 1;
        self.left = bursts.size.whole_at(draws.of(Purpose::BurstSize, burst).uniform()) - 1;
        let pace = bursts.pace.as_ref();
        self.pace = pace.map_or(1.0, |pace| pace.at(draws.of(Purpose::BurstPace, burst).uniform()));
        if burst == 0 { 0.0 } else { bursts.off.at(draws.of(Purpose::BurstOff, burst).uniform()) }
    }
}
