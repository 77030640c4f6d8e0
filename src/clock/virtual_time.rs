//! Virtual time: a clock that stands still while anything can run, and jumps to the next deadline
//! when nothing can. An hour of traffic then takes as long as its computation, and every time comes
//! out exactly.

use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

use super::timers::Timers;
use crate::units::Nanos;

/// The state of a virtual clock.
#[derive(Debug, Default)]
pub struct VirtualTime {
    now: AtomicU64,
    stalled: AtomicBool,
    timers: Arc<Timers>,
    /// The outermost future, to be told that everything has come to rest. Not the timers' server: a
    /// sleep in that future itself would wake it, be polled, and so on for ever.
    root: Mutex<Option<Waker>>,
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
                *self.root.lock().unwrap_or_else(PoisonError::into_inner) =
                    Some(context.waker().clone());
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
            let root = self.root.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(root) = root {
                root.wake();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[test]
    fn a_lone_sleep_in_the_outermost_future_ends() {
        let time = Arc::new(VirtualTime::default());
        let clock = Clock::of_virtual(&time);
        let ran = time.run(|| async {
            clock.sleep_until(Nanos::from_secs(3_600)).await;
            // Others may sleep for less, and for more.
            let (other, third) = (clock.clone(), clock.clone());
            tokio::task::spawn_local(async move { other.sleep_until(Nanos::MAX).await });
            tokio::task::spawn_local(async move {
                third.sleep_until(Nanos::from_secs(3_601)).await;
            });
            clock.sleep_until(Nanos::from_secs(3_602)).await;
            clock.now()
        });
        assert_eq!(ran.expect("a runtime").expect("no stall"), Nanos::from_secs(3_602));
    }

    #[test]
    fn a_standstill_is_reported() {
        let time = Arc::new(VirtualTime::default());
        let clock = Clock::of_virtual(&time);
        let ran = time.run(|| async {
            clock.sleep_until(Nanos(7)).await;
            std::future::pending::<()>().await;
        });
        assert_eq!(ran.expect("a runtime").expect_err("a stall").at, Nanos(7));
    }
}
