//! The only place that reads time, and the only timer.
//!
//! A [`Clock`] is real or virtual, and the code above it cannot tell. The real one wakes sleepers
//! through a high-resolution kernel timer, since a runtime's timer wheel of one millisecond is too
//! coarse to send on schedule; the virtual one jumps to the next deadline when nothing else can run.
//! Tokio's own clock is not used anywhere.

mod anchor;
#[cfg(target_os = "linux")]
mod kernel_timer;
#[cfg(target_os = "linux")]
mod short_slice;
#[cfg(not(target_os = "linux"))]
mod thread_timer;
mod timers;
mod virtual_time;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

pub use anchor::{Anchor, Utc};
pub use virtual_time::{Stalled, VirtualTime};

#[cfg(target_os = "linux")]
use kernel_timer as system_timer;
#[cfg(not(target_os = "linux"))]
use thread_timer as system_timer;

use crate::units::Nanos;
use timers::Timers;

/// How long before a deadline [`Clock::pace_until`] stops sleeping and watches the clock instead.
/// A kernel timer wakes 30 to 60 µs late on an idle machine; a spin this long hides that and costs
/// at most 8% of a core at 1,000 sends a second.
const SPIN: Nanos = Nanos(80_000);

/// Asks the system to run this thread as soon as it wakes, where it can be asked.
pub fn wake_at_once() {
    #[cfg(target_os = "linux")]
    short_slice::ask();
}

/// A handle on time; cheap to clone. One per thread in real time, one in all in virtual time.
#[derive(Clone, Debug)]
pub struct Clock {
    source: TimeSource,
    timers: Arc<Timers>,
}

#[derive(Clone, Debug)]
enum TimeSource {
    Real,
    Virtual(Arc<VirtualTime>),
}

impl Clock {
    /// The machine's monotonic clock. Must be called on the thread whose current-thread runtime will
    /// await its sleeps, inside that runtime or its `LocalSet`: it starts the task that serves the timer.
    pub fn real() -> io::Result<Self> {
        let timers = Arc::new(Timers::new());
        system_timer::serve(&timers)?;
        Ok(Self { source: TimeSource::Real, timers })
    }

    /// A clock that only moves when everything else is idle.
    #[must_use]
    pub fn of_virtual(time: &Arc<VirtualTime>) -> Self {
        Self { source: TimeSource::Virtual(time.clone()), timers: time.timers().clone() }
    }

    /// Now, counted from the clock's own epoch (the machine's start, or virtual zero).
    #[must_use]
    pub fn now(&self) -> Nanos {
        match &self.source {
            TimeSource::Real => monotonic(),
            TimeSource::Virtual(time) => time.now(),
        }
    }

    /// Now, where time passes between two looks at the timer: wakes those whose deadline has passed.
    #[must_use]
    pub fn now_and_wake(&self) -> Nanos {
        let now = self.now();
        if matches!(self.source, TimeSource::Real) && self.timers.is_due(now) {
            self.timers.fire(now);
        }
        now
    }

    /// Sleeps until `deadline`; wakes within the resolution of the system's timer.
    #[must_use]
    pub fn sleep_until(&self, deadline: Nanos) -> Sleep {
        Sleep { clock: self.clone(), deadline, ticket: None }
    }

    /// Sleeps until shortly before `deadline`, then watches the clock: for sends on schedule.
    pub async fn pace_until(&self, deadline: Nanos) {
        match self.source {
            TimeSource::Virtual(_) => self.sleep_until(deadline).await,
            TimeSource::Real => {
                self.sleep_until(deadline.since(SPIN)).await;
                while self.now() < deadline {
                    std::hint::spin_loop();
                }
            }
        }
    }

    /// True where time is virtual.
    #[must_use]
    pub fn is_virtual(&self) -> bool {
        matches!(self.source, TimeSource::Virtual(_))
    }
}

/// The machine's monotonic clock, the same in every process: nanoseconds since it started.
#[must_use]
pub fn monotonic() -> Nanos {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC);
    // The call can fail only for a clock that the system does not have.
    time.map_or(Nanos::ZERO, |time| {
        let (s, ns) = (time.tv_sec(), time.tv_nsec());
        Nanos(
            u64::try_from(s).unwrap_or(0) * crate::units::NS_PER_S + u64::try_from(ns).unwrap_or(0),
        )
    })
}

/// A sleep that ends at its deadline. Dropping it takes it out of the timer.
#[derive(Debug)]
pub struct Sleep {
    clock: Clock,
    deadline: Nanos,
    ticket: Option<timers::Ticket>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if this.clock.now() >= this.deadline {
            if let Some(ticket) = this.ticket.take() {
                this.clock.timers.remove(ticket);
            }
            return Poll::Ready(());
        }
        // Polled again before its time, as in a `select`: it keeps its place, and the timer its peace.
        if let Some(ticket) = this.ticket
            && this.clock.timers.renew(ticket, context.waker())
        {
            return Poll::Pending;
        }
        this.ticket = Some(this.clock.timers.insert(this.deadline, context.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.clock.timers.remove(ticket);
        }
    }
}
