//! Numbers as traces write them, read exactly: no value passes through floating point.
//!
//! Token counts are whole, but pandas writes them `374.0`; times are decimals of some unit, but Python
//! writes small ones `1e-05`. Both are one grammar: digits, an optional fraction, an optional exponent.

use super::TimeUnit;
use super::error::shorten;

/// What is wrong with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberFault {
    Empty,
    NotANumber,
    NotFinite,
    Negative,
    TooFine,
    TooLarge,
}

/// A token count: whole, from 0 to 2^32 − 1. The error says what to do.
pub(super) fn token_count(text: &[u8]) -> Result<u32, String> {
    decimal(text, 0)
        .and_then(|count| u32::try_from(count).map_err(|_| NumberFault::TooLarge))
        .map_err(|fault| {
            say(text, fault, "whole tokens", "write a whole number from 0 to 4294967295")
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
        .and_then(|ns| i64::try_from(ns).map_err(|_| NumberFault::TooLarge))
        .map_err(|fault| say(text, fault, "a nanosecond", remedy))
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
    decimal(text, 0)
        .map_err(|fault| say(text, fault, "a whole id", "write whole numbers from 0 to 2^64 - 1"))
}

fn say(text: &[u8], fault: NumberFault, grain: &str, remedy: &str) -> String {
    let seen = shorten(text);
    match fault {
        NumberFault::Empty => format!("the value is missing; {remedy}"),
        NumberFault::NotANumber => format!("`{seen}` is not a number; {remedy}"),
        NumberFault::NotFinite => format!("`{seen}` is not a finite number; {remedy}"),
        NumberFault::Negative => format!("`{seen}` is negative; {remedy}"),
        NumberFault::TooFine => format!("`{seen}` is finer than {grain}; {remedy}"),
        NumberFault::TooLarge => format!("`{seen}` is too large; {remedy}"),
    }
}

/// A non-negative decimal as a count of `10^-places`.
pub(super) fn decimal(text: &[u8], places: u32) -> Result<u64, NumberFault> {
    // Nearly every number in a trace is a few plain digits.
    let mut whole = 0;
    let is_plain = (1..=9).contains(&text.len())
        && text.iter().all(|byte| {
            whole = whole * 10 + u64::from(byte.wrapping_sub(b'0'));
            byte.is_ascii_digit()
        });
    if is_plain {
        return 10u64
            .checked_pow(places)
            .and_then(|unit| whole.checked_mul(unit))
            .ok_or(NumberFault::TooLarge);
    }
    general_decimal(text.trim_ascii(), places)
}

fn general_decimal(text: &[u8], places: u32) -> Result<u64, NumberFault> {
    let (negative, body) = match text {
        [] => return Err(NumberFault::Empty),
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if ["nan", "inf", "infinity"].iter().any(|word| body.eq_ignore_ascii_case(word.as_bytes())) {
        return Err(NumberFault::NotFinite);
    }
    let (mantissa, exponent) = match body.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(at) => (&body[..at], parse_exponent(&body[at + 1..])?),
        None => (body, 0),
    };
    let (whole, fraction) = match mantissa.iter().position(|&byte| byte == b'.') {
        Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
        None => (mantissa, &b""[..]),
    };
    if whole.is_empty() && fraction.is_empty()
        || !whole.iter().chain(fraction).all(u8::is_ascii_digit)
    {
        return Err(NumberFault::NotANumber);
    }
    let count = scale(whole, fraction, exponent + i64::from(places))?;
    if negative && count > 0 { Err(NumberFault::Negative) } else { Ok(count) }
}

/// The digits of a plain or signed exponent; absurd ones saturate, since only their sign matters then.
fn parse_exponent(text: &[u8]) -> Result<i64, NumberFault> {
    let (sign, digits) = match text {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        _ => (1, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(NumberFault::NotANumber);
    }
    let size = digits
        .iter()
        .fold(0i64, |sum, digit| (sum * 10 + i64::from(digit - b'0')).min(1_000_000_000));
    Ok(sign * size)
}

/// `whole.fraction × 10^shift`, which must be a whole number below 2^64.
fn scale(whole: &[u8], fraction: &[u8], shift: i64) -> Result<u64, NumberFault> {
    // The point moves right by `shift`: digits left of it count, digits right of it must be zeros.
    let point = i64::try_from(whole.len()).unwrap_or(i64::MAX).saturating_add(shift);
    let mut value: u64 = 0;
    let mut position = 0;
    for digit in whole.iter().chain(fraction).map(|digit| u64::from(digit - b'0')) {
        if position < point {
            value = value
                .checked_mul(10)
                .and_then(|tens| tens.checked_add(digit))
                .ok_or(NumberFault::TooLarge)?;
        } else if digit != 0 {
            return Err(NumberFault::TooFine);
        }
        position += 1;
    }
    while value > 0 && position < point {
        value = value.checked_mul(10).ok_or(NumberFault::TooLarge)?;
        position += 1;
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decimals_are_exact() {
        let check = |text: &str, places, expect| {
            assert_eq!(decimal(text.as_bytes(), places), expect, "{text}");
        };
        check("0", 9, Ok(0));
        check("374", 0, Ok(374));
        check("374.0", 0, Ok(374));
        check("374.", 0, Ok(374));
        check(".5", 9, Ok(500_000_000));
        check("+7", 0, Ok(7));
        check(" 7 ", 0, Ok(7));
        check("0007", 0, Ok(7));
        check("-0.0", 9, Ok(0));
        check("19440110.0", 9, Ok(19_440_110_000_000_000));
        check("0.001163", 9, Ok(1_163_000));
        check("1e-05", 9, Ok(10_000));
        check("1.5E3", 0, Ok(1500));
        check("123456789.123456789", 9, Ok(123_456_789_123_456_789));
        check("1700000000123456789", 0, Ok(1_700_000_000_123_456_789));
        check("18446744073709551615", 0, Ok(u64::MAX));
        check("1.1234567890000", 9, Ok(1_123_456_789));
        check("0e999999999999", 9, Ok(0));
        check("18446744073709551616", 0, Err(NumberFault::TooLarge));
        check("1e30", 0, Err(NumberFault::TooLarge));
        check("999999999", 12, Err(NumberFault::TooLarge));
        check("0.1234567891", 9, Err(NumberFault::TooFine));
        check("1e-10", 9, Err(NumberFault::TooFine));
        check("374.5", 0, Err(NumberFault::TooFine));
        check("-1", 0, Err(NumberFault::Negative));
        check("-0.000001", 9, Err(NumberFault::Negative));
        check("NaN", 0, Err(NumberFault::NotFinite));
        check("-inf", 0, Err(NumberFault::NotFinite));
        check("Infinity", 0, Err(NumberFault::NotFinite));
        for text in ["x", ".", "1.2.3", "1e", "1e+", "0x10", "1 2", "--1", "1,5", "e5"] {
            check(text, 9, Err(NumberFault::NotANumber));
        }
        check("", 0, Err(NumberFault::Empty));
        check("  ", 0, Err(NumberFault::Empty));
    }

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

        #[test]
        fn no_text_panics(text in "[-+0-9.eEnaif ]{0,30}", places in 0u32..10) {
            let _ = decimal(text.as_bytes(), places);
        }
    }
}
