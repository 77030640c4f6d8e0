//! Many values in little space: counts by bucket of three significant digits, and what is exact
//! about them: number, sum, sum of squares, least and greatest.
//!
//! Two pools of the same values are equal, however they were cut up and joined again: this is what
//! `intervals.csv` holds, and what the run's own pooled figures are made of. The buckets are those of
//! `HdrHistogram`. Deliberately absent: ranks among values that were cut off (see
//! [`Distribution`](super::Distribution)).

use std::collections::BTreeMap;

/// Bits kept of a value: three significant digits.
const BITS: u32 = 11;
/// The largest value that buckets tell apart (146 years in nanoseconds); larger ones count as it.
pub(super) const LARGEST: u64 = 1 << 62;

/// A sparse histogram.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    /// Number of values.
    pub n: u64,
    /// Their sum.
    pub sum: u128,
    /// The sum of their squares; `None` once it exceeded 128 bits.
    pub squares: Squares,
    /// Least and greatest value; `None` when there is none.
    pub bounds: Option<(u64, u64)>,
    /// Values by the floor of their bucket.
    pub buckets: BTreeMap<u64, u64>,
}

/// An exact sum of squares, as long as 128 bits hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Squares(pub Option<u128>);

impl Default for Squares {
    fn default() -> Self {
        Self(Some(0))
    }
}

impl Squares {
    pub(super) fn add(&mut self, value: u64, count: u64) {
        let square = u128::from(value) * u128::from(value);
        self.join(Self(square.checked_mul(u128::from(count))));
    }

    pub(super) fn join(&mut self, other: Self) {
        self.0 = self.0.zip(other.0).and_then(|(a, b)| a.checked_add(b));
    }

    /// The sample variance of `n` values with this `sum`. Exact up to the last step, so that it
    /// depends on no order.
    pub(super) fn variance(self, n: u64, sum: u128) -> Option<f64> {
        let squares = self.0.filter(|_| n > 1)?;
        let count = u128::from(n);
        let floor = sum / count;
        // Around the whole part of the mean. The steps may wrap; what they come to fits, being no
        // more than the sum of squares.
        let around = squares
            .wrapping_sub(floor.wrapping_mul(sum).wrapping_mul(2))
            .wrapping_add(count.wrapping_mul(floor).wrapping_mul(floor));
        let off = (sum % count) as f64 / n as f64;
        Some((around as f64 - n as f64 * off * off).max(0.0) / (n - 1) as f64)
    }
}

/// The least value of the bucket that `value` falls into.
fn floor(value: u64) -> u64 {
    let value = value.min(LARGEST);
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(BITS);
    value >> shift << shift
}

/// The middle of the bucket with this floor.
fn middle(floor: u64) -> u64 {
    let shift = (u64::BITS - floor.leading_zeros()).saturating_sub(BITS);
    floor + (1 << shift >> 1)
}

impl Pool {
    /// Adds a value `count` times.
    pub fn record(&mut self, value: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.n += count;
        self.sum += u128::from(value) * u128::from(count);
        self.squares.add(value, count);
        let (least, most) = self.bounds.unwrap_or((value, value));
        self.bounds = Some((least.min(value), most.max(value)));
        *self.buckets.entry(floor(value)).or_default() += count;
    }

    /// A count without values.
    #[must_use]
    pub fn count(n: u64) -> Self {
        Self { n, ..Self::default() }
    }

    /// Nearest rank, within half a bucket: 0.05%.
    #[must_use]
    pub fn percentile(&self, percent: u64) -> Option<u64> {
        let (least, most) = self.bounds?;
        let rank = u128::from(self.n) * u128::from(percent);
        let mut below = 0;
        let floor = self.buckets.iter().find_map(|(floor, count)| {
            below += u128::from(*count);
            (below * 100 >= rank).then_some(*floor)
        })?;
        Some(middle(floor).clamp(least, most))
    }

    /// The greatest value.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        self.bounds.map(|(_, most)| most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;
    use proptest::prelude::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let mut pool = Pool::default();
        assert_eq!((pool.percentile(50), pool.max()), (None, None));
        pool.record(7_777_777, 1);
        assert_eq!((pool.percentile(1), pool.percentile(99)), (Some(7_777_777), Some(7_777_777)));
        let mut pool = Pool::default();
        (1..=200).for_each(|value| pool.record(value, 1));
        assert_eq!([50, 99, 100].map(|p| pool.percentile(p)), [Some(100), Some(198), Some(200)]);
    }

    #[test]
    fn a_variance_of_nothing_or_of_too_much_is_not_claimed() {
        let mut squares = Squares::default();
        assert_eq!(squares.variance(1, 5), None);
        for _ in 0..2 {
            squares.add(u64::MAX, 1);
        }
        assert_eq!(squares.variance(2, 2 * u128::from(u64::MAX)), None);
    }

    proptest! {
        #[test]
        fn buckets_are_those_of_hdrhistogram(values in prop::collection::vec(0..1_u64 << 61, 1..50), shift in 0..60_u32) {
            let mut histogram = Histogram::<u64>::new(3).expect("a precision");
            histogram.auto(true);
            histogram.record(1 << 61).expect("it resizes");
            for value in values {
                let value = value >> shift;
                prop_assert_eq!(floor(value), histogram.lowest_equivalent(value));
                prop_assert_eq!(middle(floor(value)), histogram.median_equivalent(value));
            }
        }

        #[test]
        fn the_variance_is_the_textbook_s(values in prop::collection::vec(0..1_u64 << 40, 2..60)) {
            let mut squares = Squares::default();
            for value in &values {
                squares.add(*value, 1);
            }
            let (n, sum) = (values.len() as f64, values.iter().map(|v| u128::from(*v)).sum::<u128>());
            let mean = sum as f64 / n;
            let wanted = values.iter().map(|v| (*v as f64 - mean).powi(2)).sum::<f64>() / (n - 1.0);
            let got = squares.variance(values.len() as u64, sum).expect("two or more");
            prop_assert!((got - wanted).abs() <= 1e-9 * wanted.max(1.0), "{} {}", got, wanted);
        }
    }
}
