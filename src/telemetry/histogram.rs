//! Histograms of counters: what came in between two readings, and its percentiles.
//!
//! A percentile is the value at nearest rank, placed in its bucket by linear interpolation, as
//! Prometheus' `histogram_quantile` does it; the bucket's bounds go with it, since the true value may be
//! anywhere between them. Deliberately absent: a percentile beyond the last bound.

use std::collections::BTreeMap;

/// The order of bounds in a map: that of the numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound(pub f64);

impl Eq for Bound {}

impl PartialOrd for Bound {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bound {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// A histogram, as it stands or as it grew.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Upper bound (inclusive) -> values up to it, so that the last is all of them.
    pub up_to: BTreeMap<Bound, f64>,
    /// Of the values.
    pub sum: f64,
    /// Of the values.
    pub count: f64,
}

/// A percentile and the bucket it fell into.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percentile {
    /// By interpolation; `None` beyond the last finite bound.
    pub value: Option<f64>,
    /// Lower bound of the bucket.
    pub above: f64,
    /// Upper bound of the bucket; infinite for the last.
    pub up_to: f64,
}

impl Histogram {
    /// What came in since `earlier`; `None` where anything fell, which is a restart.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Option<Self> {
        let mut grown = Self {
            up_to: BTreeMap::new(),
            sum: self.sum - earlier.sum,
            count: self.count - earlier.count,
        };
        // A bucket that is gone or new: the server is another one.
        if !earlier.up_to.is_empty() && !earlier.up_to.keys().eq(self.up_to.keys()) {
            return None;
        }
        for (bound, now) in &self.up_to {
            let growth = now - earlier.up_to.get(bound).copied().unwrap_or(0.0);
            if growth < 0.0 {
                return None;
            }
            grown.up_to.insert(*bound, growth);
        }
        (grown.count >= 0.0).then_some(grown)
    }

    /// Adds another's values. Where bounds differ, a bound that both have stays exact; at one that only
    /// one has, the other counts its values up to the next lower bound.
    pub fn add(&mut self, other: &Self) {
        self.sum += other.sum;
        self.count += other.count;
        if self.up_to.keys().eq(other.up_to.keys()) {
            for (bound, more) in &other.up_to {
                *self.up_to.entry(*bound).or_default() += more;
            }
            return;
        }
        let below = |up_to: &BTreeMap<Bound, f64>, bound: Bound| {
            up_to.range(..=bound).next_back().map_or(0.0, |(_, count)| *count)
        };
        let bounds: Vec<Bound> = self.up_to.keys().chain(other.up_to.keys()).copied().collect();
        let sum = |bound: Bound| below(&self.up_to, bound) + below(&other.up_to, bound);
        self.up_to = bounds.into_iter().map(|bound| (bound, sum(bound))).collect();
    }

    /// Mean of the values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }

    /// The percentile at `share` (0 to 1); `None` without values.
    #[must_use]
    pub fn percentile(&self, share: f64) -> Option<Percentile> {
        let all = self.up_to.last_key_value().map_or(0.0, |(_, count)| *count);
        if all <= 0.0 {
            return None;
        }
        let rank = (share * all).ceil().max(1.0);
        let mut lower = (0.0, 0.0);
        for (bound, count) in &self.up_to {
            if *count >= rank {
                let (above, before) = lower;
                let place = (rank - before) / (count - before);
                let value = bound.0.is_finite().then_some(above + (bound.0 - above) * place);
                return Some(Percentile { value, above, up_to: bound.0 });
            }
            lower = (bound.0, *count);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(buckets: &[(f64, f64)], sum: f64) -> Histogram {
        let count = buckets.last().map_or(0.0, |(_, count)| *count);
        let up_to = buckets.iter().map(|(bound, count)| (Bound(*bound), *count)).collect();
        Histogram { up_to, sum, count }
    }

    const INF: f64 = f64::INFINITY;

    #[test]
    fn growth_between_readings_is_what_percentiles_are_of() {
        let before = histogram(&[(0.1, 90.0), (0.2, 100.0), (INF, 100.0)], 5.0);
        let after = histogram(&[(0.1, 90.0), (0.2, 104.0), (INF, 105.0)], 6.5);
        let grown = after.since(&before).expect("it grew");
        assert_eq!((grown.count, grown.mean()), (5.0, Some(0.3)));
        let p50 = grown.percentile(0.5).expect("values");
        assert_eq!((p50.above, p50.up_to), (0.1, 0.2));
        // The third of four values in the bucket.
        assert!((p50.value.expect("bounded") - 0.175).abs() < 1e-12);
        let p99 = grown.percentile(0.99).expect("values");
        assert_eq!((p99.value, p99.above, p99.up_to), (None, 0.2, INF));
    }

    #[test]
    fn nothing_new_has_no_percentile_and_no_mean() {
        let same = histogram(&[(0.1, 9.0), (INF, 9.0)], 0.5);
        let grown = same.since(&same).expect("not less");
        assert_eq!((grown.percentile(0.5), grown.mean()), (None, None));
    }

    #[test]
    fn a_histogram_that_fell_is_another_servers() {
        let before = histogram(&[(0.1, 9.0), (INF, 12.0)], 0.5);
        let fell = histogram(&[(0.1, 2.0), (INF, 14.0)], 0.5);
        let rebuilt = histogram(&[(0.2, 20.0), (INF, 20.0)], 0.5);
        assert_eq!((fell.since(&before), rebuilt.since(&before)), (None, None));
    }

    #[test]
    fn engines_with_the_same_bounds_add_up_exactly() {
        let mut all = histogram(&[(0.1, 1.0), (INF, 2.0)], 0.5);
        all.add(&histogram(&[(0.1, 3.0), (INF, 3.0)], 0.25));
        assert_eq!(all, histogram(&[(0.1, 4.0), (INF, 5.0)], 0.75));
        let mut none = Histogram::default();
        none.add(&all);
        assert_eq!(none, all);
    }

    #[test]
    fn engines_with_other_bounds_keep_those_that_both_have() {
        let mut all = histogram(&[(1.0, 1.0), (2.0, 4.0), (INF, 4.0)], 5.0);
        all.add(&histogram(&[(2.0, 6.0), (INF, 7.0)], 20.0));
        assert_eq!(all, histogram(&[(1.0, 1.0), (2.0, 10.0), (INF, 11.0)], 25.0));
    }
}
