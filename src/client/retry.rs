//! `--retries`: a request that failed in a way that passes is sent again, a few times, politely.
//!
//! What passes: a connection that was refused, lost or not made in time; statuses 408, 429 and 5xx; an
//! answer that broke off with its connection before it said anything. Never after a token event: what
//! was generated counts. The row stays one: due and sent are those of the first try, what else was seen
//! is the last one's. Waits are as long as `Retry-After` says, else they double, with some of each drawn
//! from the seed. Deliberately absent: retries that nobody asked for.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use hyper::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use super::Client;
use super::stream::{Ended, Stream};
use super::watch::Watch;
use crate::clock::Utc;
use crate::record::{Outcome, StreamRecord};
use crate::units::{NS_PER_S, Nanos};

/// The first wait of its own; the next ones double.
const FIRST_WAIT: Nanos = Nanos::from_millis(500);
/// They double no further than this.
const LONGEST_OWN_WAIT: Nanos = Nanos::from_secs(8);
/// However long a server asks for, no wait is longer.
const LONGEST_WAIT: Nanos = Nanos::from_secs(60);
/// Up to this share of a wait of its own is left out, so that rows that failed together do not come
/// back together.
const JITTER: f64 = 0.25;

/// How often a request is sent again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retries {
    /// Times after the first; 0: never.
    pub limit: u32,
    /// Of what is drawn.
    pub seed: u64,
}

/// Sends a request, and again as often as that may help.
pub(super) async fn perform(
    client: &Rc<Client>,
    record: StreamRecord,
    body: Bytes,
    watch: &Watch,
) -> StreamRecord {
    let retries = client.settings.retries;
    let sent = client.clock.now();
    if retries.limit == 0 {
        return Box::new(Stream::new(client, record, watch, sent)).run(body).await.record;
    }
    for attempt in 1.. {
        let fresh = StreamRecord { attempts: Some(attempt), ..record.clone() };
        let attempt_of = Box::new(Stream::new(client, fresh, watch, sent));
        let ended = attempt_of.run(body.clone()).await;
        if attempt > retries.limit || !may_pass(&ended) {
            return ended.record;
        }
        let own = || own_wait(retries.seed, record.row, attempt);
        let at = client.clock.now() + ended.retry_after.unwrap_or_else(own).min(LONGEST_WAIT);
        // A try that is bound to run into its limit is not made: what the server said stands.
        let too_late =
            client.settings.timeouts.responding(sent).is_some_and(|limit| at >= limit.at);
        if too_late || !wait(client, watch, at).await {
            return ended.record;
        }
    }
    record
}

/// Whether a request that ended so may do better the next time.
fn may_pass(ended: &Ended) -> bool {
    let record = &ended.record;
    record.tokens.count() == 0
        && match record.outcome {
            Outcome::Connect => true,
            Outcome::Http(status) => matches!(status, 408 | 429 | 500..=599),
            // The limit on connecting; others leave no time for another try.
            Outcome::Timeout => record.conn_reused.is_none(),
            Outcome::Truncated => ended.broke,
            _ => false,
        }
}

/// Waits, unless the run ends first (false).
async fn wait(client: &Client, watch: &Watch, at: Nanos) -> bool {
    // It lives, though nothing is received meanwhile.
    watch.saw_byte(at);
    let mut sleep = pin!(client.clock.sleep_until(at));
    let slept = poll_fn(|context| {
        if watch.is_last_try() {
            return Poll::Ready(false);
        }
        sleep.as_mut().poll(context).map(|()| true)
    });
    watch.guard(&client.clock, None, slept).await.unwrap_or(false)
}

fn own_wait(seed: u64, row: u64, attempt: u32) -> Nanos {
    let doubled = FIRST_WAIT.0.saturating_mul(1 << (attempt - 1).min(16)).min(LONGEST_OWN_WAIT.0);
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..12].copy_from_slice(&attempt.to_le_bytes());
    let mut generator = ChaCha8Rng::from_seed(key);
    generator.set_stream(row);
    // A quarter of the upper 32 bits' share of the wait.
    let share = f64::from(generator.next_u32()) / f64::from(u32::MAX);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of 8 s")]
    let left_out = (doubled as f64 * JITTER * share) as u64;
    Nanos(doubled - left_out)
}

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
pub(super) fn words(headers: &HeaderMap) -> Option<String> {
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
            words(&HeaderMap::from_iter([(RETRY_AFTER, value)])).expect("words")
        };
        assert_eq!(words(b" 1.5"), "Retry-After: 1.5");
        assert_eq!(words(b"soon"), "Retry-After: soon, which is no time and was ignored");
        assert!(words(b"\xff").ends_with("was ignored"));
    }

    #[test]
    fn waits_double_within_bounds_and_are_drawn_from_the_seed() {
        for (attempt, whole_ms) in
            [(1, 500), (2, 1_000), (4, 4_000), (5, 8_000), (6, 8_000), (40, 8_000)]
        {
            let waits: Vec<u64> = (0..100).map(|row| own_wait(3, row, attempt).0).collect();
            let whole = Nanos::from_millis(whole_ms).0;
            assert!(waits.iter().all(|wait| (whole / 4 * 3..=whole).contains(wait)), "{waits:?}");
            assert!(waits.iter().min() < waits.iter().max(), "drawn");
        }
        assert_eq!(own_wait(3, 9, 2), own_wait(3, 9, 2));
        assert_ne!(own_wait(3, 9, 2), own_wait(4, 9, 2));
    }
}
