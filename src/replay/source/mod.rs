//! What is due next: a pure state machine, without a clock, a socket or a thread.
//!
//! A [`Source`] is offered the rows of a plan in order and told which requests have ended; asked at
//! an instant, it names the next thing to do. The fixed schedule, the closed loop and dependent turns
//! are sources of one kind, so whatever drives one drives the others, and turns go with either.

mod closed;
mod turns;

use std::sync::Arc;

pub use closed::ClosedLoop;
pub use turns::Turns;

use crate::units::Nanos;

/// A row as a source sees it.
pub trait Timed {
    /// Offset from `t0` at which it leaves, where the plan says so.
    fn due(&self) -> Option<Nanos>;

    /// What it has to do with other rows; `None`: nothing.
    fn turn(&self) -> Option<SessionTurn<'_>> {
        None
    }

    /// Memory that it holds while it waits, about.
    fn bytes(&self) -> usize {
        0
    }

    /// It is known when it is due: time to get ready.
    fn prepare(&mut self) {}
}

/// A row as a part of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionTurn<'a> {
    /// Its place in the plan.
    pub index: u64,
    /// The session.
    pub session: &'a Arc<str>,
    /// It is due so long after the end of the turn before; `None`: at its own time.
    pub think: Option<Nanos>,
}

/// A request that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// When its stream closed, as an offset from `t0`.
    pub at: Nanos,
    /// Its place in the plan.
    pub index: u64,
    /// It failed, so the turns after it have nothing to follow.
    pub failed: bool,
}

/// The next thing to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Due<R> {
    /// Send this row now; it was due at `due`, which is now or earlier.
    Send {
        /// The row.
        row: R,
        /// The instant from which its latency counts.
        due: Nanos,
    },
    /// Record this row as skipped: the turn before it failed.
    Skip(R),
    /// Nothing before this instant.
    At(Nanos),
    /// Nothing before the next row of the plan is offered.
    Row,
    /// Nothing before this instant, before the next row of the plan is offered, or a request ends.
    RowBy(Nanos),
    /// Nothing before a request ends.
    End,
    /// Nothing ever again.
    Done,
}

/// That rows are held back from their time, by a cap on requests in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// When the plan's last row is due, where that is known.
    pub last_due: Option<Nanos>,
}

/// Decides what is due next.
pub trait Source<R> {
    /// Hands over the plan's next row; `None`: the plan has ended. Only after [`Due::Row`] and
    /// [`Due::RowBy`].
    fn offer(&mut self, row: Option<R>);

    /// What is due at `now`, given the requests that ended since the last call.
    fn next(&mut self, now: Nanos, ended: &[Ended]) -> Due<R>;

    /// A place for a row that is due at `due` and that another source brings, given the requests that
    /// ended since: the instant from which its latency counts, or `None` while there is no room.
    fn claim(&mut self, _now: Nanos, due: Nanos, _ended: &[Ended]) -> Option<Nanos> {
        Some(due)
    }

    /// Whether a request that ends may bring a row that is due before all it has named.
    fn awaits_turns(&self) -> bool {
        false
    }

    /// Whether it holds rows back.
    fn held(&self) -> Option<Held> {
        None
    }

    /// The run is over, so nothing is held back any more: what it still names is recorded, not sent.
    fn release(&mut self) {}
}

/// Where a source stands in its plan.
#[derive(Debug)]
enum Head<R> {
    /// The next row has not been offered yet.
    Unknown,
    Row(R),
    /// The plan has ended.
    None,
}

impl<R> Head<R> {
    fn of(row: Option<R>) -> Self {
        row.map_or(Self::None, Self::Row)
    }

    fn take(&mut self) -> Option<R> {
        match std::mem::replace(self, Self::Unknown) {
            Self::Row(row) => Some(row),
            other => {
                *self = other;
                None
            }
        }
    }
}

/// The open loop: every row at its own time, whatever became of the others.
#[derive(Debug)]
pub struct FixedSchedule<R> {
    head: Head<R>,
}

impl<R> FixedSchedule<R> {
    /// At the start of a plan.
    #[must_use]
    pub fn new() -> Self {
        Self { head: Head::Unknown }
    }
}

impl<R> Default for FixedSchedule<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: Timed> Source<R> for FixedSchedule<R> {
    fn offer(&mut self, row: Option<R>) {
        self.head = Head::of(row);
    }

    fn next(&mut self, now: Nanos, _ended: &[Ended]) -> Due<R> {
        let due = match &self.head {
            Head::Unknown => return Due::Row,
            Head::None => return Due::Done,
            // A row without a time of its own leaves as soon as it is known.
            Head::Row(row) => row.due().unwrap_or(now),
        };
        match self.head.take() {
            Some(row) if due <= now => Due::Send { row, due },
            row => {
                self.head = Head::of(row);
                Due::At(due)
            }
        }
    }
}

#[cfg(test)]
pub(in crate::replay) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A row that is nothing but its due time.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(in crate::replay) struct Row(pub(in crate::replay) u64);

    impl Timed for Row {
        fn due(&self) -> Option<Nanos> {
            Some(Nanos(self.0))
        }
    }

    fn ended(at: u64) -> Ended {
        Ended { at: Nanos(at), ..Ended::default() }
    }

    /// Drives a source as a worker would, on made-up time; a request lasts `lasts`. Returns
    /// (row, due, sent) of every send and the largest number in flight.
    fn drive(
        mut source: impl Source<Row>,
        rows: &[u64],
        lasts: u64,
    ) -> (Vec<(u64, u64, u64)>, usize) {
        let mut rows = rows.iter().map(|at| Row(*at));
        let (mut sends, mut flying, mut most) = (Vec::new(), Vec::<u64>::new(), 0);
        let mut now = 0;
        loop {
            let ended: Vec<Ended> =
                flying.iter().filter(|at| **at <= now).map(|at| ended(*at)).collect();
            flying.retain(|at| *at > now);
            match source.next(Nanos(now), &ended) {
                Due::Row | Due::RowBy(_) => source.offer(rows.next()),
                Due::Skip(row) => panic!("nothing failed: {row:?}"),
                Due::Send { row, due } => {
                    sends.push((row.0, due.0, now));
                    flying.push(now + lasts);
                    most = most.max(flying.len());
                }
                // An ending may come first.
                Due::At(at) => {
                    now = flying.iter().copied().filter(|end| *end > now).fold(at.0, u64::min);
                }
                Due::End => now = *flying.iter().min().expect("something in flight"),
                Due::Done => return (sends, most),
            }
        }
    }

    /// So many slots, free from the start.
    fn all(slots: usize) -> impl Iterator<Item = Nanos> {
        std::iter::repeat_n(Nanos::ZERO, slots)
    }

    #[test]
    fn slots_may_come_free_one_after_the_other() {
        let spread = [0, 4, 8].map(Nanos).into_iter();
        let (sends, most) = drive(ClosedLoop::new(spread, Nanos::MAX), &[0; 6], 5);
        let due: Vec<u64> = sends.iter().map(|send| send.1).collect();
        assert_eq!((due, most), (vec![0, 4, 5, 8, 9, 10], 3));
    }

    #[test]
    fn the_fixed_schedule_waits_for_nobody() {
        let (sends, most) = drive(FixedSchedule::new(), &[0, 5, 5, 9], 1_000_000);
        assert_eq!(sends, [(0, 0, 0), (5, 5, 5), (5, 5, 5), (9, 9, 9)]);
        assert_eq!(most, 4);
    }

    #[test]
    fn the_closed_loop_is_due_when_a_slot_comes_free() {
        let (sends, most) = drive(ClosedLoop::new(all(2), Nanos::MAX), &[0; 5], 10);
        assert_eq!(sends, [(0, 0, 0), (0, 0, 0), (0, 10, 10), (0, 10, 10), (0, 20, 20)]);
        assert_eq!(most, 2);
    }

    #[test]
    fn the_closed_loop_ends_at_its_time() {
        let (sends, _) = drive(ClosedLoop::new(all(1), Nanos(25)), &[0; 100], 10);
        assert_eq!(sends.len(), 3, "due at 0, 10 and 20");
    }

    #[test]
    fn the_closed_loop_ends_at_its_time_though_no_slot_comes_free() {
        let mut source = ClosedLoop::new(all(1), Nanos(25));
        source.offer(Some(Row(0)));
        assert!(matches!(source.next(Nanos(0), &[]), Due::Send { .. }));
        assert_eq!(source.next(Nanos(3), &[]), Due::At(Nanos(25)));
        assert_eq!(source.next(Nanos(25), &[]), Due::Done);
    }

    #[test]
    fn a_late_row_goes_at_once_and_counts_from_due() {
        let mut source = FixedSchedule::new();
        assert_eq!(source.next(Nanos(50), &[]), Due::Row);
        source.offer(Some(Row(20)));
        assert_eq!(source.next(Nanos(50), &[]), Due::Send { row: Row(20), due: Nanos(20) });
    }

    proptest! {
        #[test]
        fn every_row_is_sent_once_in_order(mut at in proptest::collection::vec(0u64..1000, 0..60),
                                           lasts in 1u64..500, slots in 1usize..8) {
            at.sort_unstable();
            let (open, _) = drive(FixedSchedule::new(), &at, lasts);
            prop_assert_eq!(open.iter().map(|send| send.0).collect::<Vec<_>>(), at.clone());
            prop_assert!(open.iter().all(|(_, due, sent)| due == sent));
            let (closed, most) = drive(ClosedLoop::new(all(slots), Nanos::MAX), &at, lasts);
            prop_assert_eq!(closed.iter().map(|send| send.0).collect::<Vec<_>>(), at);
            prop_assert!(most <= slots);
        }
    }
}
