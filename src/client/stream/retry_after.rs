//! `Retry-After`: how long a server asks to be left alone, and what of it is said.
//!
//! Deliberately absent: whether a request is sent again.

use hyper::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};

use crate::clock::Utc;
use crate::units::{NS_PER_S, Nanos};

/// How long the server asks to be left alone: in seconds, or until a date, by its own clock where it
/// tells it.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Nanos> {
    let text = text(headers, &RETRY_AFTER)?;
    if let Some(span) = seconds(text) {
        return Some(span);
    }
    let until = utc_ns(text)?;
    let now = text_of_date(headers).unwrap_or_else(|| Utc::now().0);
    let ns = u64::try_from((until - now).max(0)).unwrap_or(u64::MAX);
    Some(Nanos(ns))
}

/// Seconds, whole or not: some servers say `1.5`, though the standard knows whole ones only.
fn seconds(text: &str) -> Option<Nanos> {
    // Nothing but digits and a point: no sign, no exponent, no `inf`.
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds: f64 = text.parse().ok().filter(|_| is_plain)?;
    // Longer than any wait, so that the number fits.
    let ns = seconds.min(f64::from(u32::MAX)) * NS_PER_S as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 2^32 s")]
    Some(Nanos(ns.ceil() as u64))
}

/// What the server says of when to come back, as it says it.
pub(super) fn quoted_retry_after(headers: &HeaderMap) -> Option<String> {
    let said = headers.get(RETRY_AFTER)?;
    let shown = String::from_utf8_lossy(said.as_bytes());
    let unread =
        if retry_after(headers).is_none() { ", which is no time and was ignored" } else { "" };
    Some(format!("Retry-After: {}{unread}", shown.trim()))
}

fn text_of_date(headers: &HeaderMap) -> Option<i128> {
    utc_ns(text(headers, &DATE)?)
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// An HTTP date in nanoseconds since 1970.
fn utc_ns(date: &str) -> Option<i128> {
    let since = httpdate::parse_http_date(date).ok()?;
    let since = since.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(i128::from(since.as_secs()) * i128::from(NS_PER_S))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn after(said: &str, date: &str) -> Option<Nanos> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_str(said).expect("text"));
        if !date.is_empty() {
            headers.insert(DATE, HeaderValue::from_str(date).expect("text"));
        }
        retry_after(&headers)
    }

    #[test]
    fn a_server_asks_in_seconds_or_for_a_date() {
        let s = |n| Some(Nanos::from_secs(n));
        let date = "Mon, 30 Nov 2026 10:00:00 GMT";
        assert_eq!(after("7", ""), s(7));
        assert_eq!(after(" 0 ", ""), s(0));
        assert_eq!(after("Mon, 30 Nov 2026 10:00:12 GMT", date), s(12), "by its own clock");
        assert_eq!(after("Monday, 30-Nov-26 10:01:00 GMT", date), s(60));
        assert_eq!(after("Mon, 30 Nov 2026 09:00:00 GMT", date), s(0), "in the past");
        assert_eq!(after("Mon, 30 Nov 1970 09:00:00 GMT", ""), s(0), "by ours");
        assert_eq!(
            after("1.5", date),
            Some(Nanos::from_millis(1_500)),
            "not of the standard, but seen"
        );
        assert_eq!(after("0.0", ""), s(0));
        assert!(after("99999999999999999999", "") >= s(1_000_000_000));
        for nonsense in [
            "-1",
            "+1",
            "1e3",
            "inf",
            "1.5.1",
            ".",
            "",
            "soon",
            "1,5",
            "Mon, 99 Nov 2026 10:00:00 GMT",
        ] {
            assert_eq!(after(nonsense, date), None, "{nonsense}");
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
        let words = |said: &[u8]| {
            let value = HeaderValue::from_bytes(said).expect("a value");
            quoted_retry_after(&HeaderMap::from_iter([(RETRY_AFTER, value)])).expect("words")
        };
        assert_eq!(words(b" 1.5"), "Retry-After: 1.5");
        assert_eq!(words(b"soon"), "Retry-After: soon, which is no time and was ignored");
        assert!(words(b"\xff").ends_with("was ignored"));
    }
}
