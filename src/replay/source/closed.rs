//! The closed loop: a row is due the instant a slot comes free.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Due, Ended, Head, Source};
use crate::units::Nanos;

/// So many requests at a time.
#[derive(Debug)]
pub struct ClosedLoop<R> {
    head: Head<R>,
    /// When each free slot comes, or came, free; earliest first.
    free: BinaryHeap<Reverse<Nanos>>,
    slots: usize,
    /// No row is due at or after this offset.
    until: Nanos,
}

impl<R> ClosedLoop<R> {
    /// As many requests at a time as there are instants in `free`, at which each slot is first free;
    /// until `until` (exclusive).
    #[must_use]
    pub fn new(free: impl IntoIterator<Item = Nanos>, until: Nanos) -> Self {
        let free: BinaryHeap<_> = free.into_iter().map(Reverse).collect();
        Self { head: Head::Unknown, slots: free.len(), free, until }
    }

    fn hear(&mut self, ended: &[Ended]) {
        self.free.extend(ended.iter().map(|ended| Reverse(ended.at)));
        debug_assert!(self.free.len() <= self.slots, "more endings than sends");
    }
}

impl<R> Source<R> for ClosedLoop<R> {
    fn offer(&mut self, row: Option<R>) {
        self.head = Head::of(row);
    }

    fn next(&mut self, now: Nanos, ended: &[Ended]) -> Due<R> {
        self.hear(ended);
        let free = self.free.peek().map(|free| free.0);
        match (&self.head, free) {
            (Head::None, _) => Due::Done,
            (_, Some(free)) if free >= self.until => Due::Done,
            (_, Some(free)) if free > now => Due::At(free),
            (_, None) if now >= self.until => Due::Done,
            (_, None) if self.until < Nanos::MAX => Due::At(self.until),
            (_, None) => Due::End,
            (Head::Unknown, Some(_)) => Due::Row,
            (Head::Row(_), Some(due)) => match self.head.take() {
                Some(row) => {
                    self.free.pop();
                    Due::Send { row, due }
                }
                None => Due::End,
            },
        }
    }

    fn claim(&mut self, now: Nanos, due: Nanos, ended: &[Ended]) -> Option<Nanos> {
        self.hear(ended);
        let free = self.free.peek().filter(|free| free.0 <= now)?.0;
        self.free.pop();
        Some(due.max(free))
    }
}
