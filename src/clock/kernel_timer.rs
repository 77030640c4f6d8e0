//! Real sleeps on Linux: one `timerfd` per worker thread, armed for the earliest sleeper.

use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use nix::sys::time::{TimeSpec, TimeValLike};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::io::unix::AsyncFd;

use super::{monotonic, timers::Timers};
use crate::units::Nanos;

/// Starts the local task that serves `timers` for as long as anyone else holds them.
pub(super) fn serve(timers: &Arc<Timers>) -> io::Result<()> {
    let fd =
        TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
    let mut server = Server { fd: register(fd)?, timers: timers.clone(), armed: None };
    tokio::task::spawn_local(poll_fn(move |context| server.poll(context)));
    Ok(())
}

/// `TimerFd` lends its descriptor safely, but has no `AsRawFd`, which the reactor wants.
struct Descriptor(TimerFd);

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

#[expect(
    deprecated,
    reason = "`AsyncFd::new` is unsound only for a type that closes or lies about its descriptor; \
              `Descriptor` owns one for its whole life, and the newer constructor is `unsafe`"
)]
fn register(fd: TimerFd) -> io::Result<AsyncFd<Descriptor>> {
    AsyncFd::new(Descriptor(fd))
}

struct Server {
    fd: AsyncFd<Descriptor>,
    timers: Arc<Timers>,
    armed: Option<Nanos>,
}

impl Server {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            self.timers.fire(monotonic());
            self.timers.watch(context.waker().clone());
            // Arming after every fire, so that a deadline that came in between is not missed.
            self.arm();
            let Ok(mut guard) = ready!(self.fd.poll_read_ready(context)) else {
                return Poll::Ready(());
            };
            // The count of expirations does not matter; reading it clears the readiness.
            let mut count = [0; 8];
            let _ = nix::unistd::read(self.fd.get_ref().0.as_fd(), &mut count);
            self.armed = None;
            guard.clear_ready();
        }
    }

    fn arm(&mut self) {
        let next = self.timers.next();
        if next == self.armed {
            return;
        }
        self.armed = next;
        let timer = &self.fd.get_ref().0;
        let _ = match next {
            // A zero time would disarm.
            Some(at) => timer.set(
                Expiration::OneShot(TimeSpec::nanoseconds(
                    i64::try_from(at.0.max(1)).unwrap_or(i64::MAX),
                )),
                TimerSetTimeFlags::TFD_TIMER_ABSTIME,
            ),
            None => timer.unset(),
        };
    }
}
