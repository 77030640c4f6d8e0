//! Token counts, times and ids as traces write them, read exactly by [`decimal`], and what to write instead.

use std::str::FromStr;

use super::error::{UnknownWord, shorten, value_of};
use crate::units::decimal::{DecimalFault, decimal};

/// The unit of a time that is written as a bare number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeUnit {
    /// Seconds.
    S,
    /// Milliseconds.
    Ms,
    /// Microseconds.
    Us,
    /// Nanoseconds.
    Ns,
}

impl FromStr for TimeUnit {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        let words = [("s", Self::S), ("ms", Self::Ms), ("us", Self::Us), ("ns", Self::Ns)];
        value_of("time unit", &words, word)
    }
}

/// A token count: whole, from 0 to 2^32 − 1. The error says what to do.
pub(super) fn token_count(text: &[u8]) -> Result<u32, String> {
    decimal(text, 0)
        .and_then(|count| u32::try_from(count).map_err(|_| DecimalFault::TooLarge))
        .map_err(|fault| {
            describe(text, fault, "whole tokens", "write a whole number from 0 to 4294967295")
        })
}

/// A time in `unit`, as integer nanoseconds up to 292 years.
pub(super) fn time_ns(text: &[u8], unit: TimeUnit) -> Result<i64, String> {
    let (places, remedy) = match unit {
        TimeUnit::S => (9, "write seconds with at most 9 decimals, up to 292 years"),
        TimeUnit::Ms => (6, "write milliseconds with at most 6 decimals, up to 292 years"),
        TimeUnit::Us => (3, "write microseconds with at most 3 decimals, up to 292 years"),
        TimeUnit::Ns => (0, "write whole nanoseconds, up to 292 years"),
    };
    decimal(text, places)
        .and_then(|ns| i64::try_from(ns).map_err(|_| DecimalFault::TooLarge))
        .map_err(|fault| describe(text, fault, "a nanosecond", remedy))
}

/// A time that a program wrote from floating point (`5.8926549999999995`), to the nearest nanosecond.
pub(super) fn float_time_ns(text: &[u8], unit: TimeUnit) -> Result<i64, String> {
    match time_ns(text, unit) {
        Err(message) if message.contains("is finer than") => {}
        other => return other,
    }
    // Finer digits are there; a correctly rounded double has them only where it is below 2^53 ns.
    let seconds = std::str::from_utf8(text).ok().and_then(|text| text.trim().parse::<f64>().ok());
    let scale = match unit {
        TimeUnit::S => 1e9,
        TimeUnit::Ms => 1e6,
        TimeUnit::Us => 1e3,
        TimeUnit::Ns => 1.0,
    };
    let ns = seconds.map(|value| (value * scale).round());
    #[expect(clippy::cast_possible_truncation, reason = "checked to lie within i64")]
    ns.filter(|ns| (0.0..9e18).contains(ns))
        .map(|ns| ns as i64)
        .ok_or_else(|| format!("`{}` is not a time", shorten(text)))
}

/// A block id.
pub(super) fn block_id(text: &[u8]) -> Result<u64, String> {
    decimal(text, 0).map_err(|fault| {
        describe(text, fault, "a whole id", "write whole numbers from 0 to 2^64 - 1")
    })
}

fn describe(text: &[u8], fault: DecimalFault, grain: &str, remedy: &str) -> String {
    let seen = shorten(text);
    match fault {
        DecimalFault::Empty => format!("the value is missing; {remedy}"),
        DecimalFault::NotANumber => format!("`{seen}` is not a number; {remedy}"),
        DecimalFault::NotFinite => format!("`{seen}` is not a finite number; {remedy}"),
        DecimalFault::Negative => format!("`{seen}` is negative; {remedy}"),
        DecimalFault::TooFine => format!("`{seen}` is finer than {grain}; {remedy}"),
        DecimalFault::TooLarge => format!("`{seen}` is too large; {remedy}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn faults_name_the_value_and_the_remedy() {
        let check = |text: &str, parts: [&str; 2]| {
            let message = token_count(text.as_bytes()).unwrap_err();
            assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        };
        check("-5", ["`-5` is negative", "whole number from 0"]);
        check("4294967296", ["`4294967296` is too large", "4294967295"]);
        check("3.5", ["`3.5` is finer than whole tokens", "whole number"]);
        check("nan", ["`nan` is not a finite number", "whole number"]);
        check("", ["missing", "whole number"]);
        assert_eq!(token_count(b"4294967295"), Ok(u32::MAX));
        let late = time_ns(b"1e12", TimeUnit::S).unwrap_err();
        assert!(late.contains("too large") && late.contains("292 years"), "{late}");
        assert_eq!(time_ns(b"0.2", TimeUnit::Ms), Ok(200_000));
        assert_eq!(time_ns(b"7", TimeUnit::Us), Ok(7_000));
        assert_eq!(time_ns(b"7", TimeUnit::Ns), Ok(7));
    }

    proptest! {
        #[test]
        fn seconds_survive_printing(ns in 0..i64::MAX) {
            let text = crate::units::Nanos(ns.unsigned_abs()).to_string();
            prop_assert_eq!(time_ns(text.as_bytes(), TimeUnit::S), Ok(ns));
            let digits = ns.to_string();
            prop_assert_eq!(time_ns(format!("{digits}e-9").as_bytes(), TimeUnit::S), Ok(ns));
        }
    }
}
