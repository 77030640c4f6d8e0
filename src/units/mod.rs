//! Time and speed as exact integers, and how people write them.
//!
//! A leaf that every room may use. Everything inside the program counts integer nanoseconds, so that
//! a plan is the same bytes on every machine; floating point appears only where a number is printed
//! for a person. No clock is read here (see [`crate::clock`]).

pub mod decimal;

use std::fmt;
use std::ops::{Add, AddAssign};

use self::decimal::{DecimalFault, decimal};

/// Nanoseconds in a second.
pub const NS_PER_S: u64 = 1_000_000_000;
/// Nanoseconds in a millisecond.
pub const NS_PER_MS: u64 = 1_000_000;

/// A span of time, or an instant as an offset from a named origin, in integer nanoseconds.
///
/// The origin belongs to the place: trace time starts at the trace's zero, everything a
/// [`crate::record::StreamRecord`] holds is an offset from the run's `t0`, and a
/// [`crate::clock::Clock`] counts from its own epoch. 2^64 ns are 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The origin.
    pub const ZERO: Self = Self(0);
    /// Later than anything that happens.
    pub const MAX: Self = Self(u64::MAX);

    /// Whole seconds.
    #[must_use]
    pub const fn from_secs(s: u64) -> Self {
        Self(s * NS_PER_S)
    }

    /// Whole milliseconds.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * NS_PER_MS)
    }

    /// `self − earlier`, or zero when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// Seconds, for printing and for rates.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NS_PER_S as f64
    }

    /// Milliseconds, for printing.
    #[must_use]
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / NS_PER_MS as f64
    }

    /// Parses decimal seconds exactly (`12`, `0.001163`, up to 9 fractional digits).
    ///
    /// More digits are accepted only where they are zeros: a finer time would be lost without a word.
    pub fn parse_seconds(text: &str) -> Result<Self, UnitError> {
        Self::parse_decimal(text, 9)
    }

    /// Parses a decimal with so many fractional digits, the last of which is a nanosecond.
    pub(crate) fn parse_decimal(text: &str, digits: u32) -> Result<Self, UnitError> {
        plain_decimal(text, digits).map(Self)
    }

    /// Parses a duration as people write it: `250ms`, `10s`, `5m`, `1h30m`, `1.5s`, `0s`.
    pub fn parse_duration(text: &str) -> Result<Self, UnitError> {
        if text.is_empty() {
            return Err(UnitError::Empty);
        }
        let mut total: u128 = 0;
        let mut rest = text;
        while !rest.is_empty() {
            let digits = rest
                .find(|c: char| !c.is_ascii_digit() && c != '.')
                .ok_or_else(|| UnitError::NoUnit(text.to_owned()))?;
            let (number, tail) = rest.split_at(digits);
            let unit_len =
                tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
            let (unit, tail) = tail.split_at(unit_len);
            let (digits_below, factor) = match unit {
                "ns" => (0, 1),
                "us" | "µs" => (3, 1),
                "ms" => (6, 1),
                "s" => (9, 1),
                "m" | "min" => (9, 60),
                "h" => (9, 3600),
                "d" => (9, 86_400),
                _ => return Err(UnitError::BadUnit(unit.to_owned())),
            };
            let count = u128::from(plain_decimal(number, digits_below)?);
            total = total.saturating_add(count * factor);
            rest = tail;
        }
        u64::try_from(total).map(Self).map_err(|_| UnitError::TooLarge)
    }
}

/// Reads digits with an optional fraction as a count of `10^-places`.
fn plain_decimal(text: &str, places: u32) -> Result<u64, UnitError> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let count =
        if is_plain { decimal(text.as_bytes(), places) } else { Err(DecimalFault::NotANumber) };
    count.map_err(|fault| match fault {
        DecimalFault::TooFine => UnitError::TooFine(text.to_owned()),
        DecimalFault::TooLarge => UnitError::TooLarge,
        _ => UnitError::NotANumber(text.to_owned()),
    })
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Seconds with nine decimals: exact, and sorted as text within one width.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0 / NS_PER_S, self.0 % NS_PER_S)
    }
}

/// As `--option` takes it: seconds, no more digits than are needed.
impl serde::Serialize for Nanos {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let text = self.to_string();
        out.collect_str(&format_args!("{}s", text.trim_end_matches('0').trim_end_matches('.')))
    }
}

/// Has types serialised as the words that they are written and parsed as.
macro_rules! serialize_as_text {
    ($($type:ty),+) => {$(
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                out.collect_str(self)
            }
        }
    )+};
}
pub(crate) use serialize_as_text;

/// A speed factor as an exact fraction, so that scaled times are the same on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed {
    numerator: u64,
    denominator: u64,
}

impl Speed {
    /// As recorded.
    pub const ONE: Self = Self { numerator: NS_PER_S, denominator: NS_PER_S };

    /// So many times as fast.
    #[must_use]
    pub const fn times(self, factor: u64) -> Self {
        Self { numerator: self.numerator.saturating_mul(factor), ..self }
    }

    /// Parses a decimal factor above zero (`20`, `0.5`, up to 9 fractional digits).
    pub fn parse(text: &str) -> Result<Self, UnitError> {
        let numerator = plain_decimal(text, 9)?;
        if numerator == 0 {
            return Err(UnitError::Zero);
        }
        Ok(Self { numerator, denominator: NS_PER_S })
    }

    /// `span ÷ speed`, rounded down.
    #[must_use]
    pub fn shorten(self, span: Nanos) -> Nanos {
        let scaled = u128::from(span.0) * u128::from(self.denominator) / u128::from(self.numerator);
        Nanos(u64::try_from(scaled).unwrap_or(u64::MAX))
    }

    /// The factor, for printing.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

impl serde::Serialize for Speed {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_f64(self.as_f64())
    }
}

/// What is wrong with a number that somebody wrote.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// Nothing was written.
    #[error("empty; write a duration such as 250ms, 10s, 5m or 1h30m")]
    Empty,
    /// Not a plain decimal.
    #[error("`{0}` is not a plain non-negative decimal number")]
    NotANumber(String),
    /// More digits than the unit can hold.
    #[error("`{0}` is finer than a nanosecond")]
    TooFine(String),
    /// A bare number where a duration is wanted.
    #[error("`{0}` has no unit; write for example 250ms, 10s, 5m or 1h30m")]
    NoUnit(String),
    /// An unknown unit.
    #[error("unknown unit `{0}`; units are ns, us, ms, s, m, h, d")]
    BadUnit(String),
    /// Beyond 584 years.
    #[error("the number is too large (the limit is 584 years)")]
    TooLarge,
    /// Zero where a factor is wanted.
    #[error("must be above zero")]
    Zero,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_write_them() {
        let check =
            |text: &str, ns: u64| assert_eq!(Nanos::parse_duration(text), Ok(Nanos(ns)), "{text}");
        check("250ms", 250 * NS_PER_MS);
        check("10s", 10 * NS_PER_S);
        check("5m", 300 * NS_PER_S);
        check("1h30m", 5400 * NS_PER_S);
        check("1.5s", 1_500_000_000);
        check("0s", 0);
        check("7us", 7_000);
        check("1m0.5s", 60_500_000_000);
    }

    #[test]
    fn bad_durations_say_why() {
        let check = |text: &str, part: &str| {
            let message = Nanos::parse_duration(text).expect_err(text).to_string();
            assert!(message.contains(part), "{text}: {message}");
        };
        check("", "empty");
        check("10", "no unit");
        check("10x", "unknown unit");
        check("-5s", "unknown unit");
        check("1.2.3s", "not a plain");
        check("0.5ns", "finer");
        check("999999999999999999999h", "too large");
        check("s", "not a plain");
    }

    #[test]
    fn seconds_keep_every_digit() {
        assert_eq!(Nanos::parse_seconds("0.001163"), Ok(Nanos(1_163_000)));
        assert_eq!(Nanos::parse_seconds("19440110.0"), Ok(Nanos(19_440_110 * NS_PER_S)));
        assert_eq!(
            Nanos::parse_seconds("1.1234567891"),
            Err(UnitError::TooFine("1.1234567891".into()))
        );
        assert_eq!(Nanos::parse_seconds("1.1234567890"), Ok(Nanos(1_123_456_789)));
        assert!(Nanos::parse_seconds("nan").is_err());
        assert!(Nanos::parse_seconds("-1").is_err());
        assert_eq!(Nanos(1_000_000_001).to_string(), "1.000000001");
    }

    #[test]
    fn speed_is_exact() {
        let speed = Speed::parse("20").expect("a factor");
        assert_eq!(speed.shorten(Nanos::from_secs(600)), Nanos::from_secs(30));
        let third = Speed::parse("0.3").expect("a factor");
        assert_eq!(third.shorten(Nanos(3)), Nanos(10));
        assert_eq!(Speed::parse("0"), Err(UnitError::Zero));
    }
}
