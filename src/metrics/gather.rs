//! Gathers the metrics of a run, row by row as they end, in bounded memory.
//!
//! Values stay exact up to a million rows, then large parts turn into histograms; what is pooled over
//! tokens goes into buckets from the first on, and comes there by way of the pieces that
//! [`take_intervals`](Metrics::take_intervals) gives out. Beyond [`CLASS_LIMIT`] classes, the rest
//! share one.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::backlog::Backlog;
use super::interval::{Interval, IntervalPhase, Key, Pending, Quantity};
use super::ledger::{Account, Booked, Ledger, Settled, spread};
use super::part::{Part, limit};
use super::pool::Pool;
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

/// First and last instants of the run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    pub(super) first_due: Option<Nanos>,
    pub(super) last_due: Option<Nanos>,
    /// Of measured rows.
    pub(super) last_sent: Option<Nanos>,
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
    /// Tokens inside the window, by class.
    pub(super) booked: Vec<Booked>,
    /// Whether those are counted to the last one.
    pub(super) exact: bool,
    pub(super) backlog: Backlog,
    outputs: Ledger,
    inputs: Ledger,
    pending: Pending,
    rows: u64,
    limit: usize,
}

impl Metrics {
    /// Starts with no rows.
    #[must_use]
    pub fn new(window: Window) -> Self {
        let limit = limit(0);
        let ledger = || Ledger::new(window.warmup, window.last_due);
        Self {
            window,
            marks: Marks::default(),
            classes: HashMap::new(),
            warmup: Part::new(limit),
            measured: vec![Part::new(limit)],
            booked: vec![Booked::default()],
            exact: true,
            backlog: Backlog::default(),
            outputs: ledger(),
            inputs: ledger(),
            pending: Pending::default(),
            rows: 0,
            limit,
        }
    }

    /// Adds a row and the record that it was computed from, as they end.
    pub fn add(&mut self, row: &Row, record: &StreamRecord) {
        let class = self.add_row_of(row);
        let phase = match row.phase {
            Phase::Warmup => IntervalPhase::Warmup,
            Phase::Measured => IntervalPhase::Measured,
        };
        let key = Key { index: 0, class, phase, quantity: Quantity::Gap, exact: true };
        let rows = Key { quantity: Quantity::Rows, ..key };
        self.pending.count(rows, row.scheduled.unwrap_or_default(), 1);
        self.pending.add_gaps(key, row, record);
        self.book_output(class, row, record);
    }

    /// Adds what a row alone tells. The rest comes with [`add_interval`](Self::add_interval).
    pub fn add_row(&mut self, row: &Row) {
        self.add_row_of(row);
    }

    /// Adds a piece that another [`Metrics`] gave out.
    pub fn add_interval(&mut self, interval: &Interval) {
        let class = self.class_of(interval.class.as_ref());
        let Interval { index, phase, quantity, exact, .. } = *interval;
        self.absorb(Key { index, class, phase, quantity, exact }, &interval.pool);
    }

    /// Takes the pieces of which it is known by now where they belong, once each: the plain counts,
    /// and the histograms too where `times` says so.
    pub fn take_intervals(&mut self, times: bool) -> Vec<Interval> {
        let pending = &mut self.pending;
        self.outputs.settle(&mut |settled| pending.count_tokens(settled));
        let mut names: Vec<Option<Arc<str>>> = vec![None; self.measured.len()];
        for (name, class) in &self.classes {
            names[*class] = Some(Arc::clone(name));
        }
        let all = std::mem::take(&mut self.pending.0).into_iter();
        let (kept, pieces): (BTreeMap<_, _>, BTreeMap<_, _>) =
            all.partition(|(key, _)| !times && key.quantity.is_times());
        self.pending.0 = kept;
        let intervals = pieces.into_iter().map(|(key, pool)| {
            self.absorb(key, &pool);
            let Key { index, class, phase, quantity, exact } = key;
            Interval { index, class: names[class].clone(), phase, quantity, exact, pool }
        });
        intervals.collect()
    }

    /// Says that no row will follow, so that the end of the window is known.
    pub fn close(&mut self) {
        let pending = &mut self.pending;
        self.outputs.close(&mut |settled| pending.count_tokens(settled));
        let booked = &mut self.booked;
        self.inputs.close(&mut |settled| book_input(booked, settled));
    }

    fn absorb(&mut self, key: Key, pool: &Pool) {
        self.exact &= key.exact;
        let inside = key.phase == IntervalPhase::Measured;
        let part = if inside { &mut self.measured[key.class] } else { &mut self.warmup };
        let pooled = &mut part.pooled;
        let booked = &mut self.booked[key.class];
        match key.quantity {
            Quantity::Gap => pooled.gap.absorb(pool),
            Quantity::GapItl => {
                pooled.gap.absorb(pool);
                pooled.itl.pool.absorb(pool);
            }
            Quantity::Itl => pooled.itl.pool.absorb(pool),
            Quantity::ItlUnknown => pooled.itl.unknown += pool.n,
            Quantity::Streams => pooled.streams.told += pool.n,
            Quantity::Bursty => pooled.streams.bursty += pool.n,
            Quantity::Output if inside => booked.put(Account::Output, pool.n),
            Quantity::Wasted if inside => booked.put(Account::Wasted, pool.n),
            Quantity::Output | Quantity::Wasted | Quantity::Rows => {}
        }
    }

    fn add_row_of(&mut self, row: &Row) -> usize {
        let class = self.class_of(row.class.as_ref());
        self.mark(row);
        self.backlog.add(row);
        let part = match row.phase {
            Phase::Warmup => &mut self.warmup,
            Phase::Measured => &mut self.measured[class],
        };
        part.add_row(row);
        part.cut_gap(row);
        self.rows += 1;
        self.book_input(class, row);
        self.keep_bounded();
        class
    }

    fn class_of(&mut self, name: Option<&Arc<str>>) -> usize {
        let Some(name) = name else { return 0 };
        if let Some(class) = self.classes.get(name) {
            return *class;
        }
        let full = self.classes.len() >= CLASS_LIMIT;
        let name = if full { Arc::from(OTHER_CLASS) } else { Arc::clone(name) };
        let next = self.measured.len();
        let class = *self.classes.entry(name).or_insert(next);
        if class == next {
            self.measured.push(Part::new(self.limit));
            self.booked.push(Booked::default());
        }
        class
    }

    fn mark(&mut self, row: &Row) {
        let Some(due) = row.scheduled else { return };
        self.outputs.due(due);
        self.inputs.due(due);
        let marks = &mut self.marks;
        marks.first_due = Some(marks.first_due.map_or(due, |first| first.min(due)));
        marks.last_due = marks.last_due.max(Some(due));
        let after_due = |span: Option<Nanos>| span.map(|span| due + span);
        if row.phase == Phase::Measured {
            marks.last_sent = marks.last_sent.max(after_due(row.lag));
        }
        marks.last_token = marks.last_token.max(after_due(row.e2e));
        let ends = [Some(due), after_due(row.e2e), after_due(row.close)];
        marks.end = ends.into_iter().fold(marks.end, Option::max);
    }

    /// Books the row's tokens by the time when they came, whatever phase the row belongs to.
    fn book_output(&mut self, class: usize, row: &Row, record: &StreamRecord) {
        let account = if row.outcome.is_error() { Account::Wasted } else { Account::Output };
        let (ledger, pending) = (&mut self.outputs, &mut self.pending);
        spread(&record.tokens, row.output_tok.unwrap_or(0), record.close, |at, n| {
            ledger.book(class, account, at, n, &mut |settled| pending.count_tokens(settled));
        });
    }

    fn book_input(&mut self, class: usize, row: &Row) {
        let (Outcome::Ok, Some(due)) = (row.outcome, row.scheduled) else {
            return;
        };
        let booked = &mut self.booked;
        let mut book = |account, at, n| {
            self.inputs.book(class, account, at, n, &mut |settled| book_input(booked, settled));
        };
        if let Some(end) = row.close.or(row.e2e) {
            book(Account::Finished, due + end, 1);
        }
        if let Some(ttft) = row.ttft {
            let (account, n) = match row.input_tok {
                Some(n) => (Account::Input, n),
                None => (Account::Uncounted, 1),
            };
            book(account, due + ttft, n);
        }
    }

    fn keep_bounded(&mut self) {
        let limit = limit(self.rows);
        if limit != self.limit {
            self.limit = limit;
            self.warmup.set_limit(limit);
            self.measured.iter_mut().for_each(|part| part.set_limit(limit));
        }
    }
}

impl Pending {
    fn count_tokens(&mut self, settled: Settled) {
        let Settled { class, phase, exact, .. } = settled;
        let quantity = match settled.account {
            Account::Wasted => Quantity::Wasted,
            _ => Quantity::Output,
        };
        self.count(Key { index: 0, class, phase, quantity, exact }, settled.at, settled.tokens);
    }
}

fn book_input(booked: &mut [Booked], settled: Settled) {
    if settled.phase == IntervalPhase::Measured {
        booked[settled.class].put(settled.account, settled.tokens);
    }
}
