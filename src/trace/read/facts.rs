//! What is known of a whole trace once every row was looked at.

use crate::trace::OutputSum;
use crate::units::Nanos;

/// What the validating pass found out about a whole file. Counts of kept rows unless said otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Data rows in the file.
    pub rows_read: u64,
    /// Those of them that are no request: other events, calls of another kind.
    pub rows_skipped: u64,
    /// Rows that will be replayed.
    pub rows_kept: u64,
    /// Rows recorded with output 0, kept or dropped.
    pub rows_failed: u64,
    /// Rows whose prompt of 0 tokens was raised to 1.
    pub rows_raised: u64,
    /// Rows earlier than a row that stands before them in the file, which sorting moves.
    pub rows_moved: u64,
    /// Trace time of the earliest row.
    pub first: Nanos,
    /// Trace time of the latest row.
    pub last: Nanos,
    /// Sum of prompt lengths.
    pub input_tok: u64,
    /// Sum of completion lengths.
    pub output: OutputSum,
    /// Number of different times. Far below `rows_kept` where the recorder rounded them.
    pub distinct_times: u64,
    /// The largest step that all times are whole multiples of, counted from the first; 0 where all are
    /// equal.
    pub time_step: Nanos,
    /// Whose clock the times are of.
    pub clock: TraceClock,
}

/// Whose clock a trace's times are of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceClock {
    /// One for all rows.
    #[default]
    Common,
    /// Each session counts from its own start, and nothing says when that was.
    PerSession,
    /// Rows have no times.
    Absent,
}

/// The largest step that all times are whole multiples of, counted from the first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Step {
    origin_ns: Option<i64>,
    /// 0 as long as all are equal.
    step_ns: u64,
}

impl Step {
    pub(super) fn add(&mut self, at_ns: i64) {
        let mut apart = at_ns.abs_diff(*self.origin_ns.get_or_insert(at_ns));
        if apart.is_multiple_of(self.step_ns) {
            return;
        }
        // Euclid.
        let mut step = self.step_ns;
        while step > 0 {
            (apart, step) = (step, apart % step);
        }
        self.step_ns = apart;
    }

    pub(super) fn span(self) -> Nanos {
        Nanos(self.step_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_common_divisors() {
        let step = |times: &[i64]| {
            let mut step = Step::default();
            for at in times {
                step.add(*at);
            }
            step.span().0
        };
        assert_eq!(step(&[]), 0);
        assert_eq!(step(&[7, 7]), 0);
        assert_eq!(step(&[5, 3_005, 6_005, 5]), 3_000);
        assert_eq!(step(&[3_005, 5, -5_995, 1_005]), 1_000);
        assert_eq!(step(&[i64::MIN, i64::MAX]), u64::MAX);
    }
}
