//! One worker: asks its source what is due, waits for that, sends it, and follows every stream to
//! its end. It lives on one thread, and shares with the others only what [`Shared`] holds.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::sync::{Notify, watch};

use super::drain::{Drain, Shared, Stop};
use super::job::Job;
use super::lookahead::Rows;
use super::open_dues::OpenDues;
use super::source::{Due, Ended, Source};
use crate::client::{Client, Watch};
use crate::clock::Clock;
use crate::record::{Outcome, StreamRecord};
use crate::units::Nanos;

/// How often a draining worker looks whether its streams still live.
const DRAIN_LOOK: Nanos = Nanos::from_millis(250);

/// How often a stopped worker looks whether the others have noticed the stop, and how many times at the
/// most: a second.
const STOP_LOOK: Nanos = Nanos::from_millis(1);
const STOP_LOOKS: u32 = 1_000;

/// So many overdue rows are started before those that were get their turn to write.
const SENDS_AT_ONCE: u64 = 16;

/// Everything a worker needs.
pub struct Worker<S, R> {
    /// The thread's clock.
    pub clock: Clock,
    /// The run's start on that clock.
    pub t0: Nanos,
    /// What sends.
    pub client: Rc<Client>,
    /// What is due next.
    pub source: S,
    /// Where the rows come from.
    pub rows: R,
    /// Says when the run is to end early.
    pub stop: watch::Receiver<Stop>,
    /// How long streams are followed after the last due row.
    pub drain: Drain,
    /// What the workers of a run know of each other.
    pub shared: Arc<Shared>,
    /// This worker's place in `shared`.
    pub index: usize,
    /// Takes each finished record.
    pub sink: Rc<dyn Fn(StreamRecord)>,
}

/// The open streams of a worker.
#[derive(Default)]
struct Streams {
    open: RefCell<HashMap<u64, Rc<Watch>>>,
    ended: RefCell<Vec<Ended>>,
    dues: OpenDues,
    changed: Notify,
}

impl<S: Source<Job>, R: Rows> Worker<S, R> {
    /// Runs until the plan is sent and every stream has ended.
    pub async fn run(mut self) {
        let streams = Rc::new(Streams::default());
        // A clock before `t0` would read as `t0`, and the first row would leave early.
        self.clock.pace_until(self.t0).await;
        let stopped = self.send_plan(&streams).await;
        if stopped {
            self.shared.stopped(self.index, self.clock.now().since(self.t0));
        }
        self.shared.source_done(self.index);
        if stopped {
            let until = self.common_stop().await;
            self.record_unsent(until);
        }
        self.follow(&streams).await;
        self.shared.settle(self.index, Nanos::MAX);
    }

    /// Sends row after row as the source says; true when the run was stopped before its end.
    async fn send_plan(&mut self, streams: &Rc<Streams>) -> bool {
        let mut ended = Vec::new();
        let mut opened = 0;
        let mut stop = self.stop.clone();
        loop {
            ended.clear();
            ended.append(&mut streams.ended.borrow_mut());
            let wait = async {
                match self.source.next(self.clock.now().since(self.t0), &ended) {
                    Due::Send { row, due } => {
                        opened += 1;
                        self.send(opened, row, due, streams);
                        if opened % SENDS_AT_ONCE == 0 {
                            tokio::task::yield_now().await;
                        }
                    }
                    Due::At(at) => {
                        streams.dues.waits_for(at, &self.shared, self.index);
                        tokio::select! {
                            biased;
                            () = self.clock.pace_until(self.t0 + at) => {}
                            () = streams.changed.notified() => {}
                        }
                    }
                    Due::Row => {
                        let row = poll_fn(|context| self.rows.poll_next(context)).await;
                        self.source.offer(row);
                    }
                    Due::End => streams.changed.notified().await,
                    Due::Done => return true,
                }
                false
            };
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop > Stop::No) => return true,
                done = wait => if done { return false },
            }
        }
    }

    fn send(&self, id: u64, job: Job, due: Nanos, streams: &Rc<Streams>) {
        self.shared.sent(self.index, due);
        let watch = Rc::new(Watch::default());
        streams.open.borrow_mut().insert(id, watch.clone());
        streams.dues.sent(id, due, &self.shared, self.index);
        let (shared, index) = (self.shared.clone(), self.index);
        let (client, sink, streams) = (self.client.clone(), self.sink.clone(), streams.clone());
        let record = job.record(due);
        tokio::task::spawn_local(async move {
            let record = client.perform(record, job.body, &watch).await;
            streams.open.borrow_mut().remove(&id);
            streams.ended.borrow_mut().push(Ended { at: record.close.unwrap_or(due) });
            streams.changed.notify_one();
            sink(record);
            streams.dues.ended(id, due, &shared, index);
        });
    }

    /// When the last worker noticed the stop: no row that was due by then may be missing, even where
    /// this worker noticed earlier than another that went on sending.
    async fn common_stop(&self) -> Nanos {
        for _ in 0..STOP_LOOKS {
            if self.shared.all_sources_done() {
                break;
            }
            self.clock.sleep_until(self.clock.now() + STOP_LOOK).await;
        }
        self.shared.last_stop()
    }

    /// Rows that fell due before the stop and were not sent are rows all the same.
    fn record_unsent(&mut self, now: Nanos) {
        let mut context = Context::from_waker(Waker::noop());
        loop {
            match self.source.next(now, &[]) {
                Due::Send { row, due } => {
                    let error = Some("the run ended before it was sent".to_owned());
                    let record =
                        StreamRecord { outcome: Outcome::Unsent, error, ..row.record(due) };
                    self.shared.fell_due(self.index, due);
                    (self.sink)(record);
                }
                Due::Row => match self.rows.poll_next(&mut context) {
                    Poll::Ready(row) => self.source.offer(row),
                    Poll::Pending => return,
                },
                Due::At(_) | Due::End | Due::Done => return,
            }
        }
    }

    /// Follows the open streams to their ends, or cuts them when the drain limit says so.
    async fn follow(&mut self, streams: &Streams) {
        let mut cut = false;
        let mut stop = self.stop.clone();
        let mut look_at = self.clock.now();
        while !streams.open.borrow().is_empty() {
            if !cut && (*stop.borrow() == Stop::All || self.is_drained(streams)) {
                cut = true;
                streams.open.borrow().values().for_each(|watch| watch.cut());
            }
            look_at = look_at.max(self.clock.now()) + DRAIN_LOOK;
            let look = self.clock.sleep_until(look_at);
            let emptied = async {
                while !streams.open.borrow().is_empty() {
                    streams.changed.notified().await;
                }
            };
            tokio::select! {
                () = emptied => {}
                _ = stop.wait_for(|stop| *stop == Stop::All), if !cut => {}
                () = look => {}
            }
        }
    }

    fn is_drained(&self, streams: &Streams) -> bool {
        let last = streams.open.borrow().values().map(|watch| watch.last_byte()).max();
        self.shared.saw_life(self.index, last.unwrap_or_default());
        self.shared.is_drained(self.drain, self.t0, self.clock.now())
    }
}
