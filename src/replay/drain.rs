//! How long streams are followed after the last due row, decided over all workers together.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

use super::heartbeat::{Beats, Heartbeat};
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
    /// Sources that may still send.
    sources_left: AtomicUsize,
    /// Workers that may still send.
    senders_left: AtomicUsize,
    workers: Vec<Slot>,
    /// Of workers that are done.
    beats: Mutex<Beats>,
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
}

impl Shared {
    /// For so many workers.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self {
            sources_left: AtomicUsize::new(workers),
            senders_left: AtomicUsize::new(workers),
            workers: std::iter::repeat_with(Slot::default).take(workers).collect(),
            beats: Mutex::default(),
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

    /// A worker is done, and leaves its beats.
    pub(super) fn leave_beats(&self, beats: &Beats) {
        self.beats.lock().unwrap_or_else(PoisonError::into_inner).add(beats);
    }

    pub(super) fn sent(&self, worker: usize, due: Nanos) {
        self.workers[worker].sent.fetch_add(1, Ordering::Relaxed);
        self.fell_due(worker, due);
    }

    pub(super) fn fell_due(&self, worker: usize, due: Nanos) {
        self.workers[worker].last_due.fetch_max(due.0, Ordering::Relaxed);
    }

    pub(super) fn saw_life(&self, worker: usize, at: Nanos) {
        self.workers[worker].last_byte.fetch_max(at.0, Ordering::Relaxed);
    }

    /// Every request of this worker that was due before has ended, and was handed over.
    pub(super) fn settle(&self, worker: usize, before: Nanos) {
        self.workers[worker].settled.store(before.0, Ordering::Release);
    }

    /// Up to when that is so of all workers.
    pub(super) fn settled(&self) -> Nanos {
        let all = self.workers.iter().map(|slot| slot.settled.load(Ordering::Acquire));
        Nanos(all.min().unwrap_or(0))
    }

    /// Whether every source is done.
    pub(super) fn all_sources_done(&self) -> bool {
        self.sources_left.load(Ordering::Acquire) == 0
    }

    pub(super) fn source_done(&self, worker: usize) {
        debug_assert!(worker < self.workers.len());
        self.sources_left.fetch_sub(1, Ordering::Release);
    }

    /// The run was stopped, as this worker saw it at `at`.
    pub(super) fn stopped(&self, worker: usize, at: Nanos) {
        self.workers[worker].stopped.fetch_max(at.0, Ordering::Relaxed);
    }

    /// A worker sends nothing any more.
    pub(super) fn sends_no_more(&self) {
        self.senders_left.fetch_sub(1, Ordering::Release);
    }

    /// Once no worker sends any more: the last instant at which one of them might have.
    pub(super) fn end_of_sends(&self) -> Option<Nanos> {
        (self.senders_left.load(Ordering::Acquire) == 0)
            .then(|| self.latest(|slot| &slot.stopped).max(self.latest(|slot| &slot.last_due)))
    }

    fn latest(&self, of: fn(&Slot) -> &AtomicU64) -> Nanos {
        Nanos(self.workers.iter().map(|slot| of(slot).load(Ordering::Relaxed)).max().unwrap_or(0))
    }

    /// Whether open streams are to be cut at `now`. The last due row is known once no source can
    /// send any more.
    pub(super) fn is_drained(&self, drain: Drain, t0: Nanos, now: Nanos) -> bool {
        if !self.all_sources_done() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_drain_waits_for_the_last_byte_of_any_worker() {
        let shared = Shared::new(2);
        let (t0, s) = (Nanos::from_secs(100), Nanos::from_secs);
        shared.sent(0, s(10));
        shared.saw_life(1, s(130));
        let drained = |drain, at| shared.is_drained(drain, t0, s(at));
        shared.source_done(0);
        assert!(!drained(Drain::After(s(0)), 1000), "the other source may still send");
        shared.source_done(1);
        assert!(!drained(Drain::Quiet(s(60)), 189));
        assert!(drained(Drain::Quiet(s(60)), 190));
        assert!(drained(Drain::After(s(5)), 115) && !drained(Drain::After(s(5)), 114));
        assert!(!drained(Drain::Unlimited, 1_000_000));
        assert_eq!(shared.sent_count(), 1);
    }

    #[test]
    fn rows_fall_due_until_the_last_worker_stopped() {
        let shared = Shared::new(2);
        shared.stopped(0, Nanos(5));
        shared.sends_no_more();
        assert_eq!(shared.end_of_sends(), None);
        shared.sent(1, Nanos(7));
        shared.stopped(1, Nanos(6));
        shared.sends_no_more();
        assert_eq!(shared.end_of_sends(), Some(Nanos(7)));
    }
}
