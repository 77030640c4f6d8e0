//! One line of `summary.csv` as plain data: a metric in a scope.

use std::sync::Arc;

use super::distribution::{Basis, Distribution};
use super::metric::Unit;
use super::percentile::Percentile;

/// A metric in a scope, in its unit. `None` is an empty cell: no value, too few, or cut off.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
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
pub(super) enum Interval {
    /// One value per request.
    OfMedian,
    /// Gaps of one stream depend on each other; for token counts nobody asks.
    None,
}

impl Line {
    /// Describes a distribution.
    pub(super) fn of(
        metric: &str,
        scope: &Arc<str>,
        unit: Unit,
        values: &mut Distribution,
        interval: Interval,
    ) -> Self {
        let parts = unit.parts();
        let scaled = |value: Option<u64>| value.map(|value| value as f64 / parts);
        let (low, high) = match interval {
            Interval::OfMedian => values.median_interval(),
            Interval::None => (None, None),
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
                .map(|(percentile, _)| scaled(values.bounded_percentile(percentile))),
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
            basis: Basis::Exact,
            n,
            mean: value,
            std: None,
            min: None,
            percentiles: [None; Percentile::REPORTED.len()],
            max: None,
            ci_low: None,
            ci_high: None,
            censored: None,
        }
    }

    /// Empties every cell: the figure is not known.
    pub fn clear(&mut self) {
        (self.n, self.censored) = (None, None);
        (self.mean, self.std, self.min, self.max) = (None, None, None, None);
        (self.ci_low, self.ci_high) = (None, None);
        self.percentiles = [None; Percentile::REPORTED.len()];
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
    Percentile::REPORTED.iter().position(|(percentile, _)| *percentile == wanted)
}

/// A figure of a [`Line`].
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

impl Stat {
    /// Reads `mean`, `std`, `min`, `max` or a percentile such as `p99`.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "mean" => Self::Mean,
            "std" => Self::Std,
            "min" => Self::Min,
            "max" => Self::Max,
            _ => Self::Percentile(Percentile::parse(word)?),
        })
    }
}
