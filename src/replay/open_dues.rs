//! Up to when everything that was due has ended: what makes a second of the timeline final.
//!
//! Each worker keeps the due times of its open streams and tells the others the earliest, once per
//! request. It tells it *after* it has handed the record over, so whoever reads it and then finds no
//! record waiting has seen every request that was due before. Deliberately absent: anything that a
//! token touches.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use super::drain::WorkerHandle;
use crate::units::Nanos;

/// The due times of a worker's open streams.
#[derive(Debug)]
pub(super) struct OpenDues {
    handle: Rc<WorkerHandle>,
    open: RefCell<BTreeSet<(Nanos, u64)>>,
    /// Nothing that is still to be sent was due before.
    next: RefCell<Nanos>,
}

impl OpenDues {
    pub(super) fn new(handle: Rc<WorkerHandle>) -> Self {
        Self { handle, open: RefCell::default(), next: RefCell::default() }
    }

    /// A request is sent.
    pub(super) fn sent(&self, id: u64, due: Nanos) {
        self.open.borrow_mut().insert((due, id));
        self.waits_for(due);
    }

    /// The next row is due then.
    pub(super) fn waits_for(&self, due: Nanos) {
        self.next.replace_with(|next| due.max(*next));
        self.tell();
    }

    /// A request's record was handed over.
    pub(super) fn ended(&self, id: u64, due: Nanos) {
        self.open.borrow_mut().remove(&(due, id));
        self.tell();
    }

    fn tell(&self) {
        let oldest = self.open.borrow().first().map(|(due, _)| *due);
        self.handle.settle(oldest.unwrap_or(*self.next.borrow()).min(*self.next.borrow()));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::drain::Shared;
    use super::*;

    #[test]
    fn what_is_settled_ends_at_the_oldest_open_request_of_any_worker() {
        let shared = Arc::new(Shared::new(2));
        let [a, b] = [0, 1].map(|index| OpenDues::new(Rc::new(shared.worker(index))));
        let s = Nanos::from_secs;
        a.sent(1, s(5));
        b.sent(1, s(6));
        a.sent(2, s(7));
        assert_eq!(shared.settled(), s(5));
        a.ended(1, s(5));
        assert_eq!(shared.settled(), s(6));
        b.ended(1, s(6));
        b.waits_for(s(9));
        assert_eq!(shared.settled(), s(7));
        a.ended(2, s(7));
        b.handle.settle(Nanos::MAX);
        assert_eq!(shared.settled(), s(7), "the next may be due at once");
    }
}
