//! Decimal numbers as people and programs write them, read exactly: no value passes through floating point.
//!
//! One grammar: digits, an optional fraction, an optional exponent. Counts are whole, but pandas writes them
//! `374.0`; times are decimals of some unit, but Python writes small ones `1e-05`.

/// What is wrong with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecimalFault {
    /// Nothing but blanks.
    Empty,
    /// Something else.
    NotANumber,
    /// NaN or an infinity.
    NotFinite,
    /// Below zero.
    Negative,
    /// Digits other than 0 below the last place that counts.
    TooFine,
    /// 2^64 or more.
    TooLarge,
}

/// A non-negative decimal as a count of `10^-places`.
pub fn decimal(text: &[u8], places: u32) -> Result<u64, DecimalFault> {
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
            .ok_or(DecimalFault::TooLarge);
    }
    general_decimal(text.trim_ascii(), places)
}

fn general_decimal(text: &[u8], places: u32) -> Result<u64, DecimalFault> {
    let (negative, body) = match text {
        [] => return Err(DecimalFault::Empty),
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if ["nan", "inf", "infinity"].iter().any(|word| body.eq_ignore_ascii_case(word.as_bytes())) {
        return Err(DecimalFault::NotFinite);
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
        return Err(DecimalFault::NotANumber);
    }
    let count = scale(whole, fraction, exponent + i64::from(places))?;
    if negative && count > 0 { Err(DecimalFault::Negative) } else { Ok(count) }
}

/// The digits of a plain or signed exponent; absurd ones saturate, since only their sign matters then.
fn parse_exponent(text: &[u8]) -> Result<i64, DecimalFault> {
    let (sign, digits) = match text {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        _ => (1, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(DecimalFault::NotANumber);
    }
    let size = digits
        .iter()
        .fold(0i64, |sum, digit| (sum * 10 + i64::from(digit - b'0')).min(1_000_000_000));
    Ok(sign * size)
}

/// `whole.fraction × 10^shift`, which must be a whole number below 2^64.
fn scale(whole: &[u8], fraction: &[u8], shift: i64) -> Result<u64, DecimalFault> {
    // The point moves right by `shift`: digits left of it count, digits right of it must be zeros.
    let point = i64::try_from(whole.len()).unwrap_or(i64::MAX).saturating_add(shift);
    let mut value: u64 = 0;
    let mut position = 0;
    for digit in whole.iter().chain(fraction).map(|digit| u64::from(digit - b'0')) {
        if position < point {
            value = value
                .checked_mul(10)
                .and_then(|tens| tens.checked_add(digit))
                .ok_or(DecimalFault::TooLarge)?;
        } else if digit != 0 {
            return Err(DecimalFault::TooFine);
        }
        position += 1;
    }
    while value > 0 && position < point {
        value = value.checked_mul(10).ok_or(DecimalFault::TooLarge)?;
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
        check("18446744073709551616", 0, Err(DecimalFault::TooLarge));
        check("1e30", 0, Err(DecimalFault::TooLarge));
        check("999999999", 12, Err(DecimalFault::TooLarge));
        check("0.1234567891", 9, Err(DecimalFault::TooFine));
        check("1e-10", 9, Err(DecimalFault::TooFine));
        check("374.5", 0, Err(DecimalFault::TooFine));
        check("-1", 0, Err(DecimalFault::Negative));
        check("-0.000001", 9, Err(DecimalFault::Negative));
        check("NaN", 0, Err(DecimalFault::NotFinite));
        check("-inf", 0, Err(DecimalFault::NotFinite));
        check("Infinity", 0, Err(DecimalFault::NotFinite));
        for text in ["x", ".", "1.2.3", "1e", "1e+", "0x10", "1 2", "--1", "1,5", "e5"] {
            check(text, 9, Err(DecimalFault::NotANumber));
        }
        check("", 0, Err(DecimalFault::Empty));
        check("  ", 0, Err(DecimalFault::Empty));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[-+0-9.eEnaif ]{0,30}", places in 0u32..10) {
            let _ = decimal(text.as_bytes(), places);
        }
    }
}
