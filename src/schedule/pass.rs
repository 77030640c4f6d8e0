//! `--repeat`: the shaped source several times, end to end, as passes of one plan.
//!
//! A pass begins where the one before it ends: at the duration where one was given, else one mean gap
//! after its last row, so that the rate goes on as it was. Rows of later passes are numbered on after
//! the last row that the first one read, and their sessions are others; prefix blocks stay the same, as
//! they would if the same users came again. Rows that are read only to be left out are counted once, in
//! the last pass.

use std::fmt;

use crate::trace::Request;
use crate::units::Nanos;

/// Passes that are still to come.
pub(super) struct Later<I>(Option<Box<dyn Iterator<Item = I> + Send>>, u64);

impl<I> Later<I> {
    pub(super) fn none() -> Self {
        Self(None, 0)
    }

    /// So many.
    pub(super) fn of(count: u64, passes: impl Iterator<Item = I> + Send + 'static) -> Self {
        Self(Some(Box::new(passes)), count)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.1 == 0
    }

    pub(super) fn next(&mut self) -> Option<I> {
        self.1 = self.1.checked_sub(1)?;
        self.0.as_mut()?.next()
    }
}

impl<I> fmt::Debug for Later<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Later({})", self.1)
    }
}

/// Where a plan stands in the pass under way. Times are of the pass.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pass {
    number: u64,
    /// When it begins.
    begin: Nanos,
    /// Rows planned.
    pub(super) rows: u64,
    first_due: Option<Nanos>,
    /// Due time of the row before; its beginning for the first.
    pub(super) last_due: Nanos,
    /// Time that the gap cap took out.
    pub(super) removed: Nanos,
    /// Beyond the last row read by the first pass.
    next_row: u64,
}

impl Pass {
    /// Takes in a row as read: numbers it, and sets its session apart.
    pub(super) fn take(&mut self, request: &mut Request) {
        if self.number == 0 {
            self.next_row = self.next_row.max(request.row.saturating_add(1));
            return;
        }
        request.source_row = Some(request.source_row.unwrap_or(request.row));
        request.row = request.row.saturating_add(self.number.saturating_mul(self.next_row));
        if let Some(session) = &request.session {
            request.session = Some(format!("{session}#{}", self.number + 1).into());
        }
    }

    pub(super) fn is_first(&self) -> bool {
        self.number == 0
    }

    /// A row is planned at this time of the pass; when that is in the plan.
    pub(super) fn plan(&mut self, due: Nanos) -> Nanos {
        self.first_due.get_or_insert(due);
        self.last_due = due;
        self.begin + due
    }

    /// The pass after this one.
    pub(super) fn after(self, duration: Option<Nanos>) -> Self {
        let span = self.last_due.since(self.first_due.unwrap_or_default());
        let gap = Nanos(span.0 / self.rows.saturating_sub(1).max(1));
        let begin = self.begin + duration.unwrap_or(self.last_due + gap);
        Self { number: self.number + 1, begin, next_row: self.next_row, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::super::{PlanFacts, Shape, plan, write_plan};
    use super::*;

    /// Rows at 1, 2 and 4 s; the second belongs to a session.
    fn rows() -> std::vec::IntoIter<Result<Request, Infallible>> {
        let row = |(row, at, session): (u64, u64, Option<&str>)| {
            let (at, session) = (Nanos::from_secs(at), session.map(Into::into));
            Ok(Request {
                row,
                at,
                session,
                input_tok: 5,
                output_tok: Some(6),
                ..Request::default()
            })
        };
        let all: Vec<_> = [(0, 1, None), (1, 2, Some("s")), (2, 4, None)].map(row).into();
        all.into_iter()
    }

    /// `row session due source_row` of every row of three passes.
    fn thrice(shape: &Shape) -> (Vec<String>, PlanFacts) {
        let mut plan = plan(rows(), shape).repeated(2, std::iter::repeat_with(rows));
        let mut csv = Vec::new();
        write_plan(&mut csv, &mut plan).expect("a vector takes all");
        let facts = plan.read_rest().expect("no errors").clone();
        let text = String::from_utf8(csv).expect("text");
        let cells = |line: &str| {
            let cells: Vec<&str> = line.split(',').collect();
            format!(
                "{} {} {} {}",
                cells[0],
                cells[1],
                cells[4].trim_end_matches("00000000"),
                cells[8]
            )
        };
        (text.lines().skip(1).map(cells).collect(), facts)
    }

    #[test]
    fn passes_follow_each_other_at_the_same_rate() {
        // Two gaps in three seconds: the next pass begins 1.5 s after the last row.
        let (rows, facts) = thrice(&Shape::default());
        let expect = [
            "0  1.0 0",
            "1 s 2.0 1",
            "2  4.0 2",
            "3  6.5 0",
            "4 s#2 7.5 1",
            "5  9.5 2",
            "6  12.0 0",
            "7 s#3 13.0 1",
            "8  15.0 2",
        ];
        assert_eq!(rows, expect);
        assert_eq!((facts.rows, facts.repeats, facts.left_out + facts.past_end), (9, 2, 0));
        assert_eq!(facts.last_due, Some(Nanos::from_secs(15)));
    }

    #[test]
    fn a_shape_holds_for_each_pass() {
        let duration = Shape { duration: Some(Nanos::from_secs(3)), ..Shape::default() };
        let (rows, facts) = thrice(&duration);
        assert_eq!(rows[2..4], ["3  4.0 0", "4 s#2 5.0 1"], "a duration is the length of a pass");
        assert_eq!((facts.rows, facts.past_end), (6, 1), "what is left out is counted once");
        let limit = Shape { limit: Some(1), ..Shape::default() };
        assert_eq!(thrice(&limit).0, ["0  1.0 0", "1  2.0 0", "2  3.0 0"]);
        let gaps = Shape { max_gap: Some(Nanos::from_secs(1)), ..Shape::default() };
        let (rows, facts) = thrice(&gaps);
        assert_eq!(rows[2..4], ["2  3.0 2", "3  5.0 0"]);
        assert_eq!((facts.shortened_gaps, facts.removed), (3, Nanos::from_secs(3)));
        let none = Shape { from: Some(Nanos::from_secs(9)), ..Shape::default() };
        assert_eq!(thrice(&none).0.len(), 0, "and ends");
    }
}
