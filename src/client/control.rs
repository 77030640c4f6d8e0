//! What a worker holds of an attempt: it cuts it, forbids further ones, and sees that it lives.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use crate::clock::{Clock, Sleep};
use crate::units::Nanos;

/// Shared between an attempt and its worker, on one thread.
#[derive(Debug, Default)]
pub struct AttemptControl {
    cut: Cell<bool>,
    no_retries: Cell<bool>,
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

/// What one step of a stream came to.
pub(super) enum Step<T> {
    Ready(T),
    /// Nothing more for now, and not for longer than that.
    Waiting(Option<Nanos>),
}

impl AttemptControl {
    /// Ends the stream as `incomplete` at its next step.
    pub fn cut(&self) {
        self.cut.set(true);
        self.wake();
    }

    /// What fails from now on is not tried again.
    pub fn forbid_retries(&self) {
        self.no_retries.set(true);
        self.wake();
    }

    pub(super) fn forbids_retries(&self) -> bool {
        self.no_retries.get()
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

    /// Takes step after step until one is ready, but not past the deadline that the last one named and
    /// not past a cut. A deadline that moves on costs nothing until the timer set for it runs out.
    pub(super) async fn follow<T>(
        &self,
        clock: &Clock,
        mut step: impl FnMut(&mut Context<'_>) -> Step<T>,
    ) -> Result<T, Cut> {
        let mut sleep: Option<(Nanos, Sleep)> = None;
        poll_fn(|context| {
            let deadline = match step(context) {
                Step::Ready(output) => return Poll::Ready(Ok(output)),
                Step::Waiting(deadline) => deadline,
            };
            if self.cut.get() {
                return Poll::Ready(Err(Cut::Stopped));
            }
            let mut moved = self.register(context);
            let Some(at) = deadline else {
                return Poll::Pending;
            };
            let now = clock.now();
            if now >= at {
                return Poll::Ready(Err(Cut::Deadline));
            }
            if sleep.as_ref().is_none_or(|(set, _)| at < *set || now >= *set) {
                sleep = Some((at, clock.sleep_until(at)));
                moved = true;
            }
            if moved
                && let Some((_, sleep)) = &mut sleep
                && Pin::new(sleep).poll(context).is_ready()
            {
                context.waker().wake_by_ref();
            }
            Poll::Pending
        })
        .await
    }

    /// Keeps the waker for a cut; true when it is a new one.
    fn register(&self, context: &Context<'_>) -> bool {
        let mut waker = self.waker.borrow_mut();
        let is_new = waker.as_ref().is_none_or(|waker| !waker.will_wake(context.waker()));
        if is_new {
            *waker = Some(context.waker().clone());
        }
        is_new
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
        self.follow(clock, |context| match future.as_mut().poll(context) {
            Poll::Ready(output) => Step::Ready(output),
            Poll::Pending => Step::Waiting(deadline),
        })
        .await
    }
}
