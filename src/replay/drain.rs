//! What the workers of a run know of each other, and what is decided by it: how long streams are followed after the
//! last due row, and up to when rows fell due in a run that was stopped.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::heartbeat::{Beats, Heartbeat};
use crate::clock::monotonic;
use crate::units::Nanos;

/// What a run is to do from now on. It only ever goes further.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// Follow the plan.
    #[default]
    No,
    /// Send no more, and follow what is in flight.
    Sending,
    /// Send no more, and cut what is in flight.
    All,
}

impl Stop {
    /// Makes it go as far as this.
    pub fn request(self, stop: &watch::Sender<Self>) {
        stop.send_if_modified(|stop| {
            let further = self > *stop;
            *stop = self.max(*stop);
            further
        });
    }
}

/// When streams that are still open after the last due row are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drain {
    /// When no open stream has received a byte for this long.
    Quiet(Nanos),
    /// This long after the last due row.
    After(Nanos),
    /// Never.
    Unlimited,
}

/// As `--drain` takes it; the quiet time of the default in words.
impl fmt::Display for Drain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quiet(span) => write!(f, "quiet for {} s", span.as_secs_f64()),
            Self::After(span) => write!(f, "{}s", span.as_secs_f64()),
            Self::Unlimited => f.write_str("unlimited"),
        }
    }
}

crate::units::serialize_as_text!(Drain);

impl Default for Drain {
    fn default() -> Self {
        Self::Quiet(Nanos::from_secs(60))
    }
}

/// What the workers of a run know of each other. Touched once per request, never per token.
#[derive(Debug)]
pub struct Shared {
    workers: Vec<Slot>,
    /// Of workers that are done.
    beats: Mutex<Beats>,
    waits: AtomicU64,
    waited_ns: AtomicU64,
}

/// How often, and for how long, workers stood still since the caller had not taken what they had measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitsForCaller {
    /// Times.
    pub count: u64,
    /// Summed over the workers.
    pub span: Nanos,
}

/// One worker's figures, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Slot {
    sent: AtomicU64,
    last_due: AtomicU64,
    last_byte: AtomicU64,
    settled: AtomicU64,
    stopped: AtomicU64,
    /// No row falls due any more.
    source_done: AtomicBool,
    /// Nothing is sent any more.
    sends_no_more: AtomicBool,
}

/// One worker's part in what all share. However the worker ends, its handle says that nothing more comes of it:
/// the others wait for that.
#[derive(Debug)]
pub struct WorkerHandle {
    shared: Arc<Shared>,
    index: usize,
}

impl Shared {
    /// For so many workers.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self {
            workers: std::iter::repeat_with(Slot::default).take(workers).collect(),
            beats: Mutex::default(),
            waits: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
        }
    }

    /// Requests sent so far.
    #[must_use]
    pub fn sent_count(&self) -> u64 {
        self.workers.iter().map(|slot| slot.sent.load(Ordering::Relaxed)).sum()
    }

    /// How late the workers woke, of those that are done.
    #[must_use]
    pub fn heartbeat(&self) -> Option<Heartbeat> {
        self.beats.lock().unwrap_or_else(PoisonError::into_inner).figures()
    }

    /// Waits for a caller that was behind; `None` where there was none.
    #[must_use]
    pub fn waits_for_caller(&self) -> Option<WaitsForCaller> {
        let count = self.waits.load(Ordering::Relaxed);
        let span = Nanos(self.waited_ns.load(Ordering::Relaxed));
        (count > 0).then_some(WaitsForCaller { count, span })
    }

    pub(super) fn wait_for_caller(&self, wait: impl FnOnce()) {
        let from = monotonic();
        self.waits.fetch_add(1, Ordering::Relaxed);
        wait();
        self.waited_ns.fetch_add(monotonic().since(from).0, Ordering::Relaxed);
    }

    /// The part of one of them, which is to be asked for once.
    ///
    /// # Panics
    ///
    /// Where there are fewer workers.
    #[must_use]
    pub fn worker(self: &Arc<Self>, index: usize) -> WorkerHandle {
        assert!(index < self.workers.len(), "there are fewer workers");
        WorkerHandle { shared: Arc::clone(self), index }
    }

    /// Up to when every request of every worker has ended, and was handed over.
    #[must_use]
    pub fn settled(&self) -> Nanos {
        let all = self.workers.iter().map(|slot| slot.settled.load(Ordering::Acquire));
        Nanos(all.min().unwrap_or(0))
    }

    /// Once no worker sends any more: the last instant at which one of them might have.
    pub(super) fn end_of_sends(&self) -> Option<Nanos> {
        self.all(|slot| &slot.sends_no_more)
            .then(|| self.latest(|slot| &slot.stopped).max(self.latest(|slot| &slot.last_due)))
    }

    fn all(&self, of: fn(&Slot) -> &AtomicBool) -> bool {
        self.workers.iter().all(|slot| of(slot).load(Ordering::Acquire))
    }

    fn latest(&self, of: fn(&Slot) -> &AtomicU64) -> Nanos {
        Nanos(self.workers.iter().map(|slot| of(slot).load(Ordering::Relaxed)).max().unwrap_or(0))
    }

    /// Whether open streams are to be cut at `now`. The last due row is known once no source can
    /// send any more.
    pub(super) fn is_drained(&self, drain: Drain, t0: Nanos, now: Nanos) -> bool {
        if !self.all(|slot| &slot.source_done) {
            return false;
        }
        let last_due = t0 + self.latest(|slot| &slot.last_due);
        match drain {
            Drain::Unlimited => false,
            Drain::After(span) => now >= last_due + span,
            Drain::Quiet(span) => now >= last_due.max(self.latest(|slot| &slot.last_byte)) + span,
        }
    }
}

impl WorkerHandle {
    /// What all share.
    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    fn slot(&self) -> &Slot {
        &self.shared.workers[self.index]
    }

    /// It is done, and leaves its beats.
    pub(super) fn leave_beats(&self, beats: &Beats) {
        self.shared.beats.lock().unwrap_or_else(PoisonError::into_inner).add(beats);
    }

    pub(super) fn sent(&self, due: Nanos) {
        self.slot().sent.fetch_add(1, Ordering::Relaxed);
        self.fell_due(due);
    }

    pub(super) fn fell_due(&self, due: Nanos) {
        self.slot().last_due.fetch_max(due.0, Ordering::Relaxed);
    }

    pub(super) fn saw_life(&self, at: Nanos) {
        self.slot().last_byte.fetch_max(at.0, Ordering::Relaxed);
    }

    /// Every request of this worker that was due before has ended, and was handed over.
    pub(super) fn settle(&self, before: Nanos) {
        self.slot().settled.store(before.0, Ordering::Release);
    }

    /// Its source brings no more rows.
    pub(super) fn source_done(&self) {
        self.slot().source_done.store(true, Ordering::Release);
    }

    /// The run was stopped, as this worker saw it at `at`.
    pub(super) fn stopped(&self, at: Nanos) {
        self.slot().stopped.fetch_max(at.0, Ordering::Relaxed);
    }

    pub(super) fn sends_no_more(&self) {
        self.slot().sends_no_more.store(true, Ordering::Release);
    }
}

impl Drop for WorkerHandle {
    fn drop(&mut self) {
        self.source_done();
        self.sends_no_more();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_drain_waits_for_the_last_byte_of_any_worker() {
        let shared = Arc::new(Shared::new(2));
        let (one, two) = (shared.worker(0), shared.worker(1));
        let (t0, s) = (Nanos::from_secs(100), Nanos::from_secs);
        one.sent(s(10));
        two.saw_life(s(130));
        let drained = |drain, at| shared.is_drained(drain, t0, s(at));
        one.source_done();
        assert!(!drained(Drain::After(s(0)), 1000), "the other source may still send");
        // It need not say so itself.
        drop(two);
        assert!(!drained(Drain::Quiet(s(60)), 189));
        assert!(drained(Drain::Quiet(s(60)), 190));
        assert!(drained(Drain::After(s(5)), 115) && !drained(Drain::After(s(5)), 114));
        assert!(!drained(Drain::Unlimited, 1_000_000));
        assert_eq!(shared.sent_count(), 1);
    }

    #[test]
    fn rows_fall_due_until_the_last_worker_stopped() {
        let shared = Arc::new(Shared::new(2));
        let (one, two) = (shared.worker(0), shared.worker(1));
        one.stopped(Nanos(5));
        one.sends_no_more();
        assert_eq!(shared.end_of_sends(), None);
        two.sent(Nanos(7));
        two.stopped(Nanos(6));
        drop(two);
        assert_eq!(shared.end_of_sends(), Some(Nanos(7)));
    }
}
