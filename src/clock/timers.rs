//! Deadlines and who to wake at them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use crate::units::Nanos;

/// A place in the timer: deadlines in order, first come first served among equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket {
    deadline: Nanos,
    number: u64,
}

/// The pending sleeps of one clock. The lock is never contended in real time (one thread), and it
/// is what lets the runtime's idle hook reach the sleepers in virtual time.
#[derive(Debug)]
pub(super) struct Timers {
    inner: Mutex<Inner>,
    /// The earliest deadline, for those who only want to know whether it has passed.
    earliest: AtomicU64,
}

impl Default for Timers {
    fn default() -> Self {
        Self { inner: Mutex::default(), earliest: AtomicU64::new(u64::MAX) }
    }
}

#[derive(Debug, Default)]
struct Inner {
    sleepers: BTreeMap<Ticket, Waker>,
    issued: u64,
    /// Woken when a sleeper with the earliest deadline of all comes in.
    server: Option<Waker>,
}

impl Timers {
    pub(super) fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn insert(&self, deadline: Nanos, waker: Waker) -> Ticket {
        let mut inner = self.lock();
        inner.issued += 1;
        let ticket = Ticket { deadline, number: inner.issued };
        let is_first = inner.sleepers.first_key_value().is_none_or(|(first, _)| ticket < *first);
        inner.sleepers.insert(ticket, waker);
        self.note_earliest(&inner);
        drop(inner);
        if is_first {
            self.wake_server();
        }
        ticket
    }

    /// Wakes whoever serves this timer.
    fn wake_server(&self) {
        let server = self.lock().server.take();
        if let Some(server) = server {
            server.wake();
        }
    }

    /// Gives a pending sleep another waker; false when it is no longer pending.
    pub(super) fn renew(&self, ticket: Ticket, waker: &Waker) -> bool {
        let mut inner = self.lock();
        inner.sleepers.get_mut(&ticket).map(|pending| pending.clone_from(waker)).is_some()
    }

    pub(super) fn remove(&self, ticket: Ticket) {
        let mut inner = self.lock();
        inner.sleepers.remove(&ticket);
        self.note_earliest(&inner);
    }

    fn note_earliest(&self, inner: &Inner) {
        let first = inner.sleepers.first_key_value();
        let earliest = first.map_or(u64::MAX, |(ticket, _)| ticket.deadline.0);
        self.earliest.store(earliest, Ordering::Relaxed);
    }

    /// Whether some deadline is not after `now`; takes no lock.
    pub(super) fn is_due(&self, now: Nanos) -> bool {
        self.earliest.load(Ordering::Relaxed) <= now.0
    }

    pub(super) fn next(&self) -> Option<Nanos> {
        self.lock().sleepers.first_key_value().map(|(ticket, _)| ticket.deadline)
    }

    /// Asks to be woken when the earliest deadline gets earlier.
    pub(super) fn watch(&self, waker: Waker) {
        self.lock().server = Some(waker);
    }

    /// Wakes everyone whose deadline is not after `now`; says whether there was anyone.
    pub(super) fn fire(&self, now: Nanos) -> bool {
        let mut fired = false;
        loop {
            let mut inner = self.lock();
            match inner.sleepers.first_entry() {
                Some(entry) if entry.key().deadline <= now => {
                    let waker = entry.remove();
                    self.note_earliest(&inner);
                    drop(inner);
                    waker.wake();
                    fired = true;
                }
                _ => return fired,
            }
        }
    }
}
