//! Gathers the metrics of a run, row by row as they end, in bounded memory.
//!
//! Values stay exact up to a million rows (and a million pooled gaps), then large parts turn into
//! histograms. Beyond [`CLASS_LIMIT`] classes, the rest share one.

use std::collections::HashMap;
use std::sync::Arc;

use super::finish;
use super::ledger::{Account, Ledger, spread};
use super::part::{Limits, Part};
use super::summary::Summary;
use crate::record::{Outcome, Phase, Row, StreamRecord};
use crate::units::Nanos;

/// Classes told apart. Later ones are counted together.
pub const CLASS_LIMIT: usize = 64;
/// The name under which they are.
pub const OTHER_CLASS: &str = "(other)";

/// The measured window as known before the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Rows due before this are warm-up; the window begins here.
    pub warmup: Nanos,
    /// No row is due later than this. Saves keeping tokens of which only the end of the run tells
    /// whether they came inside the window; the window still ends with the last row that *was* due.
    pub last_due: Option<Nanos>,
}

/// First and last instants of the run; the last due time is the ledger's horizon.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    pub(super) first_due: Option<Nanos>,
    pub(super) last_token: Option<Nanos>,
    pub(super) end: Option<Nanos>,
}

/// The metrics of a run so far.
#[derive(Debug)]
pub struct Metrics {
    pub(super) window: Window,
    pub(super) marks: Marks,
    /// Classes by name. Class 0 is that of rows without one.
    pub(super) classes: HashMap<Arc<str>, usize>,
    pub(super) warmup: Part,
    /// Measured rows by class.
    pub(super) measured: Vec<Part>,
    pub(super) ledger: Ledger,
    rows: u64,
    gaps: u64,
    itls: u64,
    limits: Limits,
}

impl Metrics {
    /// Starts with no rows.
    #[must_use]
    pub fn new(window: Window) -> Self {
        let limits = Limits::for_totals(0, 0);
        Self {
            window,
            marks: Marks::default(),
            classes: HashMap::new(),
            warmup: Part::new(limits),
            measured: vec![Part::new(limits)],
            ledger: Ledger::new(window.warmup, window.last_due),
            rows: 0,
            gaps: 0,
            itls: 0,
            limits,
        }
    }

    /// Adds a row and the record that it was computed from, as they end.
    pub fn add(&mut self, row: &Row, record: &StreamRecord) {
        let class = self.class_of(row);
        self.mark(row, record);
        let part = match row.phase {
            Phase::Warmup => &mut self.warmup,
            Phase::Measured => &mut self.measured[class],
        };
        part.add_row(row);
        let (gaps, itls) = (part.gap.n(), part.itl.pool.n());
        part.add_gaps(row, &record.tokens);
        self.gaps += part.gap.n() - gaps;
        self.itls += part.itl.pool.n() - itls;
        self.rows += 1;
        self.book(class, row, record);
        self.keep_bounded();
    }

    /// The figures of everything added.
    #[must_use]
    pub fn finish(self) -> Summary {
        finish::summary(self)
    }

    fn class_of(&mut self, row: &Row) -> usize {
        let Some(name) = &row.class else { return 0 };
        if let Some(class) = self.classes.get(name) {
            return *class;
        }
        let full = self.classes.len() >= CLASS_LIMIT;
        let name = if full { Arc::from(OTHER_CLASS) } else { Arc::clone(name) };
        let next = self.measured.len();
        let class = *self.classes.entry(name).or_insert(next);
        if class == next {
            self.measured.push(Part::new(self.limits));
        }
        class
    }

    fn mark(&mut self, row: &Row, record: &StreamRecord) {
        let marks = &mut self.marks;
        if let Some(due) = row.scheduled {
            self.ledger.due(due);
            marks.first_due = Some(marks.first_due.map_or(due, |first| first.min(due)));
        }
        let last_token = record.tokens.last();
        marks.last_token = marks.last_token.max(last_token);
        marks.end = marks.end.max(record.close).max(last_token).max(row.scheduled);
    }

    /// Books the row's tokens by the time when they came, whatever phase the row belongs to.
    fn book(&mut self, class: usize, row: &Row, record: &StreamRecord) {
        let account = if row.outcome.is_error() { Account::Wasted } else { Account::Output };
        let ledger = &mut self.ledger;
        spread(&record.tokens, row.output_tok.unwrap_or(0), record.close, |at, n| {
            ledger.book(class, account, at, n);
        });
        if let (Outcome::Ok, Some(end)) = (row.outcome, record.close.or(record.tokens.last())) {
            ledger.book(class, Account::Finished, end, 1);
        }
        if let (Outcome::Ok, Some(first)) = (row.outcome, record.tokens.first()) {
            match row.input_tok {
                Some(n) => ledger.book(class, Account::Input, first, n),
                None => ledger.book(class, Account::Uncounted, first, 1),
            }
        }
    }

    fn keep_bounded(&mut self) {
        let limits = Limits::for_totals(self.rows, self.gaps.max(self.itls));
        if limits != self.limits {
            self.limits = limits;
            self.warmup.set_limits(limits);
            self.measured.iter_mut().for_each(|part| part.set_limits(limits));
        }
    }
}
