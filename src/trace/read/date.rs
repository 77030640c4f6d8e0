//! Date time stamps into nanoseconds since 1970, by hand.
//!
//! One fixed shape, `YYYY-MM-DD HH:MM:SS`, with `T` or a space, up to nine fractional digits, and no
//! zone, `Z` or an offset. A calendar library would do it too, at several times the cost of the rest
//! of the row. No local time zone and no leap second tables: rows without an offset are taken as UTC.

use super::error::shorten;

const SHAPE: &str = "write it as 2023-11-16 18:17:03.9799600, with up to 9 fractional digits and \
                     optionally Z or an offset such as +00:00";
const NS_PER_S: i64 = 1_000_000_000;

/// A time stamp as read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Nanoseconds since 1970-01-01T00:00:00Z.
    pub(super) ns: i64,
    /// Whether the row names its offset from UTC.
    pub(super) has_offset: bool,
}

/// Reads time stamps, remembering the last date: a trace holds millions of rows of one day.
#[derive(Default)]
pub(super) struct DateReader {
    text: [u8; 10],
    days: i64,
    /// Whether the rows so far name their offset from UTC.
    has_offset: Option<bool>,
}

impl DateReader {
    /// Reads one time stamp. The error says what is wrong and how to write it.
    pub(super) fn read(&mut self, text: &[u8]) -> Result<Stamp, String> {
        let (Some(date), Some(clock)) = (text.first_chunk::<10>(), text.get(10..19)) else {
            return Err(bad(text, "is not a time stamp"));
        };
        if *date != self.text {
            self.days = days_since_1970(date).map_err(|what| bad(text, what))?;
            self.text = *date;
        }
        let seconds = seconds_of_day(clock).map_err(|what| bad(text, what))?;
        let (fraction_ns, zone) = fraction(&text[19..]).map_err(|what| bad(text, what))?;
        let offset_s = zone_offset_s(zone).map_err(|what| bad(text, what))?;
        let utc_s = self.days * 86_400 + seconds - offset_s.unwrap_or(0);
        Ok(Stamp { ns: utc_s * NS_PER_S + fraction_ns, has_offset: offset_s.is_some() })
    }
}

impl DateReader {
    /// Nanoseconds since 1970, of time stamps that all name their offset from UTC, or all do not.
    pub(super) fn read_alike(&mut self, text: &[u8]) -> Result<i64, String> {
        let stamp = self.read(text)?;
        if *self.has_offset.get_or_insert(stamp.has_offset) == stamp.has_offset {
            return Ok(stamp.ns);
        }
        let (this, others) = if stamp.has_offset { ("an", "none") } else { ("no", "one") };
        Err(format!(
            "the time stamp has {this} offset from UTC, earlier rows have {others}; write all alike"
        ))
    }
}

fn bad(text: &[u8], what: &str) -> String {
    format!("`{}` {what}; {SHAPE}", shorten(text))
}

fn digits(text: &[u8]) -> Option<i64> {
    text.iter()
        .try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
}

fn days_since_1970(date: &[u8; 10]) -> Result<i64, &'static str> {
    let parts = (digits(&date[..4]), date[4], digits(&date[5..7]), date[7], digits(&date[8..]));
    let (Some(year), b'-', Some(month), b'-', Some(day)) = parts else {
        return Err("is not a time stamp");
    };
    // 64-bit nanoseconds reach from 1677 to 2262.
    if !(1678..=2261).contains(&year) {
        return Err("has a year outside 1678 to 2261");
    }
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let (before, length) = match month {
        1 => (0, 31),
        2 => (31, 28 + i64::from(leap)),
        3 => (59, 31),
        4 => (90, 30),
        5 => (120, 31),
        6 => (151, 30),
        7 => (181, 31),
        8 => (212, 31),
        9 => (243, 30),
        10 => (273, 31),
        11 => (304, 30),
        12 => (334, 31),
        _ => return Err("has a month outside 01 to 12"),
    };
    if !(1..=length).contains(&day) {
        return Err("has a day that its month does not have");
    }
    let past = year - 1;
    let days_to_year = past * 365 + past / 4 - past / 100 + past / 400;
    // 719,162 days from 0001-01-01 to 1970-01-01.
    Ok(days_to_year - 719_162 + before + i64::from(leap && month > 2) + day - 1)
}

/// `T18:17:03` or ` 18:17:03`.
fn seconds_of_day(clock: &[u8]) -> Result<i64, &'static str> {
    if !matches!(clock[0], b' ' | b'T' | b't') || clock[3] != b':' || clock[6] != b':' {
        return Err("is not a time stamp");
    }
    match (digits(&clock[1..3]), digits(&clock[4..6]), digits(&clock[7..9])) {
        (Some(hour @ 0..=23), Some(minute @ 0..=59), Some(second @ 0..=59)) => {
            Ok(hour * 3600 + minute * 60 + second)
        }
        (Some(_), Some(_), Some(_)) => Err("has a time of day that does not exist"),
        _ => Err("is not a time stamp"),
    }
}

/// Nanoseconds of an optional fraction, and what follows it.
fn fraction(text: &[u8]) -> Result<(i64, &[u8]), &'static str> {
    let [b'.', rest @ ..] = text else { return Ok((0, text)) };
    let length = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
    let (kept, finer) = rest[..length].split_at(length.min(9));
    if finer.iter().any(|&byte| byte != b'0') {
        return Err("is finer than a nanosecond");
    }
    let mut ns = digits(kept).unwrap_or(0);
    for _ in kept.len()..9 {
        ns *= 10;
    }
    Ok((ns, &rest[length..]))
}

/// Seconds east of UTC, or `None` where the text names no zone.
fn zone_offset_s(zone: &[u8]) -> Result<Option<i64>, &'static str> {
    let (sign, clock) = match zone {
        [] => return Ok(None),
        [b'Z' | b'z'] => return Ok(Some(0)),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return Err("ends in something that is no zone"),
    };
    let (hours, minutes) = match clock.len() {
        2 => (digits(clock), Some(0)),
        4 => (digits(&clock[..2]), digits(&clock[2..])),
        5 if clock[2] == b':' => (digits(&clock[..2]), digits(&clock[3..])),
        _ => (None, None),
    };
    match (hours, minutes) {
        (Some(hours @ 0..=23), Some(minutes @ 0..=59)) => {
            Ok(Some(sign * (hours * 3600 + minutes * 60)))
        }
        _ => Err("ends in something that is no zone"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Stamp, String> {
        DateReader::default().read(text.as_bytes())
    }

    #[test]
    fn every_dialect_reads_exactly() {
        let check = |text: &str, ns: i64, has_offset: bool| {
            assert_eq!(read(text), Ok(Stamp { ns, has_offset }), "{text}");
        };
        check("2023-11-16 18:17:03.9799600", 1_700_158_623_979_960_000, false);
        check("2024-05-12 00:00:00.001163+00:00", 1_715_472_000_001_163_000, true);
        check("2024-05-12 00:00:01+00:00", 1_715_472_001_000_000_000, true);
        check("2024-10-15T12:00:00.269Z", 1_728_993_600_269_000_000, true);
        check("2024-10-15t12:00:00z", 1_728_993_600_000_000_000, true);
        check("2024-05-12 02:30:00+02:30", 1_715_472_000_000_000_000, true);
        check("2024-05-11 19:00:00-0500", 1_715_472_000_000_000_000, true);
        check("2024-05-11 19:00:00-05", 1_715_472_000_000_000_000, true);
        check("1970-01-01 00:00:00.000000001", 1, false);
        check("1970-01-01 00:00:00.5", 500_000_000, false);
        check("1970-01-01 00:00:00.0000000010", 1, false);
        check("2000-02-29 00:00:00", 951_782_400_000_000_000, false);
        check("1969-12-31 23:59:59", -1_000_000_000, false);
    }

    #[test]
    fn what_is_no_time_stamp_says_why() {
        let check = |text: &str, part: &str| {
            let message = read(text).unwrap_err();
            assert!(message.contains(part) && message.contains("2023-11-16 18:17"), "{message}");
        };
        check("", "not a time stamp");
        check("5", "not a time stamp");
        check("2023/11/16 18:17:03", "not a time stamp");
        check("2023-11-16_18:17:03", "not a time stamp");
        check("2023-1x-16 18:17:03", "not a time stamp");
        check("2023-13-16 18:17:03", "month");
        check("2023-02-29 18:17:03", "day");
        check("2023-11-00 18:17:03", "day");
        check("2023-11-16 24:00:00", "time of day");
        check("2023-11-16 23:59:60", "time of day");
        check("2023-11-16 18:17:03.0000000001", "finer");
        check("2023-11-16 18:17:03 UTC", "no zone");
        check("2023-11-16 18:17:03+1", "no zone");
        check("2023-11-16 18:17:03+25:00", "no zone");
        check("0001-01-01 00:00:00", "year");
        check("9999-01-01 00:00:00", "year");
    }

    proptest! {
        /// Against jiff, which formats what we must read.
        #[test]
        fn time_stamps_survive_printing(
            ns in -9_214_646_400_000_000_000i64..9_214_560_000_000_000_000,
            digits in 0usize..=9,
            separator in prop::sample::select(vec![" ", "T"]),
            offset_min in -1439i32..1440,
        ) {
            let unit = 10i64.pow(9 - u32::try_from(digits).unwrap());
            let ns = ns.div_euclid(unit) * unit;
            let stamp = jiff::Timestamp::from_nanosecond(i128::from(ns)).unwrap();
            let offset = jiff::tz::Offset::from_seconds(offset_min * 60).unwrap();
            let local = offset.to_datetime(stamp);
            prop_assume!((1678..=2261).contains(&local.year()));
            let zone = format!(
                "{}{:02}:{:02}",
                if offset_min < 0 { '-' } else { '+' },
                offset_min.abs() / 60,
                offset_min.abs() % 60
            );
            let fraction = format!("{:09}", local.subsec_nanosecond());
            let fraction =
                if digits == 0 { String::new() } else { format!(".{}", &fraction[..digits]) };
            let text = format!(
                "{}{separator}{:02}:{:02}:{:02}{fraction}{zone}",
                local.date(), local.hour(), local.minute(), local.second()
            );
            prop_assert_eq!(read(&text), Ok(Stamp { ns, has_offset: true }), "{}", text);
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = DateReader::default().read(&bytes);
        }
    }
}
