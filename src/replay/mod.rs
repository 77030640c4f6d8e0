//! Sends a plan on schedule and collects what was observed.
//!
//! [`run`] is the real run: a thread that makes bodies ahead of time, a worker per core with its own
//! runtime and connections, and the caller's thread, which gets every record once. The same
//! [`worker::Worker`] runs in virtual time in [`crate::lab`]. Deliberately absent: anything between
//! the schedule and the send that waits for a response.

pub mod capacity;
mod crew;
pub mod drain;
mod error;
pub mod gate;
pub mod heartbeat;
pub mod job;
pub mod lookahead;
mod maker;
mod mode;
mod records;
pub mod source;
mod streams;
pub mod worker;

use std::sync::Arc;

use tokio::sync::watch;

use crate::client::{Dialled, Endpoint};
use crate::clock::Anchor;
use crate::record::StreamRecord;
use crate::schedule::Planned;
use crate::units::Nanos;
use crew::Crew;
use crew::WorkerError;
use drain::{Drain, Shared, Stop};
use job::BodyMaker;
use lookahead::Lookahead;
use maker::{Broken, Maker};

pub use error::{Panicked, ReplayError};
pub use mode::Mode;

/// Bodies made ahead of their time, over all workers.
const LOOKAHEAD_BYTES: usize = 256 << 20;

/// Everything about a run but its plan.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The servers, by `target` of the rows; at least one.
    pub targets: Vec<Endpoint>,
    /// What every body has in common.
    pub bodies: BodyMaker,
    /// Threads that send and receive.
    pub workers: usize,
    /// Connections dialled before `t0`, over all workers and targets.
    pub predial: usize,
    /// Open or closed loop. Where slots count and turns follow one another, there has to be one worker.
    pub mode: Mode,
    /// No dependent turn is due at or after this offset.
    pub until: Nanos,
    /// How long streams are followed.
    pub drain: Drain,
}

/// What the caller hears during a run.
#[derive(Debug)]
pub enum Event<'a> {
    /// What came of dialling before `t0`, where that was asked for.
    Dialled(Dialled),
    /// Everything is ready; `t0` is this instant.
    Started(Anchor),
    /// Every request that was due before this offset has ended, and was told.
    Settled(Nanos),
    /// A request has ended.
    Ended(Box<StreamRecord>),
    /// Time has passed, or all workers are done.
    Tick(&'a Shared),
}

/// Runs a plan to its end. Every row that falls due reaches `on_event` once.
///
/// `stop` ends the run early, as far as it says.
pub fn run<P, E, C>(
    plan: P,
    setup: &Setup,
    stop: &watch::Sender<Stop>,
    on_event: impl FnMut(Event<'_>) -> Result<(), C>,
) -> Result<(), ReplayError<E, C>>
where
    P: Iterator<Item = Result<Planned, E>> + Send + 'static,
    E: Send + 'static,
{
    run_inspected(plan, setup, stop, on_event, |_, _| {})
}

/// The same, with a look at each record by the worker of this number that has it.
fn run_inspected<P, E, C>(
    plan: P,
    setup: &Setup,
    stop: &watch::Sender<Stop>,
    on_event: impl FnMut(Event<'_>) -> Result<(), C>,
    inspect: fn(usize, &StreamRecord),
) -> Result<(), ReplayError<E, C>>
where
    P: Iterator<Item = Result<Planned, E>> + Send + 'static,
    E: Send + 'static,
{
    crate::machine::sockets::prepare_descriptors();
    let queues = queues(setup);
    let maker =
        Maker::start(plan, setup.bodies.clone(), queues.clone()).map_err(ReplayError::Worker)?;
    maker.wait_primed(stop);
    let caller = std::thread::scope(|scope| {
        let mut crew = Crew::start(scope, setup, &queues, stop, inspect)?;
        let caller = crew.lead(stop, on_event);
        // Whatever the workers left: nobody wants more.
        for queue in &queues {
            queue.abandon();
        }
        crew.join().map(|()| caller)
    });
    let made = maker.finish(*stop.borrow() > Stop::No);
    let caller = caller.map_err(|error| match error {
        WorkerError::Start(error) => ReplayError::Worker(error),
        WorkerError::Panicked(error) => ReplayError::Panicked(error),
    })?;
    caller.map_err(ReplayError::Caller)?;
    made.map_err(|broken| match broken {
        Broken::Panicked(error) => ReplayError::Panicked(error),
        Broken::Plan(error) => ReplayError::Plan(error),
        Broken::Content(error) => ReplayError::Content(error),
    })
}

/// One queue a worker; where slots count all share one, so that a free slot takes the next row.
fn queues(setup: &Setup) -> Vec<Arc<Lookahead>> {
    match setup.mode {
        Mode::Open => {
            let workers = setup.workers.max(1);
            std::iter::repeat_with(|| Lookahead::new(LOOKAHEAD_BYTES / workers))
                .take(workers)
                .collect()
        }
        Mode::Closed { slots, .. } | Mode::Capped { slots, .. } => {
            let workers = setup.workers.min(slots).max(1);
            vec![Lookahead::new(LOOKAHEAD_BYTES); workers]
        }
    }
}

#[cfg(test)]
mod tests;
