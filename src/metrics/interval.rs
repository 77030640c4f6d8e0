//! What a run's rows do not tell, in pieces that add up: token gaps and token counts by ten seconds
//! of arrival, by class, and by phase.
//!
//! The run's own pooled figures are made of the same pieces that go into `intervals.csv`, so that the
//! files alone give them again, to the last digit. Any number of pieces may speak of the same ten
//! seconds. The `phase` of a gap is that of its row; the `phase` of tokens says on which side of the
//! measured window's edges they arrived, so an interval with an edge in it comes in two pieces.
//! Deliberately absent: what the rows tell already, and the end of the window, which only they know.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::burst::came_in_bursts;
use super::pool::Pool;
use crate::columns::words;
use crate::record::{Outcome, Row, StreamRecord};
use crate::units::{NS_PER_S, Nanos};

/// Length of an interval.
pub const INTERVAL_S: u64 = 10;

words! {
    /// Where a piece belongs.
    #[derive(Default, PartialOrd, Ord)]
    pub enum IntervalPhase {
        /// Rows due, or tokens arrived, before the measured window.
        Warmup = "warmup",
        /// Inside it.
        #[default]
        Measured = "measured",
        /// Tokens that arrived after it.
        Drain = "drain",
    }
}

words! {
    /// What a piece counts.
    #[derive(PartialOrd, Ord)]
    pub enum Quantity {
        /// Time between two token events of a stream.
        Gap = "gap_ms",
        /// The same, of streams with one token an event: gap and inter-token latency at once.
        GapItl = "gap_itl_ms",
        /// Inter-token latency, of streams with several.
        Itl = "itl_ms",
        /// Streams whose tokens per event are not known, by their last token event.
        ItlUnknown = "itl_unknown",
        /// Tokens of rows that did not fail.
        Output = "output_tok",
        /// Tokens of failed rows.
        Wasted = "wasted_tok",
        /// Streams that tell whether they came in bursts, by their last token event.
        Streams = "streams",
        /// Those of them that did.
        Bursty = "bursty_streams",
        /// Rows, by due time: how far the pieces go.
        Rows = "rows",
    }
}

/// A piece: `pool.n` counts, and the rest of the pool tells of gaps.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// Its place: it begins [`INTERVAL_S`] times this after `t0`.
    pub index: u64,
    /// Class of the rows.
    pub class: Option<Arc<str>>,
    /// Which part of the run.
    pub phase: IntervalPhase,
    /// What is counted.
    pub quantity: Quantity,
    /// Whether every instant was kept exactly.
    pub exact: bool,
    /// How many, and how long.
    pub pool: Pool,
}

impl Quantity {
    /// Whether it is a histogram of times, not a plain count.
    #[must_use]
    pub fn is_times(self) -> bool {
        matches!(self, Self::Gap | Self::GapItl | Self::Itl)
    }

    /// Whether it counts gaps between token events.
    #[must_use]
    pub fn is_gaps(self) -> bool {
        matches!(self, Self::Gap | Self::GapItl)
    }
}

/// Whose piece it is, by the class's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) index: u64,
    pub(super) class: usize,
    pub(super) phase: IntervalPhase,
    pub(super) quantity: Quantity,
    pub(super) exact: bool,
}

impl Key {
    fn at(self, at: Nanos) -> Self {
        Self { index: at.0 / (INTERVAL_S * NS_PER_S), ..self }
    }
}

/// Pieces that have not been taken yet.
#[derive(Debug, Default)]
pub(super) struct Pending(pub(super) BTreeMap<Key, Pool>);

impl Pending {
    /// Counts something that happened at `at`.
    pub(super) fn count(&mut self, key: Key, at: Nanos, n: u64) {
        self.0.entry(key.at(at)).or_default().n += n;
    }

    /// Adds values with their instants, which come in order.
    fn record(&mut self, key: Key, values: impl Iterator<Item = (Nanos, Nanos, u64)>) {
        let mut values = values.peekable();
        while let Some((at, _, _)) = values.peek() {
            let key = key.at(*at);
            let pool = self.0.entry(key).or_default();
            while let Some((_, value, n)) = values.next_if(|(at, _, _)| key.at(*at) == key) {
                pool.record(value.0, n);
            }
        }
    }

    /// Adds the gaps of a stream, where its row takes part in latencies.
    pub(super) fn add_gaps(&mut self, key: Key, row: &Row, record: &StreamRecord) {
        if row.outcome != Outcome::Ok && !row.outcome.is_censored() {
            return;
        }
        let tokens = &record.tokens;
        let last = tokens.last().unwrap_or_default();
        if let Some(bursty) = came_in_bursts(record) {
            self.count(Key { quantity: Quantity::Streams, ..key }, last, 1);
            if bursty {
                self.count(Key { quantity: Quantity::Bursty, ..key }, last, 1);
            }
        }
        let gaps = || tokens.arrivals().skip(1).zip(tokens.gaps());
        let key = |quantity| Key { quantity, ..key };
        let steps = tokens.running_steps();
        let one_each = steps.is_none() && row.has_token_per_event(record);
        let of_gaps = if one_each { Quantity::GapItl } else { Quantity::Gap };
        self.record(key(of_gaps), gaps().map(|(at, gap)| (at, gap, 1)));
        if tokens.count() < 2 || one_each {
            return;
        }
        if let Some(steps) = steps {
            // An event that moved no count lends its gap to the next one: no time is lost.
            let mut waited = Nanos::ZERO;
            let each = gaps().zip(steps.skip(1)).filter_map(|((at, gap), step)| {
                waited += gap;
                let k = u64::from(step);
                let each = (waited.0 + k / 2).checked_div(k)?;
                waited = Nanos::ZERO;
                Some((at, Nanos(each), k))
            });
            self.record(key(Quantity::Itl), each);
        } else if row.outcome == Outcome::Ok {
            self.count(key(Quantity::ItlUnknown), last, 1);
        }
        // A row that we cut never came to its count, which says nothing about the server: its gap
        // is censored, and the others still stand.
    }
}
