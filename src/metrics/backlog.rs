//! Rows that were due and had not left: where the schedule bent.
//!
//! The same as the sums of `due` and `sent` in `timeline.csv`, of rows in any order. Only rows that left in
//! a later second than the one in which they were due take memory. Deliberately absent: whose fault it was.

use std::collections::BTreeMap;

use crate::record::{Outcome, Row};
use crate::units::{NS_PER_S, Nanos};

/// Seconds in which it changed that are told apart, of a day and a half; beyond, nothing is claimed.
const SECONDS_LIMIT: usize = 1 << 17;

/// The most rows that were behind at the end of a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Behind {
    /// Rows due by then, less rows sent by then.
    pub rows: u64,
    /// When that second ended, from `t0`.
    pub at_s: u64,
}

/// How far the sends are behind, second by second.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// By second: rows that fell behind in it, less rows that left in it and were behind before.
    steps: BTreeMap<u64, i64>,
    full: bool,
}

impl Backlog {
    pub(super) fn add(&mut self, row: &Row) {
        let Some(due) = row.scheduled else { return };
        let second = |at: Nanos| at.0 / NS_PER_S;
        let left = row.lag.map(|lag| second(due + lag));
        match left {
            Some(left) if left > second(due) => {
                self.step(second(due), 1);
                self.step(left, -1);
            }
            None if row.outcome == Outcome::Unsent => self.step(second(due), 1),
            _ => {}
        }
    }

    fn step(&mut self, second: u64, by: i64) {
        self.full |= self.steps.len() >= SECONDS_LIMIT;
        if !self.full {
            *self.steps.entry(second).or_default() += by;
        }
    }

    /// The worst second, the first of equals; `None` where it is not known.
    pub(super) fn worst(&self) -> Option<Behind> {
        let mut behind = 0_i64;
        let mut worst = Behind::default();
        for (second, step) in &self.steps {
            behind += step;
            let rows = u64::try_from(behind).unwrap_or(0);
            if rows > worst.rows {
                worst = Behind { rows, at_s: second + 1 };
            }
        }
        (!self.full).then_some(worst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::StreamRecord;

    fn row(due_ms: u64, sent_ms: Option<u64>) -> Row {
        let outcome = if sent_ms.is_some() { Outcome::Ok } else { Outcome::Unsent };
        let due = Nanos::from_millis(due_ms);
        let sent = sent_ms.map(Nanos::from_millis);
        Row::of(&StreamRecord { due, sent, outcome, ..StreamRecord::default() }, Nanos::ZERO)
    }

    #[test]
    fn the_worst_second_is_the_one_with_most_rows_behind_in_whatever_order_they_come() {
        let check = |rows: &[(u64, Option<u64>)], rows_behind, at_s| {
            let expect = Some(Behind { rows: rows_behind, at_s });
            for backwards in [false, true] {
                let mut rows = rows.to_vec();
                if backwards {
                    rows.reverse();
                }
                let mut backlog = Backlog::default();
                for (due, sent) in &rows {
                    backlog.add(&row(*due, *sent));
                }
                assert_eq!(backlog.worst(), expect, "{rows:?}");
            }
        };
        check(&[], 0, 0);
        // Late within a second, and not at its end.
        check(&[(100, Some(900)), (1_000, Some(1_999))], 0, 0);
        check(&[(900, Some(1_100)), (950, Some(3_500)), (2_100, Some(3_500))], 2, 1);
        check(&[(900, Some(1_100)), (1_950, Some(3_500)), (2_100, Some(3_500))], 2, 3);
        check(&[(500, None), (1_500, None), (2_500, Some(2_501))], 2, 2);
    }

    #[test]
    fn a_row_that_could_not_be_made_is_not_behind() {
        let mut backlog = Backlog::default();
        backlog.add(&Row { outcome: Outcome::Client, ..row(0, None) });
        backlog.add(&Row { scheduled: None, outcome: Outcome::Skipped, ..row(0, None) });
        assert_eq!(backlog.worst(), Some(Behind::default()));
    }

    #[test]
    fn beyond_its_limit_it_claims_nothing() {
        let mut backlog = Backlog::default();
        for s in 0..=SECONDS_LIMIT as u64 {
            backlog.add(&row(s * 1_000 + 999, Some(s * 1_000 + 1_001)));
        }
        assert_eq!(backlog.worst(), None);
    }
}
