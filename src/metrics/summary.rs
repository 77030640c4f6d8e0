//! The figures of a run, as plain data: what `summary.csv` and the console say.

use std::sync::Arc;

use super::backlog::Behind;
use super::distribution::Distribution;
use super::percentile::Percentile;
use super::tally::Tally;
use super::values::Basis;
use crate::columns::Unit;
use crate::units::Nanos;

/// The scope of rows due inside the measured window.
pub const MEASURED: &str = "measured";
/// The scope of all rows.
pub const ALL: &str = "all";

/// What a run came to. Instants are offsets from `t0`.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// End of the warm-up: where the measured window begins.
    pub warmup: Nanos,
    /// The first due time of all.
    pub first_due: Option<Nanos>,
    /// The last one: where the measured window ends.
    pub last_due: Option<Nanos>,
    /// The last token event of all.
    pub last_token: Option<Nanos>,
    /// When the last row ended.
    pub end: Option<Nanos>,
    /// The second in which the sends were furthest behind the schedule; `None` where that is not known.
    pub behind: Option<Behind>,
    /// Counts over the rows due inside the measured window.
    pub measured: Tally,
    /// Counts over all rows.
    pub all: Tally,
    /// The lines of `summary.csv`: scope `measured`, then `all`, then the classes by name.
    pub lines: Vec<SummaryLine>,
}

impl Summary {
    /// Length of the measured window; `None` when it has none.
    #[must_use]
    pub fn window(&self) -> Option<Nanos> {
        self.last_due.map(|last| last.since(self.warmup)).filter(|length| *length > Nanos::ZERO)
    }

    /// From the last due time to the end of the last row.
    #[must_use]
    pub fn drain(&self) -> Option<Nanos> {
        Some(self.end?.since(self.last_due?))
    }

    /// The line of a metric in a scope.
    #[must_use]
    pub fn line(&self, metric: &str, scope: &str) -> Option<&SummaryLine> {
        self.lines.iter().find(|line| *line.metric == *metric && *line.scope == *scope)
    }

    /// One figure; `None` when it is an empty cell or there is no such line.
    #[must_use]
    pub fn value(&self, metric: &str, scope: &str, stat: Stat) -> Option<f64> {
        self.line(metric, scope)?.stat(stat)
    }
}

/// A metric in a scope, in its unit. `None` is an empty cell: no value, too few, or cut off.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SummaryLine {
    /// As in SLOs: `ttft_ms`.
    pub metric: Arc<str>,
    /// `measured`, `all` or `class:NAME`.
    pub scope: Arc<str>,
    /// What the figures are counted in.
    pub unit: Unit,
    /// How they were found.
    pub basis: Basis,
    /// Measured values; for a rate, how many were counted; for `error_rate`, the rows due.
    pub n: Option<u64>,
    /// Mean of the measured values; a rate or a count.
    pub mean: Option<f64>,
    /// Sample standard deviation.
    pub std: Option<f64>,
    /// Smallest measured value.
    pub min: Option<f64>,
    /// The percentiles [`Percentile::REPORTED`]; empty below the least number that can bound them.
    pub percentiles: [Option<f64>; Percentile::REPORTED.len()],
    /// Largest measured value.
    pub max: Option<f64>,
    /// Lower end of the median's 95% interval.
    pub ci_low: Option<f64>,
    /// Its upper end.
    pub ci_high: Option<f64>,
    /// Values that we cut off.
    pub censored: Option<u64>,
}

/// Whether a median's interval means anything: it takes independent values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MedianInterval {
    /// One value per request.
    Told,
    /// Gaps of one stream depend on each other; for token counts nobody asks.
    None,
}

impl SummaryLine {
    /// Describes a distribution.
    pub(super) fn of(
        metric: &str,
        scope: &Arc<str>,
        unit: Unit,
        values: &mut Distribution,
        interval: MedianInterval,
    ) -> Self {
        let parts = unit.parts();
        let scaled = |value: Option<u64>| value.map(|value| value as f64 / parts);
        let (low, high) = match interval {
            MedianInterval::Told => values.median_interval(),
            MedianInterval::None => (None, None),
        };
        Self {
            metric: metric.into(),
            scope: Arc::clone(scope),
            unit,
            basis: values.basis(),
            n: Some(values.n()),
            mean: values.mean().map(|mean| mean / parts),
            std: values.std().map(|std| std / parts),
            min: scaled(values.min()),
            percentiles: Percentile::REPORTED
                .map(|percentile| scaled(values.bounded_percentile(percentile))),
            max: scaled(values.max()),
            ci_low: scaled(low),
            ci_high: scaled(high),
            censored: Some(values.censored()),
        }
    }

    /// A rate or a count, which stands in `mean`.
    pub(super) fn single(
        metric: &str,
        scope: &Arc<str>,
        unit: Unit,
        n: Option<u64>,
        value: Option<f64>,
    ) -> Self {
        Self {
            metric: metric.into(),
            scope: Arc::clone(scope),
            unit,
            n,
            mean: value,
            ..Self::default()
        }
    }

    /// Empties every cell: the figure is not known.
    pub fn clear(&mut self) {
        let (unit, basis) = (self.unit, self.basis);
        *self = Self { basis, ..Self::single(&self.metric, &self.scope, unit, None, None) };
    }

    /// One of [`Percentile::REPORTED`].
    #[must_use]
    pub fn percentile(&self, wanted: Percentile) -> Option<f64> {
        self.percentiles[place(wanted)?]
    }

    /// Fills in one of [`Percentile::REPORTED`].
    pub(super) fn set_percentile(&mut self, percentile: Percentile, value: Option<f64>) {
        if let Some(place) = place(percentile) {
            self.percentiles[place] = value;
        }
    }

    /// Whether there are values enough to bound this percentile. Where there are and it is empty all
    /// the same, it falls on a value that we cut off.
    #[must_use]
    pub fn bounds(&self, percentile: Percentile) -> bool {
        self.n.unwrap_or(0) + self.censored.unwrap_or(0) >= percentile.least_n()
    }

    /// The figure that a name stands for.
    #[must_use]
    pub fn stat(&self, stat: Stat) -> Option<f64> {
        match stat {
            Stat::Mean => self.mean,
            Stat::Std => self.std,
            Stat::Min => self.min,
            Stat::Max => self.max,
            Stat::Percentile(percentile) => self.percentile(percentile),
        }
    }
}

/// Where a percentile stands among those reported.
fn place(wanted: Percentile) -> Option<usize> {
    Percentile::REPORTED.iter().position(|percentile| *percentile == wanted)
}

/// A figure of a [`SummaryLine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stat {
    /// Mean; the value of a rate or a count.
    Mean,
    /// Sample standard deviation.
    Std,
    /// Smallest measured value.
    Min,
    /// Largest measured value.
    Max,
    /// A percentile.
    Percentile(Percentile),
}
