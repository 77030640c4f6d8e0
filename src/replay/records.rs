//! Records on their way from the workers to the caller, bounded in bytes. A worker that finds no room stands still,
//! with all its streams, and that is counted: a caller that writes too slowly is to be heard of.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::drain::Shared;
use crate::record::StreamRecord;

/// The bytes under way.
#[derive(Debug)]
struct Room {
    bytes: AtomicUsize,
    limit_bytes: usize,
    /// Nobody takes records any more.
    closed: AtomicBool,
    lock: Mutex<()>,
    freed: Condvar,
}

impl Room {
    fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Acquire) >= self.limit_bytes
            && !self.closed.load(Ordering::Acquire)
    }

    /// Waits until it is no longer full.
    fn wait(&self) {
        let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.freed.wait_while(lock, |()| self.is_full()));
    }

    /// Wakes who waits. None can have found it full before this and begin to wait after it.
    fn wake(&self) {
        drop(self.lock.lock());
        self.freed.notify_all();
    }
}

/// A worker's end.
#[derive(Clone)]
pub(super) struct RecordSender {
    records: Sender<Box<StreamRecord>>,
    room: Arc<Room>,
    shared: Arc<Shared>,
}

/// The caller's end.
pub(super) struct RecordReceiver {
    records: Receiver<Box<StreamRecord>>,
    room: Arc<Room>,
}

/// A queue of at most so many bytes, and a record more of each worker; what is waited for is told to `shared`.
pub(super) fn queue(limit_bytes: usize, shared: Arc<Shared>) -> (RecordSender, RecordReceiver) {
    let (sender, receiver) = mpsc::channel();
    let room = Arc::new(Room {
        bytes: AtomicUsize::new(0),
        limit_bytes,
        closed: AtomicBool::new(false),
        lock: Mutex::new(()),
        freed: Condvar::new(),
    });
    let sender = RecordSender { records: sender, room: room.clone(), shared };
    (sender, RecordReceiver { records: receiver, room })
}

impl RecordSender {
    pub(super) fn send(&self, record: StreamRecord) {
        if self.room.is_full() {
            self.shared.wait_for_caller(|| self.room.wait());
        }
        self.room.bytes.fetch_add(record.bytes(), Ordering::AcqRel);
        // Nobody is there any more where the caller panicked.
        let _ = self.records.send(Box::new(record));
    }
}

impl RecordReceiver {
    pub(super) fn try_recv(&self) -> Result<Box<StreamRecord>, TryRecvError> {
        self.records.try_recv().inspect(|record| self.took(record))
    }

    pub(super) fn recv_timeout(
        &self,
        limit: Duration,
    ) -> Result<Box<StreamRecord>, RecvTimeoutError> {
        self.records.recv_timeout(limit).inspect(|record| self.took(record))
    }

    fn took(&self, record: &StreamRecord) {
        let before = self.room.bytes.fetch_sub(record.bytes(), Ordering::AcqRel);
        if before >= self.room.limit_bytes {
            self.room.wake();
        }
    }
}

impl Drop for RecordReceiver {
    fn drop(&mut self) {
        self.room.closed.store(true, Ordering::Release);
        self.room.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::SavedText;
    use crate::units::Nanos;

    #[test]
    fn what_fills_it_is_bytes_and_a_wait_is_counted() {
        let shared = Arc::new(Shared::new(1));
        let (sender, receiver) = queue(100_000, shared.clone());
        let text =
            || Some(Box::new(SavedText { text: "x".repeat(60_000), ..SavedText::default() }));
        let record = |row| StreamRecord { row, text: text(), ..StreamRecord::default() };
        let until_it_waits = |count| {
            while shared.waits_for_caller().is_none_or(|waits| waits.count < count) {
                std::thread::yield_now();
            }
        };
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| (0..4).for_each(|row| sender.send(record(row))));
            until_it_waits(1);
            assert!((120_000..130_000).contains(&receiver.room.bytes.load(Ordering::Acquire)));
            assert_eq!(receiver.try_recv().expect("a record").row, 0);
            until_it_waits(2);
            let take = || receiver.recv_timeout(Duration::from_secs(60)).expect("a record").row;
            assert_eq!([take(), take(), take()], [1, 2, 3]);
            worker.join().expect("no panic");
            assert_eq!(receiver.room.bytes.load(Ordering::Acquire), 0);
            // Nobody takes any more: whoever waits is let go.
            let worker = scope.spawn(|| (4..9).for_each(|row| sender.send(record(row))));
            until_it_waits(3);
            drop(receiver);
            worker.join().expect("no panic");
        });
        assert!(shared.waits_for_caller().is_some_and(|waits| waits.span > Nanos::ZERO));
    }
}
