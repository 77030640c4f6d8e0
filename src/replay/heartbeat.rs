//! How late a worker wakes when it asked to be woken: whatever keeps it from its work, be it the machine, its
//! runtime or too many streams, delays this too, also while no row is due.
//!
//! A task of the worker's own that sleeps on the clock as every send does, so that a busy worker serves it
//! where it looks at the clock anyway. Beats missed while the worker slept count with the delay that each
//! would have had. Deliberately absent: virtual time, in which nothing is late.

use std::cell::RefCell;
use std::rc::Rc;

use hdrhistogram::Histogram;

use crate::clock::Clock;
use crate::units::Nanos;

/// From beat to beat. Not a round number: in step with a round schedule it would always meet the same rows.
const EVERY: Nanos = Nanos(10_007_000);

/// Delays of beats.
#[derive(Clone, Debug)]
pub(super) struct Beats(Histogram<u64>);

/// What they come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// Beats.
    pub n: u64,
    /// Median delay, within 0.05%.
    pub p50: Nanos,
    /// The 99th percentile.
    pub p99: Nanos,
    /// The longest delay.
    pub max: Nanos,
}

impl Default for Beats {
    fn default() -> Self {
        Self(Histogram::new(3).expect("three significant digits are within the crate's range"))
    }
}

impl Beats {
    fn record(&mut self, delay: Nanos) {
        // It resizes itself: a delay of years is more memory, and no error.
        let _ = self.0.record(delay.0);
    }

    /// Counts the beat that was due at `next`, and those after it until `now`; when the one after is due.
    fn count(&mut self, mut next: Nanos, now: Nanos) -> Nanos {
        while next <= now {
            self.record(now.since(next));
            next += EVERY;
        }
        next
    }

    pub(super) fn add(&mut self, other: &Self) {
        let _ = self.0.add(&other.0);
    }

    /// `None` where there were no beats.
    pub(super) fn figures(&self) -> Option<Heartbeat> {
        let at = |share| Nanos(self.0.value_at_quantile(share));
        let (n, max) = (self.0.len(), Nanos(self.0.max()));
        (n > 0).then(|| Heartbeat { n, p50: at(0.5).min(max), p99: at(0.99).min(max), max })
    }
}

/// Beats until it is aborted.
pub(super) async fn beat(clock: Clock, beats: Rc<RefCell<Beats>>) {
    let mut next = clock.now() + EVERY;
    loop {
        clock.sleep_until(next).await;
        next = beats.borrow_mut().count(next, clock.now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_of_all_workers_and_none_of_no_beat() {
        assert_eq!(Beats::default().figures(), None);
        let mut all = Beats::default();
        for worker in 0..2 {
            let mut beats = Beats::default();
            (1..=100).for_each(|i| beats.record(Nanos(i * 10 + worker)));
            all.add(&beats);
        }
        let figures = all.figures().expect("beats");
        assert_eq!((figures.n, figures.max), (200, Nanos(1_001)));
        assert_eq!((figures.p50, figures.p99), (Nanos(501), Nanos(991)));
    }

    #[test]
    fn beats_missed_in_a_sleep_count_each() {
        let mut beats = Beats::default();
        let first = Nanos(1_000);
        assert_eq!(beats.count(first, Nanos(1_005)), first + EVERY);
        // Asleep over two more of them, and woken just at a third.
        let next = beats.count(first + EVERY, first + Nanos(EVERY.0 * 3));
        assert_eq!(next, first + Nanos(EVERY.0 * 4));
        let figures = beats.figures().expect("beats");
        assert_eq!((figures.n, figures.p50), (4, Nanos(5)));
        assert!(figures.max.0.abs_diff(EVERY.0 * 2) <= EVERY.0 / 1_000, "{figures:?}");
    }
}
