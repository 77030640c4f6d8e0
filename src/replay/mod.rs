//! Sends a plan on schedule and collects what was observed.
//!
//! [`run`] is the real run: a thread that makes bodies ahead of time, a worker per core with its own
//! runtime and connections, and the caller's thread, which gets every record once. The same
//! [`worker::Worker`] runs in virtual time in [`crate::lab`]. Deliberately absent: anything between
//! the schedule and the send that waits for a response.

pub mod drain;
pub mod job;
pub mod lookahead;
mod open_dues;
pub mod source;
pub mod worker;

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender, TryRecvError};
use std::time::Duration;

use tokio::sync::{oneshot, watch};

use crate::client::{self, Client, Dial};
use crate::clock::{Anchor, Clock};
use crate::record::StreamRecord;
use crate::schedule::Planned;
use crate::units::Nanos;
use drain::{Drain, Shared, Stop};
use job::{BodyMaker, Job, JobError};
use lookahead::Lookahead;
use source::{ClosedLoop, FixedSchedule, Source};
use worker::Worker;

/// Bodies made ahead of their time, over all workers.
const LOOKAHEAD_BYTES: usize = 256 << 20;
/// Records that have ended and wait to be written.
const RECORD_QUEUE: usize = 1 << 16;
/// The caller hears a tick at least this often.
const TICK: Duration = Duration::from_millis(200);
/// From the last preparation to `t0`: time for every worker to arm its timer.
const LEAD: Nanos = Nanos::from_millis(20);

/// What decides when rows leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Each at its own time.
    Open,
    /// So many at a time, none due at or after `until`.
    Closed {
        /// Requests in flight.
        slots: usize,
        /// End of the run, as an offset from `t0`.
        until: Nanos,
    },
}

/// Everything about a run but its plan.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Name or address of the server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// What every request has in common.
    pub client: client::Settings,
    /// What every body has in common.
    pub bodies: BodyMaker,
    /// Threads that send and receive.
    pub workers: usize,
    /// Open or closed loop.
    pub mode: Mode,
    /// How long streams are followed.
    pub drain: Drain,
}

/// What the caller hears during a run.
#[derive(Debug)]
pub enum Event<'a> {
    /// Everything is ready; `t0` is this instant.
    Started(Anchor),
    /// Every request that was due before this offset has ended, and was told.
    Settled(Nanos),
    /// A request has ended.
    Ended(Box<StreamRecord>),
    /// Time has passed.
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
    mut on_event: impl FnMut(Event<'_>) -> Result<(), C>,
) -> Result<(), ReplayError<E, C>>
where
    P: Iterator<Item = Result<Planned, E>> + Send,
    E: Send,
    C: Send,
{
    crate::descriptors::prepare();
    let queues = queues(setup);
    let shared = Arc::new(Shared::new(queues.len()));
    let (records, received) = mpsc::sync_channel(RECORD_QUEUE);
    std::thread::scope(|scope| {
        let (primed, is_primed) = mpsc::channel::<()>();
        let queues = &queues;
        let maker = scope.spawn(move || make_bodies(plan, setup, queues, primed));
        let mut starts = Vec::new();
        let mut threads = Vec::new();
        let (ready, all_ready) = mpsc::channel();
        for (index, queue) in queues.iter().enumerate() {
            let (start, started) = oneshot::channel();
            let seat = Seat {
                index,
                queue: queue.clone(),
                shared: shared.clone(),
                stop: stop.subscribe(),
            };
            let (ready, records) = (ready.clone(), records.clone());
            threads.push(scope.spawn(move || seat.run(setup, &ready, started, records)));
            starts.push(start);
        }
        drop((ready, records));
        // A worker that fails to start drops its sender without a word; its error comes at the join.
        let ready_count = all_ready.iter().take(starts.len()).count();
        let _ = is_primed.recv();
        let mut caller = Ok(());
        if ready_count == starts.len() {
            let mut anchor = Anchor::now();
            anchor = Anchor {
                monotonic: anchor.monotonic + LEAD,
                utc: anchor.utc_at(anchor.monotonic + LEAD),
            };
            caller = on_event(Event::Started(anchor));
            for start in starts {
                let _ = start.send(anchor.monotonic);
            }
        } else {
            drop(starts);
        }
        let (mut told, mut settled) = (Nanos::ZERO, Nanos::ZERO);
        loop {
            let event = match received.try_recv() {
                Ok(record) => Event::Ended(record),
                // Read before the queue was seen to be empty: all that it speaks of has been told.
                Err(TryRecvError::Empty) if settled > told => {
                    told = settled;
                    Event::Settled(settled)
                }
                Err(_) => {
                    settled = shared.settled();
                    match received.recv_timeout(TICK) {
                        Ok(record) => Event::Ended(record),
                        Err(RecvTimeoutError::Timeout) => Event::Tick(&shared),
                        Err(RecvTimeoutError::Disconnected) => break,
                    }
                }
            };
            if caller.is_ok() {
                caller = on_event(event);
            }
            if caller.is_err() {
                Stop::All.request(stop);
            }
        }
        for queue in queues {
            queue.abandon();
        }
        for thread in threads {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                .map_err(ReplayError::Worker)?;
        }
        let made = maker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        caller.map_err(ReplayError::Caller)?;
        made
    })
}

/// One queue a worker; in the closed loop all share one, so that a free slot takes the next row.
fn queues(setup: &Setup) -> Vec<Arc<Lookahead>> {
    match setup.mode {
        Mode::Open => {
            let workers = setup.workers.max(1);
            std::iter::repeat_with(|| Lookahead::new(LOOKAHEAD_BYTES / workers))
                .take(workers)
                .collect()
        }
        Mode::Closed { slots, .. } => {
            let workers = setup.workers.min(slots).max(1);
            vec![Lookahead::new(LOOKAHEAD_BYTES); workers]
        }
    }
}

/// Makes bodies until the plan ends; says when the look-ahead is full for the first time.
fn make_bodies<E, C>(
    plan: impl Iterator<Item = Result<Planned, E>>,
    setup: &Setup,
    queues: &[Arc<Lookahead>],
    primed: mpsc::Sender<()>,
) -> Result<(), ReplayError<E, C>> {
    // Dropping it is the sign.
    let mut primed = Some(primed);
    let queue_all = || {
        for (count, planned) in plan.enumerate() {
            let job = setup.bodies.job(planned.map_err(ReplayError::Plan)?);
            let queue = &queues[count % queues.len()];
            if count >= PRIME_ROWS || queue.is_full() {
                primed = None;
            }
            if !queue.push(job.map_err(ReplayError::Content)?) {
                break;
            }
        }
        Ok(())
    };
    let result = queue_all();
    for queue in queues {
        queue.end();
    }
    result
}

/// Rows whose bodies are made before `t0`, unless the look-ahead is full earlier.
const PRIME_ROWS: usize = 4096;

/// A worker's thread before it has a clock.
struct Seat {
    index: usize,
    queue: Arc<Lookahead>,
    shared: Arc<Shared>,
    stop: watch::Receiver<Stop>,
}

impl Seat {
    fn run(
        self,
        setup: &Setup,
        ready: &mpsc::Sender<()>,
        start: oneshot::Receiver<Nanos>,
        records: SyncSender<Box<StreamRecord>>,
    ) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        tokio::task::LocalSet::new().block_on(&runtime, async move {
            let clock = Clock::real()?;
            let _ = ready.send(());
            let Ok(t0) = start.await else {
                return Ok(());
            };
            match setup.mode {
                Mode::Open => self.work(setup, clock, t0, FixedSchedule::new(), records).await,
                Mode::Closed { slots, until } => {
                    let workers = setup.workers.min(slots).max(1);
                    let slots = slots / workers + usize::from(self.index < slots % workers);
                    self.work(setup, clock, t0, ClosedLoop::new(slots, until), records).await;
                }
            }
            Ok(())
        })
    }

    async fn work(
        self,
        setup: &Setup,
        clock: Clock,
        t0: Nanos,
        source: impl Source<Job>,
        records: SyncSender<Box<StreamRecord>>,
    ) {
        let dial = Dial::Tcp { host: setup.host.clone(), port: setup.port };
        let worker = Worker {
            client: Client::new(dial, clock.clone(), t0, setup.client.clone()),
            clock,
            t0,
            source,
            rows: self.queue,
            stop: self.stop,
            drain: setup.drain,
            shared: self.shared,
            index: self.index,
            sink: Rc::new(move |record| {
                // The receiver outlives the workers.
                let _ = records.send(Box::new(record));
            }),
        };
        worker.run().await;
    }
}
