//! Which percentiles are reported, exactly: a percentile is an integer, so that its rank is too.

use super::binomial;

/// A percentile as an integer number of hundred-thousandths, strictly between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percentile(u32);

/// Hundred-thousandths in one.
const WHOLE: u32 = 100_000;

impl Percentile {
    /// One in a hundred lies below.
    pub const P1: Self = Self(1_000);
    /// One in twenty lies below.
    pub const P5: Self = Self(5_000);
    /// One in ten lies below.
    pub const P10: Self = Self(10_000);
    /// One in four lies below.
    pub const P25: Self = Self(25_000);
    /// The median.
    pub const P50: Self = Self(50_000);
    /// One in four lies above.
    pub const P75: Self = Self(75_000);
    /// One in ten lies above.
    pub const P90: Self = Self(90_000);
    /// One in twenty lies above.
    pub const P95: Self = Self(95_000);
    /// One in a hundred lies above.
    pub const P99: Self = Self(99_000);
    /// One in a thousand lies above.
    pub const P99_9: Self = Self(99_900);

    /// The percentiles of `summary.csv`.
    #[rustfmt::skip]
    pub const REPORTED: [Self; 10] = [
        Self::P1, Self::P5, Self::P10, Self::P25, Self::P50, Self::P75, Self::P90, Self::P95, Self::P99,
        Self::P99_9,
    ];

    /// Reads `p50`, `p99.9` or `p99_9`; `None` when it is no percentile between 0 and 100 with at
    /// most three decimals.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        let number = word.strip_prefix('p')?.replace('_', ".");
        let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
        let plain = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty()
            || whole.len() > 2
            || fraction.len() > 3
            || !plain(whole)
            || !plain(fraction)
        {
            return None;
        }
        let parts: u32 = format!("{whole}{fraction:0<3}").parse().ok()?;
        (parts > 0).then_some(Self(parts))
    }

    /// As a share of one.
    #[must_use]
    pub fn share(self) -> f64 {
        f64::from(self.0) / f64::from(WHOLE)
    }

    /// The nearest rank, ⌈p·n⌉, from 1; of no values it is 0.
    #[must_use]
    pub fn rank(self, n: u64) -> u64 {
        let rank = (u128::from(n) * u128::from(self.0)).div_ceil(u128::from(WHOLE));
        u64::try_from(rank).unwrap_or(u64::MAX)
    }

    /// The least number of values that can bound this percentile (see [`binomial::least_n`]).
    #[must_use]
    pub fn least_n(self) -> u64 {
        binomial::least_n(self.share())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_as_they_are_written() {
        assert_eq!(Percentile::parse("p1"), Some(Percentile::P1));
        assert_eq!(Percentile::parse("p99.9"), Percentile::parse("p99_9"));
        assert_eq!(Percentile::parse("p99.99"), Some(Percentile(99_990)));
        for word in ["p0", "p100", "99", "p", "p-1", "p9x", "p99.9999", "p.5", "p1.2.3", "p0.000"] {
            assert_eq!(Percentile::parse(word), None, "{word}");
        }
    }

    #[test]
    fn ranks_have_no_rounding_error() {
        // In floating point 0.07 × 100 is a little over 7, which would make it rank 8.
        assert_eq!(Percentile::parse("p7").expect("a percentile").rank(100), 7);
        assert_eq!(Percentile::P99.rank(100), 99);
        assert_eq!(Percentile::P99.rank(101), 100);
        assert_eq!(Percentile::P50.rank(1), 1);
        assert_eq!(Percentile::P50.rank(0), 0);
        assert_eq!(Percentile::P99.rank(u64::MAX), 18_262_276_632_972_456_099);
    }
}
