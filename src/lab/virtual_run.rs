//! A run in virtual time.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::client::dialect::Api;
use crate::client::{Client, Dial, RequestHead, Retries, Settings as ClientSettings, Timeouts};
use crate::clock::{Anchor, Clock, Stalled, Utc, VirtualTime};
use crate::metrics::abort::{AbortRule, AbortWatch};
use crate::metrics::{Metrics, Summary, Window};
use crate::prompt::Prompter;
use crate::record::{Row, StreamRecord};
use crate::replay::drain::{Drain, Shared, Stop};
use crate::replay::gate::Capped;
use crate::replay::job::{BodyMaker, Job, JobError};
use crate::replay::lookahead::Inline;
use crate::replay::source::{ClosedLoop, FixedSchedule, Source, Turns};
use crate::replay::worker::Worker;
use crate::replay::{Event, Mode, ReplayError};
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
    /// Rows due earlier are warm-up, to [`replay`].
    pub warmup: Nanos,
    /// [`replay`] stops sending when one of these is broken.
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
    /// The truth log is not whole, or does not read back.
    #[error("truth log: {0}")]
    Truth(#[from] TruthError),
}

/// Sends `plan` to a simulated server in virtual time, and makes all figures of it.
pub fn replay(plan: impl Iterator<Item = Planned>, setup: &Setup) -> Result<Outcome, LabError> {
    let mut metrics = Metrics::new(Window { warmup: setup.warmup, last_due: None });
    let mut abort = AbortWatch::new(&setup.abort_on, 0);
    let mut rows = Vec::new();
    let (stop, _) = watch::channel(Stop::No);
    let plan = plan.map(Ok::<_, Infallible>);
    let (ran, log) = drive(plan, setup, &Arc::default(), &stop, |event| {
        if let Event::Ended(record) = event {
            if abort.ended(&record).is_some() {
                Stop::Sending.request(&stop);
            }
            let row = Row::of(&record, setup.warmup);
            metrics.add(&row, &record);
            rows.push(row);
        }
        Ok::<_, Infallible>(())
    })?;
    if let Err(ReplayError::Content(error)) = ran {
        return Err(error.into());
    }
    let truth = crate::sim::truth::read(&log[..])?;
    Ok(Outcome { rows, summary: metrics.finish(), truth })
}

/// How the replay ended, and the log of the server as it would be written.
pub type Driven<E, C> = (Result<(), ReplayError<E, C>>, Vec<u8>);

/// Sends `plan` to a simulated server in virtual time `time`, which is zero at `t0`. Every row that falls due
/// reaches `on_event` once, at the instant at which it ended; there are no ticks.
pub fn drive<E, C>(
    plan: impl Iterator<Item = Result<Planned, E>>,
    setup: &Setup,
    time: &Arc<VirtualTime>,
    stop: &watch::Sender<Stop>,
    mut on_event: impl FnMut(Event<'_>) -> Result<(), C>,
) -> Result<Driven<E, C>, LabError> {
    let log = TruthLog::default();
    let failed = RefCell::new(None);
    let mut caller = Ok(());
    time.run(|| async {
        let clock = Clock::of_virtual(time);
        let server = Server::new(setup.sim.clone(), clock.clone(), Some(Box::new(log.clone())));
        let bodies = Arc::new(setup.bodies.clone());
        let rows = plan.map_while(|planned| {
            let planned = planned.map_err(ReplayError::Plan);
            let job = planned
                .and_then(|planned| bodies.job_in_time(planned).map_err(ReplayError::Content));
            job.map_err(|error| failed.replace(Some(error))).ok()
        });
        let mut tell = |event: Event<'_>| {
            if let (Err(error), true) = (on_event(event), caller.is_ok()) {
                caller = Err(error);
                Stop::All.request(stop);
            }
        };
        tell(Event::Started(Anchor { monotonic: clock.now(), utc: Utc(0) }));
        let ended = Rc::new(RefCell::new(VecDeque::new()));
        let shared = Arc::new(Shared::new(1));
        let (given, mut settled) = (ended.clone(), Nanos::ZERO);
        let mut hand_on = || {
            // One by one: who hears of one may stop the sending.
            loop {
                let Some(record) = given.borrow_mut().pop_front() else { break };
                tell(Event::Ended(record));
            }
            if shared.settled() > settled {
                settled = shared.settled();
                tell(Event::Settled(settled));
            }
        };
        let run = VirtualRun {
            setup,
            clock,
            server: server.clone(),
            shared: shared.clone(),
            sink: Rc::new(move |record| ended.borrow_mut().push_back(Box::new(record))),
            stop,
        };
        let mut sending = pin!(run.send(rows));
        poll_fn(|context| {
            hand_on();
            let polled = sending.as_mut().poll(context);
            hand_on();
            polled
        })
        .await;
        server.finish()
    })???;
    let ran = match (failed.into_inner(), caller) {
        (_, Err(error)) => Err(ReplayError::Caller(error)),
        (Some(error), Ok(())) => Err(error),
        (None, Ok(())) => Ok(()),
    };
    Ok((ran, log.take()))
}

/// One worker and its server.
struct VirtualRun<'a> {
    setup: &'a Setup,
    clock: Clock,
    server: Rc<Server>,
    shared: Arc<Shared>,
    sink: Rc<dyn Fn(StreamRecord)>,
    stop: &'a watch::Sender<Stop>,
}

impl VirtualRun<'_> {
    async fn send(self, rows: impl Iterator<Item = Job>) {
        match self.setup.mode {
            Mode::Open => self.work(FixedSchedule::new(), rows).await,
            Mode::Closed { slots, ramp, until } => {
                let free = Mode::first_free(slots, ramp, 1, 0);
                self.work(ClosedLoop::new(free, until), rows).await;
            }
            Mode::Capped { slots, last_due } => {
                self.work(Capped::new(FixedSchedule::new(), slots, last_due), rows).await;
            }
        }
    }

    async fn work(self, source: impl Source<Job>, rows: impl Iterator<Item = Job>) {
        let Self { setup, clock, server, shared, sink, stop } = self;
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
            handle: Rc::new(shared.worker(0)),
            sink,
        };
        worker.run().await;
    }
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
