//! What the engine's driver hands to the connection that answers a request.

use std::cell::{Cell, RefCell};
use std::task::{Context, Waker};

use crate::units::Nanos;

/// How many tokens a request has coming, and who waits for them.
#[derive(Default)]
pub(super) struct Mailbox {
    ready_tok: Cell<u64>,
    queued: Cell<Option<Nanos>>,
    waker: RefCell<Option<Waker>>,
}

impl Mailbox {
    /// Another token is there.
    pub(super) fn put(&self) {
        self.ready_tok.set(self.ready_tok.get() + 1);
        // Taken, so that further tokens of the same turn do not wake again.
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    pub(super) fn ready_tok(&self) -> u64 {
        self.ready_tok.get()
    }

    /// How long it had waited for a slot; `None` while it waits.
    pub(super) fn queued(&self) -> Option<Nanos> {
        self.queued.get()
    }

    pub(super) fn set_queued(&self, queued: Nanos) {
        self.queued.set(Some(queued));
    }

    pub(super) fn watch(&self, context: &Context<'_>) {
        *self.waker.borrow_mut() = Some(context.waker().clone());
    }
}
