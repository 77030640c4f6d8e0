//! What is gathered about one disjoint part of the rows.
//!
//! The warm-up is a part, and of the measured rows each class is one. The scopes of the summary are
//! unions of parts, so every value is kept once.

use super::distribution::{Distribution, EXACT_LIMIT};
use super::metric::{Metric, Reading};
use super::tally::Tally;
use crate::columns::Word;
use crate::record::Row;

/// Once values in all parts together exceed [`EXACT_LIMIT`], a part keeps no more than this many
/// exactly: a histogram over nine decades takes as much memory (270 KB).
const CROWDED_LIMIT: usize = 32_768;

/// Values kept exactly per distribution of a part, with so many rows in all parts together.
pub(super) fn limit(rows: u64) -> usize {
    if rows > EXACT_LIMIT as u64 { CROWDED_LIMIT } else { EXACT_LIMIT }
}

/// Inter-token latency, which stands only as long as every stream tells how many tokens a chunk has.
#[derive(Clone, Debug)]
pub(super) struct Itl {
    pub(super) pool: Distribution,
    /// Streams with gaps whose tokens per chunk are unknown.
    pub(super) unknown: u64,
}

impl Default for Itl {
    fn default() -> Self {
        Self { pool: Distribution::pooled(), unknown: 0 }
    }
}

/// Streams that tell whether they came in bursts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Streams {
    pub(super) told: u64,
    pub(super) bursty: u64,
}

impl Streams {
    pub(super) fn bursty_share(self) -> Option<f64> {
        (self.told > 0).then(|| self.bursty as f64 / self.told as f64)
    }
}

/// What comes in pieces: figures pooled over token events, and over streams.
#[derive(Clone, Debug)]
pub(super) struct Pooled {
    pub(super) gap: Distribution,
    pub(super) itl: Itl,
    pub(super) streams: Streams,
}

impl Default for Pooled {
    fn default() -> Self {
        let (itl, streams) = (Itl::default(), Streams::default());
        Self { gap: Distribution::pooled(), itl, streams }
    }
}

impl Pooled {
    pub(super) fn merge(&mut self, other: Self) {
        self.gap.merge(other.gap);
        self.itl.merge(other.itl);
        self.streams.told += other.streams.told;
        self.streams.bursty += other.streams.bursty;
    }
}

/// Counts and distributions of one part.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) tally: Tally,
    pub(super) by_metric: [Distribution; Metric::ALL.len()],
    pub(super) pooled: Pooled,
    /// Completion tokens of rows that did not fail.
    pub(super) kept_tok: u64,
}

impl Part {
    pub(super) fn new(limit: usize) -> Self {
        let mut part = Self {
            tally: Tally::default(),
            by_metric: std::array::from_fn(|place| {
                Distribution::new(Metric::ALL[place].censored_rank())
            }),
            pooled: Pooled::default(),
            kept_tok: 0,
        };
        part.set_limit(limit);
        part
    }

    pub(super) fn set_limit(&mut self, limit: usize) {
        self.by_metric.iter_mut().for_each(|values| values.set_limit(limit));
    }

    /// Adds what the row alone tells.
    pub(super) fn add_row(&mut self, row: &Row) {
        self.tally.add(row);
        if !row.outcome.is_error() {
            self.kept_tok += row.output_tok.unwrap_or(0);
        }
        for (metric, values) in Metric::ALL.iter().zip(&mut self.by_metric) {
            match metric.read(row) {
                Reading::Value(value) => values.record(value),
                Reading::Cut => values.censor(),
                Reading::Absent => {}
            }
        }
    }

    /// A stream that we cut off while it owed more tokens, or may have, has one gap of unknown length.
    pub(super) fn cut_gap(&mut self, row: &Row) {
        if row.outcome.is_censored() && row.output_tok_asked.is_none_or(|asked| asked > 1) {
            self.pooled.gap.censor();
            self.pooled.itl.pool.censor();
        }
    }
}

impl Itl {
    pub(super) fn merge(&mut self, other: Self) {
        self.unknown += other.unknown;
        self.pool.merge(other.pool);
    }

    /// The pool, when it may be claimed: something was measured, and no stream was left out.
    pub(super) fn claimed(&mut self) -> Option<&mut Distribution> {
        (self.unknown == 0 && self.pool.n() > 0).then_some(&mut self.pool)
    }
}
