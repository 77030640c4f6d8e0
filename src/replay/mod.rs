//! Sends a plan on schedule and collects what was observed.
//!
//! [`run`] is the real run: a thread that makes bodies ahead of time, a worker per core with its own
//! runtime and connections, and the caller's thread, which gets every record once. The same
//! [`worker::Worker`] runs in virtual time in [`crate::lab`]. Deliberately absent: anything between
//! the schedule and the send that waits for a response.

pub mod capacity;
mod crew;
pub mod drain;
pub mod gate;
pub mod heartbeat;
pub mod job;
pub mod lookahead;
mod maker;
mod mode;
mod open_dues;
pub mod source;
pub mod spread;
pub mod worker;

use std::io;
use std::sync::Arc;

use tokio::sync::watch;

use crate::client::{Dialled, Endpoint};
use crate::clock::Anchor;
use crate::record::StreamRecord;
use crate::schedule::Planned;
use crate::units::Nanos;
use crew::Crew;
use drain::{Drain, Shared, Stop};
use job::{BodyMaker, JobError};
use lookahead::Lookahead;
use maker::{Broken, Maker};

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

/// Why a run could not be carried through.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError<P, C> {
    /// A thread or its runtime could not be started.
    #[error("cannot start a worker: {0}")]
    Worker(io::Error),
    /// The plan broke off; what was sent before was followed to its end.
    #[error(transparent)]
    Plan(P),
    /// A row's content does not fit the API; what was sent before was followed to its end.
    #[error(transparent)]
    Content(JobError),
    /// The caller could not take an event; the run was stopped.
    #[error(transparent)]
    Caller(C),
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
    crate::machine::sockets::prepare_descriptors();
    let queues = queues(setup);
    let maker =
        Maker::start(plan, setup.bodies.clone(), queues.clone()).map_err(ReplayError::Worker)?;
    maker.wait_primed(stop);
    let caller = std::thread::scope(|scope| {
        let mut crew = Crew::start(scope, setup, &queues, stop)?;
        let caller = crew.lead(stop, on_event);
        // Whatever the workers left: nobody wants more.
        for queue in &queues {
            queue.abandon();
        }
        crew.join().map(|()| caller)
    });
    let made = maker.finish(*stop.borrow() > Stop::No);
    caller.map_err(ReplayError::Worker)?.map_err(ReplayError::Caller)?;
    made.map_err(|broken| match broken {
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
