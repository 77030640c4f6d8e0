//! `--max-in-flight`: a source held back while so many requests are open.
//!
//! The schedule stays what it is: a row that finds no slot leaves as soon as there is one, its latency
//! counts from when it was due, and the wait is its lag. Nothing is dropped or thinned; what the run's
//! end finds unsent is recorded so. Pure, as every source is. Deliberately absent: rows taken before
//! there is a slot for them, since another worker may have one.

use super::source::{Due, Ended, Held, Source};
use crate::units::Nanos;

/// A source with at most `slots` requests in flight.
#[derive(Debug)]
pub struct Capped<S> {
    inner: S,
    slots: usize,
    in_flight: usize,
    held: Held,
    released: bool,
}

impl<S> Capped<S> {
    /// Holds `inner` back; `last_due` is when the last row of the plan is due, where that is known.
    #[must_use]
    pub fn new(inner: S, slots: usize, last_due: Option<Nanos>) -> Self {
        Self { inner, slots, in_flight: 0, held: Held { last_due }, released: false }
    }
}

impl<R, S: Source<R>> Source<R> for Capped<S> {
    fn offer(&mut self, row: Option<R>) {
        self.inner.offer(row);
    }

    fn next(&mut self, now: Nanos, ended: &[Ended]) -> Due<R> {
        self.in_flight = self.in_flight.saturating_sub(ended.len());
        if self.in_flight >= self.slots && !self.released {
            return Due::End;
        }
        let due = self.inner.next(now, ended);
        if matches!(due, Due::Send { .. }) {
            self.in_flight += 1;
        }
        due
    }

    /// The row is late, and its due time stands.
    fn claim(&mut self, now: Nanos, due: Nanos, ended: &[Ended]) -> Option<Nanos> {
        self.in_flight = self.in_flight.saturating_sub(ended.len());
        if self.in_flight >= self.slots && !self.released {
            return None;
        }
        let due = self.inner.claim(now, due, &[]);
        self.in_flight += usize::from(due.is_some());
        due
    }

    fn held(&self) -> Option<Held> {
        Some(self.held)
    }

    fn release(&mut self) {
        self.released = true;
        self.inner.release();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::source::FixedSchedule;
    use super::super::source::tests::Row;
    use super::*;

    /// `(due, sent)` of every row, driven as a worker would; request n lasts `lasts[n]`.
    fn drive(slots: usize, at: &[u64], lasts: &[u64]) -> Vec<(u64, u64)> {
        let mut source = Capped::new(FixedSchedule::new(), slots, None);
        let mut rows = at.iter().map(|at| Row(*at));
        let (mut sends, mut flying, mut now) = (Vec::new(), Vec::<u64>::new(), 0);
        loop {
            let over = flying.iter().filter(|at| **at <= now);
            let ended: Vec<Ended> =
                over.map(|at| Ended { at: Nanos(*at), ..Ended::default() }).collect();
            flying.retain(|at| *at > now);
            match source.next(Nanos(now), &ended) {
                Due::Row => source.offer(rows.next()),
                Due::Send { row, due } => {
                    assert_eq!(Nanos(row.0), due, "counted from when it was due");
                    flying.push(now + lasts[sends.len()]);
                    assert!(flying.len() <= slots);
                    sends.push((due.0, now));
                }
                Due::At(at) => now = at.0,
                Due::End => now = *flying.iter().min().expect("something in flight"),
                Due::Done => return sends,
                other => panic!("no turns here: {other:?}"),
            }
        }
    }

    #[test]
    fn a_row_without_a_slot_is_late_and_not_lost() {
        let sends = drive(2, &[0, 1, 2, 3, 100], &[10, 20, 30, 5, 5]);
        assert_eq!(sends, [(0, 0), (1, 1), (2, 10), (3, 21), (100, 100)]);
    }

    #[test]
    fn released_it_holds_nothing_back() {
        let mut source = Capped::new(FixedSchedule::new(), 1, Some(Nanos(9)));
        let mut unsent = Vec::new();
        source.offer(Some(Row(0)));
        assert!(matches!(source.next(Nanos(0), &[]), Due::Send { .. }));
        assert_eq!(source.next(Nanos(50), &[]), Due::End);
        assert_eq!(source.held(), Some(Held { last_due: Some(Nanos(9)) }));
        source.release();
        let mut rows = [Row(5), Row(9), Row(60)].into_iter();
        loop {
            match source.next(Nanos(50), &[]) {
                Due::Row => source.offer(rows.next()),
                Due::Send { row, .. } => unsent.push(row.0),
                _ => break,
            }
        }
        assert_eq!(unsent, [5, 9], "what fell due, and nothing else");
    }

    proptest! {
        /// Against the obvious reckoning: each row goes when it is due and a slot is free, in order.
        #[test]
        fn every_row_leaves_once_as_early_as_it_may(
            rows in proptest::collection::vec((0u64..1_000, 0u64..300), 0..60),
            slots in 1usize..6,
        ) {
            let mut at: Vec<u64> = rows.iter().map(|row| row.0).collect();
            at.sort_unstable();
            let lasts: Vec<u64> = rows.iter().map(|row| row.1).collect();
            let (mut free, mut expect, mut before) = (vec![0; slots], Vec::new(), 0);
            for (due, lasts) in at.iter().zip(&lasts) {
                let slot = free.iter_mut().min().expect("a slot");
                let sent = (*due).max(*slot).max(before);
                *slot = sent + lasts;
                before = sent;
                expect.push((*due, sent));
            }
            prop_assert_eq!(drive(slots, &at, &lasts), expect);
        }
    }
}
