//! Replay and simulated server joined in virtual time: the whole program without a socket, exact and
//! repeatable, an hour of traffic in seconds.
//!
//! The code under test is the code that runs for real: the same worker, client, decoder and server,
//! over pipes in memory. Only the clock differs. Proofs over many seeds are made this way.

mod load;
mod truth;

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

pub use load::{LONGEST_TOK, Load, LoadError};
pub use truth::{Agreement, TruthCheck, UNBOUNDED_PPM, check};

use crate::client::dialect::Api;
use crate::client::{Client, Dial, RequestHead, Retries, Settings as ClientSettings, Timeouts};
use crate::clock::{Clock, Stalled, VirtualTime};
use crate::metrics::abort::{AbortRule, AbortWatch};
use crate::metrics::{Metrics, Summary, Window};
use crate::prompt::Prompter;
use crate::record::{Row, StreamRecord};
use crate::replay::Mode;
use crate::replay::drain::{Drain, Shared, Stop};
use crate::replay::gate::Capped;
use crate::replay::job::{BodyMaker, Job, JobError};
use crate::replay::lookahead::Inline;
use crate::replay::source::{ClosedLoop, FixedSchedule, Source, Turns};
use crate::replay::worker::Worker;
use crate::schedule::Planned;
use crate::sim::truth::{TruthError, TruthRow};
use crate::sim::{Server, Settings as SimSettings};
use crate::units::Nanos;

/// Bytes that a pipe holds, as a socket buffer would.
const PIPE_BYTES: usize = 64 * 1024;

/// A run in virtual time.
#[derive(Clone, Debug)]
pub struct Setup {
    /// What every request has in common.
    pub client: ClientSettings,
    /// What every body has in common.
    pub bodies: BodyMaker,
    /// Open or closed loop.
    pub mode: Mode,
    /// No dependent turn is due at or after this offset.
    pub until: Nanos,
    /// How long streams are followed.
    pub drain: Drain,
    /// Rows due earlier are warm-up.
    pub warmup: Nanos,
    /// Sending stops when one of these is broken.
    pub abort_on: Vec<AbortRule>,
    /// The server.
    pub sim: SimSettings,
}

impl Setup {
    /// An open loop of chat requests to a server with these settings, followed to their ends.
    #[must_use]
    pub fn chat(sim: SimSettings) -> Self {
        Self {
            client: ClientSettings {
                head: RequestHead::in_memory(Api::Chat.path()),
                timeouts: Timeouts::default(),
                ignore_eos: false,
                retries: Retries::default(),
                keep_kinds: false,
            },
            bodies: BodyMaker::new(Api::Chat, Prompter::new(0, "")),
            mode: Mode::Open,
            until: Nanos::MAX,
            drain: Drain::default(),
            warmup: Nanos::ZERO,
            abort_on: Vec::new(),
            sim,
        }
    }
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// One row per due request, in order of ending.
    pub rows: Vec<Row>,
    /// Every figure.
    pub summary: Summary,
    /// What the server saw, on the same clock; `t0` is zero.
    pub truth: Vec<TruthRow>,
}

/// Why a virtual run did not end.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The runtime could not be built.
    #[error("cannot build a runtime: {0}")]
    Runtime(#[from] io::Error),
    /// Something waits for what cannot happen.
    #[error(transparent)]
    Stalled(#[from] Stalled),
    /// A row's content does not fit the API.
    #[error(transparent)]
    Content(#[from] JobError),
    /// The truth log does not read back.
    #[error("truth log: {0}")]
    Truth(#[from] TruthError),
}

/// Sends `plan` to a simulated server in virtual time.
pub fn replay(plan: impl Iterator<Item = Planned>, setup: &Setup) -> Result<Outcome, LabError> {
    let time = Arc::new(VirtualTime::default());
    let log = TruthLog::default();
    let nothing = || (Metrics::new(Window { warmup: setup.warmup, last_due: None }), Vec::new());
    let ended = Rc::new(RefCell::new(nothing()));
    let unfit = Rc::new(RefCell::new(None));
    time.run(|| {
        let clock = Clock::of_virtual(&time);
        let server = Server::new(setup.sim.clone(), clock.clone(), Some(Box::new(log.clone())));
        let unfit = unfit.clone();
        let bodies = Arc::new(setup.bodies.clone());
        let rows = plan.map_while(move |planned| {
            bodies.job_in_time(planned).map_err(|error| unfit.replace(Some(error))).ok()
        });
        let warmup = setup.warmup;
        let ended = ended.clone();
        // The sender has to outlive the run: a dropped one reads as a stop.
        let (stop, _) = watch::channel(Stop::No);
        let asks = stop.clone();
        let abort = RefCell::new(AbortWatch::new(&setup.abort_on, 0));
        let sink = Rc::new(move |record: StreamRecord| {
            if abort.borrow_mut().ended(&record).is_some() {
                Stop::Sending.request(&asks);
            }
            let row = Row::of(&record, warmup);
            let (metrics, rows) = &mut *ended.borrow_mut();
            metrics.add(&row, &record);
            rows.push(row);
        });
        async move {
            match setup.mode {
                Mode::Open => {
                    work(setup, clock, &server, FixedSchedule::new(), rows, sink, &stop).await;
                }
                Mode::Closed { slots, ramp, until } => {
                    let source = ClosedLoop::new(Mode::first_free(slots, ramp, 1, 0), until);
                    work(setup, clock, &server, source, rows, sink, &stop).await;
                }
                Mode::Capped { slots, last_due } => {
                    let source = Capped::new(FixedSchedule::new(), slots, last_due);
                    work(setup, clock, &server, source, rows, sink, &stop).await;
                }
            }
            server.finish()
        }
    })???;
    if let Some(error) = unfit.take() {
        return Err(error.into());
    }
    let (metrics, rows) = ended.replace(nothing());
    Ok(Outcome {
        rows,
        summary: metrics.finish(),
        truth: crate::sim::truth::read(&log.take()[..])?,
    })
}

async fn work(
    setup: &Setup,
    clock: Clock,
    server: &Rc<Server>,
    source: impl Source<Job>,
    rows: impl Iterator<Item = Job>,
    sink: Rc<dyn Fn(StreamRecord)>,
    stop: &watch::Sender<Stop>,
) {
    let server = server.clone();
    let dial = Dial::Memory(Rc::new(move || {
        let (near, far) = tokio::io::duplex(PIPE_BYTES);
        tokio::task::spawn_local(server.clone().serve_connection(far));
        near
    }));
    let t0 = clock.now();
    let worker = Worker {
        clients: vec![Client::new(dial, clock.clone(), t0, setup.client.clone())],
        clock,
        t0,
        source: Turns::new(source, setup.until),
        rows: Inline(rows),
        stop: stop.subscribe(),
        drain: setup.drain,
        handle: Rc::new(Arc::new(Shared::new(1)).worker(0)),
        sink,
    };
    worker.run().await;
}

/// A log in memory that stays readable after its writer was given away.
#[derive(Clone, Debug, Default)]
struct TruthLog(Arc<Mutex<Vec<u8>>>);

impl TruthLog {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl io::Write for TruthLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
