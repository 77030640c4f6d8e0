//! Streams that come in bursts: many events at once, then a long pause, again and again.
//!
//! That is what a proxy makes of a stream when it collects the answer and passes it on a buffer at a time.
//! Told by arrivals alone, so that a server that pauses now and then is none of it, nor one that is fast.
//! A client that reads late makes the like of it; where the kernel's stamps show that what was read had lain
//! there, nothing is claimed of the stream. Deliberately absent: an answer that comes all at once, which a
//! fast server sends too, and any verdict on the client.

use super::health::ClientVerdict;
use super::summary::{MEASURED, Summary};
use crate::record::StreamRecord;
use crate::units::Nanos;

/// Streams of fewer events say nothing.
const EVENTS_LEAST: u64 = 16;
/// Events of one burst follow each other within this.
const TOGETHER: Nanos = Nanos::from_millis(1);
/// The fewest bursts: one or two pauses are a server's.
const BURSTS_LEAST: u64 = 4;
/// The fewest events in one, on average: servers that guess ahead send two or three tokens at once.
const BURST_EVENTS_LEAST: u64 = 4;
/// The least time per event: a server that is faster sends several at once by itself.
const PACE_LEAST: Nanos = Nanos::from_millis(5);
/// Events that lay in the kernel for more than one part in so many of the time per event were read late.
const LATE_PARTS: u64 = 4;

/// Bursts are told of where at least this share of the streams came in them.
const TOLD_SHARE: f64 = 0.1;

/// What a reader of the figures should know: that streams came in bursts, by whose clock, and what likely
/// makes them. Nothing where this client may have made them itself.
#[must_use]
pub fn warning(summary: &Summary, client: &ClientVerdict) -> Option<String> {
    let share = summary.line("bursty_share", MEASURED)?.mean?;
    let is_stamped = summary.line("rx_delay_ms", MEASURED)?.n? > 0;
    if share < TOLD_SHARE || (client.is_limited() && !is_stamped) {
        return None;
    }
    let percent = share * 100.0;
    let clock = if is_stamped { "as the kernel stamped them" } else { "as this client read them" };
    Some(format!(
        "{percent:.0}% of the answers came in bursts, many events at once and then a pause ({clock}): the \
         server or something before it collects them, most likely a proxy that buffers (nginx: \
         proxy_buffering off); gaps and stalls are those of the bursts"
    ))
}

/// Whether a stream came in bursts; `None` where it does not tell.
pub(super) fn came_in_bursts(record: &StreamRecord) -> Option<bool> {
    let tokens = &record.tokens;
    if tokens.count() < EVENTS_LEAST {
        return None;
    }
    let (mut gaps, mut pauses, mut span) = (0, 0, Nanos::ZERO);
    for gap in tokens.gaps() {
        gaps += 1;
        pauses += u64::from(gap >= TOGETHER);
        span += gap;
    }
    let (events, bursts, pace) = (gaps + 1, pauses + 1, Nanos(span.0 / gaps));
    if record.rx_delay.is_some_and(|delay| delay.0.saturating_mul(LATE_PARTS) > pace.0) {
        return None;
    }
    Some(bursts >= BURSTS_LEAST && events >= bursts * BURST_EVENTS_LEAST && pace >= PACE_LEAST)
}

#[cfg(test)]
mod tests {
    use super::super::health::HealthFacts;
    use super::super::{Metrics, Window};
    use super::*;
    use crate::record::{Kind, Outcome, Row};

    /// `bursts` times `events` events at once, `pause_ms` from one burst to the next.
    fn stream(bursts: u64, events: u64, pause_ms: u64) -> StreamRecord {
        let mut record = StreamRecord::default();
        for burst in 0..bursts {
            for event in 0..events {
                let at = Nanos::from_millis(burst * pause_ms) + Nanos(event * 10_000);
                record.tokens.push(at, Kind::Content, None);
            }
        }
        record
    }

    #[test]
    fn bursts_are_told_from_pauses_speed_and_single_events() {
        let check = |bursts, events, pause_ms, expect| {
            let record = stream(bursts, events, pause_ms);
            assert_eq!(came_in_bursts(&record), expect, "{bursts} of {events}, {pause_ms} ms");
        };
        check(10, 20, 400, Some(true));
        check(4, 4, 40, Some(true));
        // Even, two at once, once stalled, fast, all at once, short.
        check(200, 1, 20, Some(false));
        check(100, 2, 40, Some(false));
        check(2, 50, 10_000, Some(false));
        check(50, 20, 50, Some(false));
        check(1, 200, 0, Some(false));
        check(3, 5, 1_000, None);
        check(0, 0, 0, None);
    }

    /// What is said where so many of ten streams came in bursts.
    fn said(bursty: u64, rx_delay: Option<Nanos>, lag_ms: u64) -> Option<String> {
        let mut metrics = Metrics::new(Window::default());
        for row in 0..10 {
            let stream = if row < bursty { stream(10, 20, 400) } else { stream(200, 1, 20) };
            let sent = Some(Nanos::from_millis(lag_ms));
            let record = StreamRecord { row, rx_delay, sent, outcome: Outcome::Ok, ..stream };
            metrics.add(&Row::of(&record, Nanos::ZERO), &record);
        }
        let summary = metrics.finish();
        warning(&summary, &ClientVerdict::of(&summary, HealthFacts::default()))
    }

    #[test]
    fn a_proxy_is_named_unless_the_client_may_have_made_the_bursts() {
        let stamped = Some(Nanos(1_000));
        let words = said(4, stamped, 0).expect("words");
        assert!(words.starts_with("40% of the answers came in bursts"), "{words}");
        assert!(words.contains("as the kernel stamped them"), "{words}");
        assert!(said(4, None, 0).expect("words").contains("as this client read them"));
        assert_eq!(said(0, stamped, 0), None);
        assert_eq!(said(4, None, 100), None, "a late client without stamps");
        assert!(said(4, stamped, 100).is_some());
    }

    #[test]
    fn a_client_that_read_late_blames_nobody() {
        let with = |delay_us: u64| StreamRecord {
            rx_delay: Some(Nanos(delay_us * 1_000)),
            ..stream(10, 20, 400)
        };
        assert_eq!(came_in_bursts(&with(1_000)), Some(true));
        assert_eq!(came_in_bursts(&with(15_000)), None);
    }
}
