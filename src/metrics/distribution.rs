//! One metric's values: exact as long as they are few, a histogram beyond.
//!
//! Values are plain integers (nanoseconds, tokens, millionths of a token per second). A value that
//! we cut off before it was known is *censored*: it is counted, takes its rank outside the measured
//! values, and a percentile that falls on it is empty. `n`, mean, standard deviation, minimum and
//! maximum describe the measured values. Deliberately absent: interpolation between ranks, and any
//! sample that was not measured.

use super::binomial;
use super::percentile::Percentile;
use super::pool::{Pool, Squares};
use super::values::{Basis, Values};

/// Values kept exactly; beyond, they go into a histogram. 8 MB.
pub const EXACT_LIMIT: usize = 1_000_000;

/// Where values that were cut off by us rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CensoredRank {
    /// Above every measured value: a latency that would have grown.
    #[default]
    Above,
    /// Below every measured value: a rate that would have shrunk.
    Below,
}

/// The values of one metric in one scope.
#[derive(Clone, Debug)]
pub struct Distribution {
    values: Values,
    limit: usize,
    n: u64,
    sum: u128,
    /// For the standard deviation, which so depends on no order.
    squares: Squares,
    min: u64,
    max: u64,
    censored: u64,
    censored_rank: CensoredRank,
}

impl Default for Distribution {
    fn default() -> Self {
        Self::new(CensoredRank::Above)
    }
}

impl Distribution {
    /// An empty one, exact up to [`EXACT_LIMIT`] values.
    #[must_use]
    pub fn new(censored_rank: CensoredRank) -> Self {
        Self {
            values: Values::default(),
            limit: EXACT_LIMIT,
            n: 0,
            sum: 0,
            squares: Squares::default(),
            min: u64::MAX,
            max: 0,
            censored: 0,
            censored_rank,
        }
    }

    /// An empty one whose values go into buckets from the first on, as those of a [`Pool`] do.
    #[must_use]
    pub fn pooled() -> Self {
        Self { values: Values::histogram(), limit: 0, ..Self::default() }
    }

    /// Lowers (or raises) the number of values kept exactly, from now on.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        self.values.make_room(0, limit);
    }

    /// Adds a measured value.
    pub fn record(&mut self, value: u64) {
        self.record_n(value, 1);
    }

    /// Adds a measured value `count` times.
    pub fn record_n(&mut self, value: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.values.make_room(count, self.limit);
        self.values.put(value, count);
        self.n += count;
        self.sum += u128::from(value) * u128::from(count);
        self.squares.add(value, count);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Counts a value that was cut off before it was known.
    pub fn censor(&mut self) {
        self.censored += 1;
    }

    /// Takes in the values of another.
    pub fn merge(&mut self, other: Self) {
        self.censored += other.censored;
        if other.n == 0 {
            return;
        }
        self.values.make_room(other.n, self.limit);
        self.values.absorb(other.values);
        self.squares.join(other.squares);
        self.n += other.n;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Takes in a pool's values.
    pub fn absorb(&mut self, pool: &Pool) {
        let Some((least, most)) = pool.bounds else { return };
        self.values.make_room(pool.n, self.limit);
        for (floor, count) in &pool.buckets {
            self.values.put(*floor, *count);
        }
        self.n += pool.n;
        self.sum += pool.sum;
        self.squares.join(pool.squares);
        self.min = self.min.min(least);
        self.max = self.max.max(most);
    }

    /// Number of measured values.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Number of values that were cut off.
    #[must_use]
    pub fn censored(&self) -> u64 {
        self.censored
    }

    /// Measured and cut-off values: what ranks run over.
    #[must_use]
    pub fn ranked(&self) -> u64 {
        self.n + self.censored
    }

    /// Measured values that are zero.
    #[must_use]
    pub fn zeros(&self) -> u64 {
        self.values.zeros()
    }

    /// How percentiles are found.
    #[must_use]
    pub fn basis(&self) -> Basis {
        self.values.basis()
    }

    /// Arithmetic mean of the measured values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum as f64 / self.n as f64)
    }

    /// Sample standard deviation (n − 1) of the measured values.
    #[must_use]
    pub fn std(&self) -> Option<f64> {
        self.squares.variance(self.n, self.sum).map(f64::sqrt)
    }

    /// Smallest measured value.
    #[must_use]
    pub fn min(&self) -> Option<u64> {
        (self.n > 0).then_some(self.min)
    }

    /// Largest measured value.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        (self.n > 0).then_some(self.max)
    }

    /// Nearest-rank percentile over measured and cut-off values; `None` on a cut-off one.
    ///
    /// `&mut`: the values are put in order the first time.
    pub fn percentile(&mut self, percentile: Percentile) -> Option<u64> {
        let rank = percentile.rank(self.ranked());
        self.at_rank(rank)
    }

    /// [`percentile`](Self::percentile), but `None` too where the values are too few to bound it.
    pub fn bounded_percentile(&mut self, percentile: Percentile) -> Option<u64> {
        (self.ranked() >= percentile.least_n()).then(|| self.percentile(percentile)).flatten()
    }

    /// The distribution-free 95% interval of the median, from order statistics. An end that falls on
    /// a cut-off value is open (`None`); both are when the values are too few.
    pub fn median_interval(&mut self) -> (Option<u64>, Option<u64>) {
        match binomial::quantile_ranks(self.ranked(), 0.5) {
            Some((low, high)) => (self.at_rank(low), self.at_rank(high)),
            None => (None, None),
        }
    }

    /// The value of a 1-based rank among measured and cut-off values.
    fn at_rank(&mut self, rank: u64) -> Option<u64> {
        let rank = match self.censored_rank {
            CensoredRank::Above => rank,
            CensoredRank::Below => rank.checked_sub(self.censored)?,
        };
        if rank == 0 || rank > self.n {
            return None;
        }
        Some(self.values.at(rank)?.clamp(self.min, self.max))
    }
}

#[cfg(test)]
mod tests {
    use super::super::values::HISTOGRAM_ERROR;
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64], censored: u64, rank: CensoredRank, limit: usize) -> Distribution {
        let mut distribution = Distribution::new(rank);
        distribution.set_limit(limit);
        for value in values {
            distribution.record(*value);
        }
        for _ in 0..censored {
            distribution.censor();
        }
        distribution
    }

    /// The slow and obvious way: a censored value is an infinite one (or one below all others).
    fn oracle(
        values: &[u64],
        censored: u64,
        rank: CensoredRank,
        percentile: Percentile,
    ) -> Option<u64> {
        let mut all: Vec<Option<u64>> = values.iter().copied().map(Some).collect();
        all.sort_unstable();
        for _ in 0..censored {
            match rank {
                CensoredRank::Above => all.push(None),
                CensoredRank::Below => all.insert(0, None),
            }
        }
        let place = (0..all.len())
            .find(|i| (i + 1) as f64 >= percentile.share() * all.len() as f64 - 1e-9)?;
        all[place]
    }

    #[test]
    fn nothing_measured_says_nothing() {
        let mut none = of(&[], 3, CensoredRank::Above, 10);
        assert_eq!((none.mean(), none.std(), none.min(), none.max()), (None, None, None, None));
        assert_eq!(none.percentile(Percentile::P50), None);
        assert_eq!(none.median_interval(), (None, None));
        assert_eq!(of(&[5], 0, CensoredRank::Above, 10).std(), None);
    }

    #[test]
    fn percentiles_need_values_enough() {
        let values: Vec<u64> = (1..=367).collect();
        let mut few = of(&values, 0, CensoredRank::Above, EXACT_LIMIT);
        assert_eq!(few.percentile(Percentile::P99), Some(364));
        assert_eq!(few.bounded_percentile(Percentile::P99), None);
        assert_eq!(few.bounded_percentile(Percentile::P90), Some(331));
        few.record(368);
        assert_eq!(few.bounded_percentile(Percentile::P99), Some(365));
        let mut cut = of(&values, 1, CensoredRank::Above, EXACT_LIMIT);
        assert_eq!(cut.bounded_percentile(Percentile::P99), Some(365));
    }

    #[test]
    fn the_median_interval_is_open_where_it_meets_a_cut() {
        let mut cut = of(&[1, 2, 3, 4, 5, 6], 4, CensoredRank::Above, 10);
        assert_eq!(cut.median_interval(), (Some(2), None));
        let mut below = of(&[1, 2, 3, 4, 5, 6], 4, CensoredRank::Below, 10);
        assert_eq!(below.median_interval(), (None, Some(5)));
    }

    #[test]
    fn a_histogram_takes_any_value() {
        let mut wide = of(&[0, 1, 1 << 40, u64::MAX], 0, CensoredRank::Above, 0);
        assert_eq!(wide.basis(), Basis::Histogram);
        assert_eq!((wide.min(), wide.max()), (Some(0), Some(u64::MAX)));
        assert_eq!(wide.percentile(Percentile::parse("p25").expect("one")), Some(0));
        assert_eq!(wide.percentile(Percentile::P50), Some(1));
        assert!(wide.percentile(Percentile::P99).is_some());
    }

    proptest! {
        #[test]
        fn percentiles_are_those_of_a_sorted_list(
            values in prop::collection::vec(0..1_000_u64, 0..300),
            censored in 0..40_u64,
            below in any::<bool>(),
        ) {
            let rank = if below { CensoredRank::Below } else { CensoredRank::Above };
            let mut exact = of(&values, censored, rank, 1_000);
            for percentile in Percentile::REPORTED {
                let wanted = oracle(&values, censored, rank, percentile);
                prop_assert_eq!(exact.percentile(percentile), wanted, "{:?}", percentile);
            }
        }

        #[test]
        fn a_histogram_is_within_its_error(
            values in prop::collection::vec(0..1_u64 << 50, 1..300),
            shift in 0..40_u32,
            censored in 0..20_u64,
        ) {
            let values: Vec<u64> = values.iter().map(|value| value >> shift).collect();
            let mut exact = of(&values, censored, CensoredRank::Above, 1_000);
            let mut rough = of(&values, censored, CensoredRank::Above, 10);
            for percentile in Percentile::REPORTED {
                match (exact.percentile(percentile), rough.percentile(percentile)) {
                    (Some(a), Some(b)) => {
                        prop_assert!(a.abs_diff(b) as f64 <= a as f64 * HISTOGRAM_ERROR, "{} {}", a, b);
                    }
                    (a, b) => prop_assert_eq!(a, b),
                }
            }
            prop_assert_eq!(exact.mean(), rough.mean());
        }

        #[test]
        fn merging_equals_one_pass(
            parts in prop::collection::vec(prop::collection::vec(0..1_000_000_u64, 0..60), 1..6),
            limits in prop::collection::vec(prop::sample::select(vec![0_usize, 20, 1_000]), 6),
        ) {
            let all: Vec<u64> = parts.concat();
            let mut once = of(&all, parts.len() as u64, CensoredRank::Above, 1_000);
            let mut merged = Distribution::default();
            for (values, limit) in parts.iter().zip(limits) {
                merged.merge(of(values, 1, CensoredRank::Above, limit));
            }
            prop_assert_eq!((merged.n(), merged.censored()), (once.n(), once.censored()));
            prop_assert_eq!((merged.min(), merged.max()), (once.min(), once.max()));
            prop_assert_eq!(merged.mean(), once.mean());
            let (a, b) = (merged.std().unwrap_or(0.0), once.std().unwrap_or(0.0));
            prop_assert!((a - b).abs() <= 1e-9 * b.max(1.0), "{} {}", a, b);
            for percentile in Percentile::REPORTED {
                match (once.percentile(percentile), merged.percentile(percentile)) {
                    (Some(a), Some(b)) => {
                        prop_assert!(a.abs_diff(b) as f64 <= a as f64 * HISTOGRAM_ERROR, "{} {}", a, b);
                    }
                    (a, b) => prop_assert_eq!(a, b),
                }
            }
        }
    }
}
