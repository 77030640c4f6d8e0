//! Virtual time: a clock that stands still while anything can run, and jumps to the next deadline
//! when nothing can. An hour of traffic then takes as long as its computation, and every time comes
//! out exactly.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;

use super::timers::Timers;
use crate::units::Nanos;

/// The state of a virtual clock.
#[derive(Debug, Default)]
pub struct VirtualTime {
    now: AtomicU64,
    stalled: AtomicBool,
    timers: Arc<Timers>,
}

/// Nothing could run and nothing was waited for: the program under the virtual clock is stuck.
#[derive(Debug, thiserror::Error)]
#[error("nothing can run and no deadline is pending at {at} s of virtual time")]
pub struct Stalled {
    /// When that was, in seconds.
    pub at: Nanos,
}

impl VirtualTime {
    pub(super) fn now(&self) -> Nanos {
        Nanos(self.now.load(Ordering::Relaxed))
    }

    pub(super) fn timers(&self) -> &Arc<Timers> {
        &self.timers
    }

    /// Runs what `start` returns on a runtime of its own whose idle moments move this clock.
    ///
    /// The future may spawn local tasks; nothing in it may wait for real time or for the network.
    pub fn run<F: Future>(
        self: &Arc<Self>,
        start: impl FnOnce() -> F,
    ) -> io::Result<Result<F::Output, Stalled>> {
        let time = self.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .on_thread_park(move || time.advance())
            .build()?;
        let local = tokio::task::LocalSet::new();
        Ok(local.block_on(&runtime, async {
            let mut future = std::pin::pin!(start());
            std::future::poll_fn(|context| {
                if let Poll::Ready(output) = future.as_mut().poll(context) {
                    return Poll::Ready(Ok(output));
                }
                if self.stalled.load(Ordering::Relaxed) {
                    return Poll::Ready(Err(Stalled { at: self.now() }));
                }
                // Should everything come to rest, the idle hook wakes us through here.
                self.timers.watch(context.waker().clone());
                Poll::Pending
            })
            .await
        }))
    }

    /// Called when the runtime has nothing to do.
    fn advance(&self) {
        if let Some(next) = self.timers.next() {
            self.now.fetch_max(next.0, Ordering::Relaxed);
            self.timers.fire(next);
        } else {
            self.stalled.store(true, Ordering::Relaxed);
            self.timers.wake_server();
        }
    }
}
