//! How a stream is cut from outside, and how its worker sees that it lives.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Poll, Waker};

use crate::clock::Clock;
use crate::units::Nanos;

/// Shared between a stream and its worker, on one thread.
#[derive(Debug, Default)]
pub struct Watch {
    cut: Cell<bool>,
    last_try: Cell<bool>,
    last_byte: Cell<Nanos>,
    waker: RefCell<Option<Waker>>,
}

/// Why a wait was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// The worker cut the stream: drain limit or interrupt.
    Stopped,
    /// A deadline passed.
    Deadline,
}

impl Watch {
    /// Ends the stream as `incomplete` at its next step.
    pub fn cut(&self) {
        self.cut.set(true);
        self.wake();
    }

    /// What fails from now on is not tried again.
    pub fn try_no_more(&self) {
        self.last_try.set(true);
        self.wake();
    }

    pub(super) fn is_last_try(&self) -> bool {
        self.last_try.get()
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// When the stream last showed life: sent, or received bytes. On the clock's epoch.
    #[must_use]
    pub fn last_byte(&self) -> Nanos {
        self.last_byte.get()
    }

    pub(super) fn saw_byte(&self, at: Nanos) {
        self.last_byte.set(at);
    }

    /// Waits for `future`, but not past `deadline` and not past a cut. What is ready counts, even
    /// when it is late: a token that has arrived is never thrown away.
    pub(super) async fn guard<F: Future>(
        &self,
        clock: &Clock,
        deadline: Option<Nanos>,
        future: F,
    ) -> Result<F::Output, Cut> {
        let mut future = pin!(future);
        let mut sleep = pin!(None);
        poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Ok(output));
            }
            if self.cut.get() {
                return Poll::Ready(Err(Cut::Stopped));
            }
            let mut waker = self.waker.borrow_mut();
            if waker.as_ref().is_none_or(|waker| !waker.will_wake(context.waker())) {
                *waker = Some(context.waker().clone());
            }
            let Some(deadline) = deadline else {
                return Poll::Pending;
            };
            if sleep.is_none() {
                sleep.set(Some(clock.sleep_until(deadline)));
            }
            match sleep.as_mut().as_pin_mut() {
                Some(sleep) => sleep.poll(context).map(|()| Err(Cut::Deadline)),
                None => Poll::Pending,
            }
        })
        .await
    }
}
