//! The workers of a run: started together, led from the caller's thread, joined at the end.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use tokio::sync::{oneshot, watch};

use super::drain::{Shared, Stop, WorkerHandle};
use super::error::Panicked;
use super::gate::Capped;
use super::heartbeat::{Beats, beat};
use super::job::Job;
use super::lookahead::Lookahead;
use super::records::{self, RecordReceiver, RecordSender};
use super::source::{ClosedLoop, FixedSchedule, Source, Turns};
use super::worker::Worker;
use super::{Event, Mode, Setup};
use crate::client::{Client, Dial, Dialled, Endpoint, Pool};
use crate::clock::{Anchor, Clock, monotonic, wake_at_once};
use crate::record::StreamRecord;
use crate::units::{NS_PER_MS, Nanos};

/// Records that have ended and wait to be written: some hundred thousand, of answers of usual length.
const RECORD_QUEUE_BYTES: usize = 256 << 20;
const TICK_SPAN: Nanos = Nanos::from_millis(200);
/// The caller hears a tick at least this often.
const TICK: Duration = Duration::from_millis(TICK_SPAN.0 / NS_PER_MS);
/// From the last preparation to `t0`: time for every worker to arm its timer.
const LEAD: Nanos = Nanos::from_millis(20);

/// Turns of streams between two looks at what is due, at sockets and at the timer: a send that is due
/// waits for no more than these, some 50 µs where each turn is one read of one token.
const TURNS_PER_LOOK: u32 = 8;

/// Why a worker did not do its work.
#[derive(Debug)]
pub(super) enum WorkerError {
    /// It could not be started.
    Start(io::Error),
    Panicked(Panicked),
}

/// The workers of a run, seen from the thread that started them.
pub(super) struct Crew<'scope> {
    threads: Vec<ScopedJoinHandle<'scope, Result<(), WorkerError>>>,
    /// One a worker: its `t0`.
    starts: Vec<oneshot::Sender<Nanos>>,
    /// Says something once per worker that is ready: what it has dialled.
    ready: Receiver<Dialled>,
    records: RecordReceiver,
    shared: Arc<Shared>,
}

impl<'scope> Crew<'scope> {
    pub(super) fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        setup: &'env Setup,
        queues: &[Arc<Lookahead>],
        stop: &watch::Sender<Stop>,
        inspect: fn(usize, &StreamRecord),
    ) -> Result<Self, WorkerError> {
        let shared = Arc::new(Shared::new(queues.len()));
        let (ended, records) = records::queue(RECORD_QUEUE_BYTES, shared.clone());
        let (say_ready, ready) = mpsc::channel();
        let mut crew = Self { threads: Vec::new(), starts: Vec::new(), ready, records, shared };
        for (index, queue) in queues.iter().enumerate() {
            let (start, started) = oneshot::channel();
            let worker = WorkerSetup {
                index,
                workers: queues.len(),
                queue: queue.clone(),
                handle: crew.shared.worker(index),
                stop: stop.subscribe(),
                inspect,
            };
            let (say_ready, ended) = (say_ready.clone(), ended.clone());
            let (name, stop) = (format!("worker-{index}"), stop.clone());
            let thread = std::thread::Builder::new().name(name.clone());
            let run = move || {
                let ran = Panicked::catch(&name, || worker.run(setup, say_ready, started, ended));
                ran.map_err(|panicked| {
                    // Without it the load is no longer the one that was asked for.
                    Stop::Sending.request(&stop);
                    WorkerError::Panicked(panicked)
                })?
                .map_err(WorkerError::Start)
            };
            let thread = thread.spawn_scoped(scope, run).map_err(WorkerError::Start)?;
            crew.threads.push(thread);
            crew.starts.push(start);
        }
        Ok(crew)
    }

    /// Gives the sign to start once all are ready, and hands on what they report until all are done.
    pub(super) fn lead<C>(
        &mut self,
        stop: &watch::Sender<Stop>,
        mut on_event: impl FnMut(Event<'_>) -> Result<(), C>,
    ) -> Result<(), C> {
        let mut caller = self.give_start(&mut on_event);
        let mut ticked = monotonic();
        let (mut told, mut settled) = (Nanos::ZERO, Nanos::ZERO);
        loop {
            let event = match self.records.try_recv() {
                Ok(record) => Some(Event::Ended(record)),
                // Read before the queue was seen to be empty: all that it speaks of has been told.
                Err(TryRecvError::Empty) if settled > told => {
                    told = settled;
                    Some(Event::Settled(settled))
                }
                Err(_) => {
                    settled = self.shared.settled();
                    match self.records.recv_timeout(TICK) {
                        Ok(record) => Some(Event::Ended(record)),
                        Err(RecvTimeoutError::Timeout) => None,
                        Err(RecvTimeoutError::Disconnected) => {
                            return caller.and_then(|()| on_event(Event::Tick(&self.shared)));
                        }
                    }
                }
            };
            let tick = monotonic().since(ticked) >= TICK_SPAN;
            // A caller that failed once still gets every record: what was measured counts, whether
            // or not it can be written.
            let taken = event.map_or(Ok(()), &mut on_event);
            caller = caller.and(taken);
            if tick && caller.is_ok() {
                ticked = monotonic();
                caller = on_event(Event::Tick(&self.shared));
            }
            if caller.is_err() {
                Stop::All.request(stop);
            }
        }
    }

    fn give_start<C>(
        &mut self,
        on_event: &mut impl FnMut(Event<'_>) -> Result<(), C>,
    ) -> Result<(), C> {
        let starts = std::mem::take(&mut self.starts);
        // A worker that cannot start drops its end without a word; its error comes at the join.
        let ready: Vec<Dialled> = self.ready.iter().take(starts.len()).collect();
        if ready.len() < starts.len() {
            return Ok(());
        }
        let mut dialled = Dialled::default();
        for more in ready {
            dialled.add(more);
        }
        let heard =
            if dialled == Dialled::default() { Ok(()) } else { on_event(Event::Dialled(dialled)) };
        let now = Anchor::now();
        let t0 = now.monotonic + LEAD;
        let told = on_event(Event::Started(Anchor { monotonic: t0, utc: now.utc_at(t0) }));
        for start in starts {
            let _ = start.send(t0);
        }
        heard.and(told)
    }

    pub(super) fn join(self) -> Result<(), WorkerError> {
        let joined = |thread: ScopedJoinHandle<'scope, _>| {
            thread.join().expect("a worker's panic is caught in its thread")
        };
        self.threads.into_iter().try_for_each(joined)
    }
}

/// How many of `slots` are those of worker `index` of `workers`.
fn share_of(slots: usize, workers: usize, index: usize) -> usize {
    slots / workers + usize::from(index < slots % workers)
}

/// A worker's thread before it has a clock.
struct WorkerSetup {
    index: usize,
    /// In all.
    workers: usize,
    queue: Arc<Lookahead>,
    handle: WorkerHandle,
    stop: watch::Receiver<Stop>,
    inspect: fn(usize, &StreamRecord),
}

/// What a worker has once the run has begun.
struct StartedRun {
    clock: Clock,
    t0: Nanos,
    clients: Vec<Rc<Client>>,
    records: RecordSender,
}

impl WorkerSetup {
    fn run(
        self,
        setup: &Setup,
        ready: Sender<Dialled>,
        start: oneshot::Receiver<Nanos>,
        records: RecordSender,
    ) -> io::Result<()> {
        wake_at_once();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .event_interval(TURNS_PER_LOOK)
            .build_local(tokio::runtime::LocalOptions::default())?;
        runtime.block_on(async move {
            let clock = Clock::real()?;
            let pool = |target: &Endpoint| Pool::new(Dial::route(&target.route), clock.clone());
            let pools: Vec<Pool> = setup.targets.iter().map(pool).collect();
            let _ = ready.send(self.dial_ahead(setup, &clock, &pools).await);
            // Held on to, it would keep the leader waiting for workers that never came to be.
            drop(ready);
            let Ok(t0) = start.await else {
                return Ok(());
            };
            let clients = std::iter::zip(pools, &setup.targets)
                .map(|(pool, target)| {
                    Client::over(pool, clock.clone(), t0, target.settings.clone())
                })
                .collect();
            let started = StartedRun { clock, t0, clients, records };
            match setup.mode {
                Mode::Open => self.work(setup, started, FixedSchedule::new()).await,
                Mode::Closed { slots, ramp, until } => {
                    let free = Mode::first_free(slots, ramp, self.workers, self.index);
                    self.work(setup, started, ClosedLoop::new(free, until)).await;
                }
                Mode::Capped { slots, last_due } => {
                    let slots = share_of(slots, self.workers, self.index);
                    let source = Capped::new(FixedSchedule::new(), slots, last_due);
                    self.work(setup, started, source).await;
                }
            }
            Ok(())
        })
    }

    /// Dials this worker's share of the connections, unless the run is stopped meanwhile.
    async fn dial_ahead(&self, setup: &Setup, clock: &Clock, pools: &[Pool]) -> Dialled {
        let mine = share_of(setup.predial, self.workers, self.index);
        let mut stop = self.stop.clone();
        let mut dialled = Dialled::default();
        for (index, (pool, target)) in std::iter::zip(pools, &setup.targets).enumerate() {
            let count = share_of(mine, pools.len(), index);
            let limit = target.settings.timeouts.connect;
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop > Stop::No) => break,
                more = pool.dial_ahead(clock, count, limit) => dialled.add(more),
            }
        }
        dialled
    }

    async fn work(self, setup: &Setup, started: StartedRun, source: impl Source<Job>) {
        let StartedRun { clock, t0, clients, records } = started;
        let beats = Rc::<RefCell<Beats>>::default();
        let heart = tokio::task::spawn_local(beat(clock.clone(), beats.clone()));
        let (index, inspect) = (self.index, self.inspect);
        // The leader listens until nobody holds this, and then asks for the beats.
        let (handle, _held) = (Rc::new(self.handle), records.clone());
        let worker = Worker {
            clients,
            clock,
            t0,
            source: Turns::new(source, setup.until),
            rows: self.queue,
            stop: self.stop,
            drain: setup.drain,
            handle: handle.clone(),
            sink: Rc::new(move |record| {
                inspect(index, &record);
                records.send(record);
            }),
        };
        worker.run().await;
        heart.abort();
        handle.leave_beats(&beats.borrow());
    }
}
