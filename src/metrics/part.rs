//! What is gathered about one disjoint part of the rows.
//!
//! The warm-up is a part, and of the measured rows each class is one. The scopes of the summary are
//! unions of parts, so every value is kept once.

use super::distribution::{CensoredRank, Distribution, EXACT_LIMIT};
use super::metric::{Metric, Reading};
use super::tally::Tally;
use crate::record::{Outcome, Row, TokenSource, TokenTimes};
use crate::units::Nanos;

/// Once values in all parts together exceed [`EXACT_LIMIT`], a part keeps no more than this many
/// exactly: a histogram over nine decades takes as much memory (270 KB).
const CROWDED_LIMIT: usize = 32_768;

/// Values kept exactly per distribution of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// For metrics with one value per row.
    pub(super) rows: usize,
    /// For those pooled over tokens.
    pub(super) pools: usize,
}

impl Limits {
    /// The limits for so many rows and so many pooled values in all parts together.
    pub(super) fn for_totals(rows: u64, pooled: u64) -> Self {
        let limit = |n| if n > EXACT_LIMIT as u64 { CROWDED_LIMIT } else { EXACT_LIMIT };
        Self { rows: limit(rows), pools: limit(pooled) }
    }
}

/// Inter-token latency, which stands only as long as every stream tells how many tokens a chunk has.
#[derive(Clone, Debug, Default)]
pub(super) struct Itl {
    pub(super) pool: Distribution,
    /// Streams with gaps whose tokens per chunk are unknown.
    pub(super) unknown: u64,
}

/// Counts and distributions of one part.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) tally: Tally,
    pub(super) by_metric: [Distribution; Metric::ALL.len()],
    pub(super) gap: Distribution,
    pub(super) itl: Itl,
    /// Completion tokens of rows that did not fail.
    pub(super) kept_tok: u64,
}

impl Part {
    pub(super) fn new(limits: Limits) -> Self {
        let mut part = Self {
            tally: Tally::default(),
            by_metric: Metric::ALL.map(|metric| Distribution::new(metric.censored_rank())),
            gap: Distribution::new(CensoredRank::Above),
            itl: Itl::default(),
            kept_tok: 0,
        };
        part.set_limits(limits);
        part
    }

    pub(super) fn set_limits(&mut self, limits: Limits) {
        self.by_metric.iter_mut().for_each(|values| values.set_limit(limits.rows));
        self.gap.set_limit(limits.pools);
        self.itl.pool.set_limit(limits.pools);
    }

    /// Adds what the row alone tells.
    pub(super) fn add_row(&mut self, row: &Row) {
        self.tally.add(row);
        if !row.outcome.is_error() {
            self.kept_tok += row.output_tok.unwrap_or(0);
        }
        for (metric, values) in Metric::ALL.into_iter().zip(&mut self.by_metric) {
            match metric.read(row) {
                Reading::Value(value) => values.record(value),
                Reading::Cut => values.censor(),
                Reading::Absent => {}
            }
        }
    }

    /// Adds the gaps between a stream's token events, where its row takes part in latencies.
    ///
    /// A stream that we cut off while it owed more tokens has one gap of unknown length.
    pub(super) fn add_gaps(&mut self, row: &Row, tokens: &TokenTimes) {
        let cut = row.outcome.is_censored();
        if row.outcome != Outcome::Ok && !cut {
            return;
        }
        tokens.gaps().for_each(|gap| self.gap.record(gap.0));
        self.itl.add(row, tokens);
        if cut && row.output_tok_asked > 1 {
            self.gap.censor();
            self.itl.pool.censor();
        }
    }
}

impl Itl {
    fn add(&mut self, row: &Row, tokens: &TokenTimes) {
        if tokens.count() < 2 {
            return;
        }
        let counted = row.token_source.is_some_and(|source| source != TokenSource::Events);
        if let Some(steps) = tokens.running_steps() {
            // An event that moved no count lends its gap to the next one: no time is lost.
            let mut waited = Nanos::ZERO;
            for (gap, step) in tokens.gaps().zip(steps.skip(1)) {
                waited += gap;
                let k = u64::from(step);
                if let Some(each) = (waited.0 + k / 2).checked_div(k) {
                    self.pool.record_n(each, k);
                    waited = Nanos::ZERO;
                }
            }
        } else if counted && row.output_tok == Some(tokens.count()) {
            tokens.gaps().for_each(|gap| self.pool.record(gap.0));
        } else if row.outcome == Outcome::Ok {
            self.unknown += 1;
        }
        // A row that we cut never came to its count, which says nothing about the server: its gap
        // is censored, and the others still stand.
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.unknown += other.unknown;
        self.pool.merge(other.pool);
    }

    /// The pool, when it may be claimed: something was measured, and no stream was left out.
    pub(super) fn claimed(&mut self) -> Option<&mut Distribution> {
        (self.unknown == 0 && self.pool.n() > 0).then_some(&mut self.pool)
    }
}
