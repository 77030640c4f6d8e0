//! One worker: asks its source what is due, waits for that, sends it, and follows every stream to
//! its end. It lives on one thread, and shares with the others only what its [`WorkerHandle`] tells.

use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::{Context, Waker};

use tokio::sync::watch;

use super::drain::{Drain, Stop, WorkerHandle};
use super::job::Job;
use super::lookahead::Rows;
use super::source::{Due, Ended, Source};
use super::streams::Streams;
use crate::client::{AttemptControl, Client};
use crate::clock::Clock;
use crate::record::{Outcome, StreamRecord};
use crate::units::Nanos;

/// How often a draining worker looks whether its streams still live.
const DRAIN_LOOK: Nanos = Nanos::from_millis(250);

/// How long a stopped run waits for the next row of its plan.
const ROW_PATIENCE: Nanos = Nanos::from_millis(250);
/// So many overdue rows are started before those that were get their turn to write.
const SENDS_AT_ONCE: u64 = 8;

/// Everything a worker needs.
pub struct Worker<S, R> {
    /// The thread's clock.
    pub clock: Clock,
    /// The run's start on that clock.
    pub t0: Nanos,
    /// What sends, by target.
    pub clients: Vec<Rc<Client>>,
    /// What is due next.
    pub source: S,
    /// Where the rows come from.
    pub rows: R,
    /// Says when the run is to end early.
    pub stop: watch::Receiver<Stop>,
    /// How long streams are followed after the last due row.
    pub drain: Drain,
    /// What the workers of a run know of each other.
    pub handle: Rc<WorkerHandle>,
    /// Takes each finished record.
    pub sink: Rc<dyn Fn(StreamRecord)>,
}

/// Why nothing more is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    /// The plan is at its end.
    Sent,
    /// The run is.
    Stopped,
}

impl<S: Source<Job>, R: Rows> Worker<S, R> {
    /// Runs until the plan is sent and every stream has ended.
    pub async fn run(mut self) {
        let streams = Rc::new(Streams::new(self.handle.clone()));
        // A clock before `t0` would read as `t0`, and the first row would leave early.
        self.clock.pace_until(self.t0).await;
        let stopped = self.send_plan(&streams).await;
        if stopped {
            // To send again is to send.
            streams.forbid_retries();
            if self.ends_all(&streams) {
                streams.cut_all();
            }
            self.handle.stopped(self.clock.now().since(self.t0));
        }
        self.handle.sends_no_more();
        if stopped {
            let until = self.last_due_of_all().await;
            self.record_unsent(until).await;
        }
        self.handle.source_done();
        self.follow(&streams).await;
        self.handle.settle(Nanos::MAX);
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
                        if row.fault.is_some() {
                            self.give_up(&row, due, streams);
                        } else {
                            self.send(opened, row, due, streams);
                        }
                        if opened % SENDS_AT_ONCE == 0 {
                            tokio::task::yield_now().await;
                        }
                    }
                    Due::Skip(row) => self.skip(&row),
                    Due::At(at) => {
                        self.waits_for(at, streams);
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
                    Due::RowBy(at) => {
                        self.waits_for(at, streams);
                        let row = tokio::select! {
                            biased;
                            () = self.clock.pace_until(self.t0 + at), if at < Nanos::MAX => None,
                            row = poll_fn(|context| self.rows.poll_next(context)) => Some(row),
                            () = streams.changed.notified() => None,
                        };
                        if let Some(row) = row {
                            self.source.offer(row);
                        }
                    }
                    Due::End => {
                        return self.wait_for_an_end(streams).await.then_some(Over::Stopped);
                    }
                    Due::Done => return Some(Over::Sent),
                }
                None
            };
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop > Stop::No) => return true,
                () = streams.panicked.notified() => streams.check(),
                over = wait => if let Some(over) = over { return over == Over::Stopped },
            }
        }
    }

    /// Nothing is due before. Where a request that ends may bring a turn, that is sure for now alone.
    fn waits_for(&self, at: Nanos, streams: &Streams) {
        let now = self.clock.now().since(self.t0);
        let sure = if self.source.awaits_turns() { at.min(now) } else { at };
        streams.dues.waits_for(sure);
    }

    /// Records a turn that has nothing to follow. It never fell due; that it would have been about now
    /// says which part of the run it belongs to.
    fn skip(&self, row: &Job) {
        let error = Some("an earlier turn of its session failed".to_owned());
        let record = row.record(self.clock.now().since(self.t0));
        (self.sink)(StreamRecord { outcome: Outcome::Skipped, error, ..record });
    }

    /// Records a turn whose body could not be made.
    fn give_up(&self, row: &Job, due: Nanos, streams: &Streams) {
        let error = row.fault.as_ref().map(ToString::to_string);
        let record = StreamRecord { outcome: Outcome::Client, error, ..row.record(due) };
        self.handle.fell_due(due);
        let at = self.clock.now().since(self.t0);
        streams.ended.borrow_mut().push(Ended { at, index: row.planned.index, failed: true });
        streams.changed.notify_one();
        (self.sink)(record);
    }

    /// Waits until a request ends; true when it is too late for that. A source that holds rows back
    /// counts as done once the last of them fell due: streams that never end would else keep them,
    /// and the run, for ever.
    async fn wait_for_an_end(&mut self, streams: &Streams) -> bool {
        let Some(last_due) = self.source.held().and_then(|held| held.last_due) else {
            streams.changed.notified().await;
            return false;
        };
        let (now, last_due_at) = (self.clock.now(), self.t0 + last_due);
        if now >= last_due_at {
            self.handle.fell_due(last_due);
            self.handle.source_done();
            if self.is_drained(streams) {
                return true;
            }
        }
        tokio::select! {
            () = streams.changed.notified() => {}
            () = self.clock.sleep_until(last_due_at.max(now + DRAIN_LOOK)) => {}
        }
        false
    }

    fn send(&self, id: u64, job: Job, due: Nanos, streams: &Rc<Streams>) {
        self.handle.sent(due);
        let watch = Rc::new(AttemptControl::default());
        streams.open.borrow_mut().insert(id, watch.clone());
        streams.dues.sent(id, due);
        // The maker of bodies spread them over as many targets as there are clients.
        let client = self.clients[job.target as usize % self.clients.len()].clone();
        let (sink, streams) = (self.sink.clone(), streams.clone());
        let (record, index_in_plan) = (job.record(due), job.planned.index);
        let mut request = Box::pin(streams.clone().carry_out(async move {
            let record = client.perform(record, job.body, &watch).await;
            streams.open.borrow_mut().remove(&id);
            let (at, failed) = (record.close.unwrap_or(due), record.outcome.is_error());
            streams.ended.borrow_mut().push(Ended { at, index: index_in_plan, failed });
            streams.changed.notify_one();
            sink(record);
            streams.dues.ended(id, due);
        }));
        // Its first steps at once, not behind all the streams whose turn it is. As a task it is polled
        // again, so that nothing is lost to a waker that wakes nobody. In virtual time waiting for a turn
        // takes no time, and a server that closes at this very instant is to be seen closing.
        let mut context = Context::from_waker(Waker::noop());
        if self.clock.is_virtual() || request.as_mut().poll(&mut context).is_pending() {
            tokio::task::spawn_local(request);
        }
    }

    /// The instant up to which rows fell due in this run: the same for all workers, or there would be
    /// holes among the rows, since they do not stop at the same instant.
    async fn last_due_of_all(&self) -> Nanos {
        loop {
            if let Some(until) = self.handle.shared().end_of_sends() {
                return until;
            }
            self.clock.sleep_until(self.clock.now() + Nanos::from_millis(1)).await;
        }
    }

    /// Rows that fell due by `until` and were not sent are rows all the same.
    async fn record_unsent(&mut self, until: Nanos) {
        let error = match self.source.held() {
            None => "the run ended before it was sent",
            Some(_) => "the run ended before --max-in-flight let it be sent",
        };
        self.source.release();
        loop {
            match self.source.next(until, &[]) {
                Due::Send { row, due } => {
                    let error = Some(error.to_owned());
                    let record =
                        StreamRecord { outcome: Outcome::Unsent, error, ..row.record(due) };
                    self.handle.fell_due(due);
                    (self.sink)(record);
                }
                // Rows that are due may still be with their maker; a source that says nothing any
                // more is not waited for.
                Due::Row | Due::RowBy(_) => {
                    let patience = self.clock.sleep_until(self.clock.now() + ROW_PATIENCE);
                    tokio::select! {
                        row = poll_fn(|context| self.rows.poll_next(context)) => self.source.offer(row),
                        () = patience => return,
                    }
                }
                Due::Skip(row) => self.skip(&row),
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
            streams.check();
            if !cut && self.ends_all(streams) {
                cut = true;
                streams.cut_all();
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
        streams.check();
    }

    /// Whether open streams are to be cut.
    fn ends_all(&self, streams: &Streams) -> bool {
        *self.stop.borrow() == Stop::All || self.is_drained(streams)
    }

    fn is_drained(&self, streams: &Streams) -> bool {
        let last = streams.open.borrow().values().map(|watch| watch.last_byte()).max();
        self.handle.saw_life(last.unwrap_or_default());
        self.handle.shared().is_drained(self.drain, self.t0, self.clock.now())
    }
}
