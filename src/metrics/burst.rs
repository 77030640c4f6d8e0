//! Streams that come in bursts: many events at once, then a long pause, again and again.
//!
//! That is what a proxy makes of a stream when it collects the answer and passes it on a buffer at a time.
//! Told by arrivals alone, so that a server that pauses now and then is none of it, nor one that is fast.
//! A client that reads late makes the like of it; where the kernel's stamps show that what was read had lain
//! there, nothing is claimed of the stream. Deliberately absent: an answer that comes all at once, which a
//! fast server sends too, and whose fault the bursts are.

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
    use super::*;
    use crate::record::Kind;

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
