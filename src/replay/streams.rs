//! The open streams of a worker, and up to when everything that was due has ended, which makes a second of the
//! timeline final.
//!
//! A worker tells the others the earliest due time among its open streams, once per request. It tells it *after*
//! it has handed the record over, so whoever reads it and then finds no record waiting has seen every
//! request that was due before. Deliberately absent: anything that a token touches.

use std::any::Any;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::rc::Rc;

use futures_util::FutureExt;
use tokio::sync::Notify;

use super::drain::WorkerHandle;
use super::source::Ended;
use crate::client::AttemptControl;
use crate::units::Nanos;

/// The open streams of a worker.
pub(super) struct Streams {
    pub(super) open: RefCell<HashMap<u64, Rc<AttemptControl>>>,
    pub(super) ended: RefCell<Vec<Ended>>,
    pub(super) dues: OpenDues,
    pub(super) changed: Notify,
    /// What a request panicked with.
    panic: RefCell<Option<Box<dyn Any + Send>>>,
    pub(super) panicked: Notify,
}

impl Streams {
    pub(super) fn new(handle: Rc<WorkerHandle>) -> Self {
        Self {
            open: RefCell::default(),
            ended: RefCell::default(),
            dues: OpenDues::new(handle),
            changed: Notify::new(),
            panic: RefCell::default(),
            panicked: Notify::new(),
        }
    }

    /// Carries out a request. A task's panic is nobody's but the task's, and the worker would wait for it.
    pub(super) async fn carry_out(self: Rc<Self>, request: impl Future<Output = ()>) {
        if let Err(panic) = AssertUnwindSafe(request).catch_unwind().await {
            self.panic.replace(Some(panic));
            self.panicked.notify_one();
        }
    }

    /// Hands on the panic of a request, where there was one.
    pub(super) fn check(&self) {
        if let Some(panic) = self.panic.take() {
            resume_unwind(panic);
        }
    }

    pub(super) fn cut_all(&self) {
        self.open.borrow().values().for_each(|watch| watch.cut());
    }

    pub(super) fn forbid_retries(&self) {
        self.open.borrow().values().for_each(|watch| watch.forbid_retries());
    }
}

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
