//! A run second by second, in the run's own time: what `timeline.csv` says.
//!
//! A record comes when its stream ends, and may then tell of any second since its due time. A second
//! is therefore *final* when every request that was due before its end, and a [`MARGIN`] more, has
//! ended: the caller knows up to when that is so. At the end of the run all seconds are. No more than
//! [`HELD_LIMIT`] wait for that; then the oldest is given out as it stands, and what still comes for
//! it is counted as late. What the columns count:
//!
//! - due, sent, and ended as `done` (`ok` or cut by us) or `failed`, each in its own second;
//! - in flight: sent and not ended, at the second's end;
//! - tokens and chunks as they arrived, whatever became of their request;
//! - first tokens that arrived, as nearest ranks of `ttft_ms`, of rows that `ttft_ms` is measured of;
//! - the lag of what was sent.
//!
//! Deliberately absent: the wall clock, files, and any second that has not come.

use std::collections::VecDeque;

use super::ledger::spread;
use super::metric::{Metric, Reading};
use super::pool::Pool;
use crate::record::{Row, StreamRecord};
use crate::units::{NS_PER_S, Nanos};

/// A closed loop or a dependent turn may be due a little before one that was sent earlier.
pub const MARGIN: Nanos = Nanos::from_secs(1);
/// Seconds that wait for a stream to end: an hour.
pub const HELD_LIMIT: usize = 3600;

/// One line of `timeline.csv`. `None` is an empty cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Second {
    /// From `t0`.
    pub t_s: u64,
    /// Requests due.
    pub due: u64,
    /// Requests sent.
    pub sent: u64,
    /// Requests that ended without an error.
    pub done: u64,
    /// Requests that ended with one, or were never sent.
    pub failed: u64,
    /// Requests sent and not ended, at the end of the second.
    pub in_flight: u64,
    /// Completion tokens that arrived.
    pub output_tok: u64,
    /// Token events that arrived.
    pub chunks: u64,
    /// Time to first token, of first tokens that arrived.
    pub ttft: Ranks,
    /// Lag of what was sent.
    pub lag: Ranks,
    /// The client's use of processor time, as a share of one core.
    pub client_cpu: Option<f64>,
    /// The client's memory in RAM, in bytes; the largest reading.
    pub client_rss: Option<u64>,
    /// What the servers said of it.
    pub server: ServerSecond,
}

/// What servers count themselves: growth from the reading at the second's beginning to the one at its
/// end, and what was so at its end. `None` where they were not asked or did not say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServerSecond {
    /// Completion tokens.
    pub output_tok: Option<f64>,
    /// Prompt tokens.
    pub input_tok: Option<f64>,
    /// Requests in the batch.
    pub running: Option<f64>,
    /// Requests that wait for a place.
    pub waiting: Option<f64>,
}

/// Figures of one second's values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ranks {
    /// Nearest rank, within 0.05%.
    pub p50: Option<Nanos>,
    /// Nearest rank, within 0.05%.
    pub p99: Option<Nanos>,
    /// Exact.
    pub max: Option<Nanos>,
}

impl Ranks {
    fn of(pool: &Pool) -> Self {
        let rank = |percent| pool.percentile(percent).map(Nanos);
        Self { p50: rank(50), p99: rank(99), max: pool.max().map(Nanos) }
    }
}

/// A second that may still change.
#[derive(Debug, Default)]
struct Open {
    /// What only adds up. The rest comes when it is given out.
    counts: Second,
    /// Requests sent that ended.
    closed: u64,
    ttft: Pool,
    lag: Pool,
    cpu: Option<Nanos>,
}

/// The seconds of a run.
#[derive(Debug, Default)]
pub struct Timeline {
    open: VecDeque<Open>,
    /// The second at the front of `open`.
    first: u64,
    /// Seconds up to here have been seen to happen.
    seen: u64,
    in_flight: u64,
    given_up: Vec<Second>,
    late: u64,
    cpu: Option<(Nanos, Nanos)>,
}

impl Timeline {
    /// Adds a row and its record.
    pub fn add(&mut self, row: &Row, record: &StreamRecord) {
        let Some(due) = row.scheduled else { return };
        self.at(due, |second| second.counts.due += 1);
        if let (Some(sent), Some(lag)) = (record.sent, row.lag) {
            self.at(sent, |second| {
                second.counts.sent += 1;
                second.lag.record(lag.0, 1);
            });
        }
        let end = record.close.or(record.tokens.last()).or(record.sent).unwrap_or(due);
        let (failed, was_sent) = (row.outcome.is_error(), record.sent.is_some());
        self.at(end, |second| {
            second.closed += u64::from(was_sent);
            second.counts.failed += u64::from(failed);
            second.counts.done += u64::from(!failed);
        });
        if let (Some(first), Reading::Value(ttft)) = (record.tokens.first(), Metric::Ttft.read(row))
        {
            self.at(first, |second| second.ttft.record(ttft, 1));
        }
        for at in record.tokens.arrivals() {
            self.at(at, |second| second.counts.chunks += 1);
        }
        spread(&record.tokens, row.output_tok.unwrap_or(0), record.close, |at, n| {
            self.at(at, |second| second.counts.output_tok += n);
        });
    }

    /// Notes that the client had used so much processor time at `at`. What is used between two
    /// samples is spread over the time between them; the first one only begins.
    pub fn cpu(&mut self, at: Nanos, used: Nanos) {
        let Some((before, used_before)) = self.cpu.replace((at, used)) else { return };
        let (span, used) = (at.since(before), used.since(used_before));
        let mut from = before;
        while from < at {
            let second = from.0 / NS_PER_S;
            let to = at.min(Nanos((second + 1) * NS_PER_S));
            let share = u128::from(used.0) * u128::from(to.since(from).0) / u128::from(span.0);
            if let Some(open) = self.slot(second) {
                let share = Nanos(u64::try_from(share).unwrap_or(u64::MAX));
                open.cpu = Some(open.cpu.unwrap_or_default() + share);
            }
            from = to;
        }
    }

    /// Notes that the client held so many bytes of RAM at `at`.
    pub fn memory(&mut self, at: Nanos, bytes: u64) {
        if let Some(open) = self.slot(at.0 / NS_PER_S) {
            open.counts.client_rss = open.counts.client_rss.max(Some(bytes));
        }
    }

    /// Notes what the servers said of a second.
    pub fn server(&mut self, second: u64, said: ServerSecond) {
        if let Some(open) = self.slot(second) {
            open.counts.server = said;
        }
    }

    fn at(&mut self, at: Nanos, change: impl FnOnce(&mut Open)) {
        let second = at.0 / NS_PER_S;
        self.seen = self.seen.max(second + 1);
        if let Some(open) = self.slot(second) {
            change(open);
            return;
        }
        // Its line is written. What is in flight later must still come out right.
        let mut missed = Open::default();
        change(&mut missed);
        self.in_flight = (self.in_flight + missed.counts.sent).saturating_sub(missed.closed);
        self.late += 1;
    }

    /// The second, where it is not given out yet.
    fn slot(&mut self, second: u64) -> Option<&mut Open> {
        let place = second.checked_sub(self.first)?;
        while self.open.len() as u64 <= place && self.open.len() < HELD_LIMIT {
            self.open.push_back(Open::default());
        }
        while second - self.first >= self.open.len() as u64 {
            let oldest = self.next()?;
            self.given_up.push(oldest);
            self.open.push_back(Open::default());
        }
        self.open.get_mut(usize::try_from(second - self.first).ok()?)
    }

    /// Gives out the oldest second.
    fn next(&mut self) -> Option<Second> {
        let open = self.open.pop_front()?;
        let t_s = self.first;
        self.first += 1;
        self.in_flight = (self.in_flight + open.counts.sent).saturating_sub(open.closed);
        Some(Second {
            t_s,
            in_flight: self.in_flight,
            ttft: Ranks::of(&open.ttft),
            lag: Ranks::of(&open.lag),
            client_cpu: open.cpu.map(Nanos::as_secs_f64),
            ..open.counts
        })
    }

    /// Takes the seconds that can no longer change, now that every request due before `settled` has
    /// ended.
    pub fn take_final(&mut self, settled: Nanos) -> Vec<Second> {
        self.take_until((settled.since(MARGIN).0 / NS_PER_S).min(self.seen))
    }

    /// Takes all seconds that are left: the run is over. Repeats nothing when asked again.
    pub fn finish(&mut self) -> Vec<Second> {
        self.take_until(self.seen)
    }

    fn take_until(&mut self, end: u64) -> Vec<Second> {
        let mut seconds = std::mem::take(&mut self.given_up);
        while self.first < end {
            seconds.extend(self.next());
        }
        seconds
    }

    /// How many events came for seconds that had been given out.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.late
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Kind, Outcome};

    const MS: u64 = 1_000_000;

    /// Due and sent then, with a token event at each of `at_ms`, closed with the last one.
    fn record(outcome: Outcome, due_ms: u64, at_ms: &[u64]) -> StreamRecord {
        let due = Nanos(due_ms * MS);
        let mut record = StreamRecord {
            due,
            sent: (outcome != Outcome::Unsent).then(|| due + Nanos(MS)),
            http_status: Some(200),
            outcome,
            ..StreamRecord::default()
        };
        for at in at_ms {
            record.tokens.push(Nanos(at * MS), Kind::Content, None);
        }
        record.close = record.tokens.last().or(record.sent);
        record
    }

    fn add(timeline: &mut Timeline, record: &StreamRecord) {
        timeline.add(&Row::of(record, Nanos::ZERO), record);
    }

    #[test]
    fn events_are_counted_in_their_own_seconds() {
        let mut timeline = Timeline::default();
        add(&mut timeline, &record(Outcome::Ok, 500, &[900, 1_100, 3_000]));
        add(&mut timeline, &record(Outcome::Truncated, 600, &[700]));
        add(&mut timeline, &record(Outcome::Unsent, 1_500, &[]));
        let seconds = timeline.finish();
        let counts: Vec<[u64; 7]> = seconds
            .iter()
            .map(|s| [s.due, s.sent, s.done, s.failed, s.in_flight, s.output_tok, s.chunks])
            .collect();
        assert_eq!(
            counts,
            [
                [2, 2, 0, 1, 1, 2, 2],
                [1, 0, 0, 1, 1, 1, 1],
                [0, 0, 0, 0, 1, 0, 0],
                [0, 0, 1, 0, 0, 1, 1]
            ]
        );
        let ms = |n| Some(Nanos(n * MS));
        assert_eq!((seconds[0].ttft.p50, seconds[0].lag.max), (ms(400), ms(1)));
        assert_eq!(seconds[1].ttft, Ranks::default(), "no first token came");
        assert!(timeline.finish().is_empty() && timeline.late() == 0);
    }

    #[test]
    fn a_second_is_given_out_once_nothing_due_before_its_end_is_open() {
        let mut timeline = Timeline::default();
        for due_ms in [100, 1_100, 2_100, 3_100] {
            add(&mut timeline, &record(Outcome::Ok, due_ms, &[due_ms + 50]));
        }
        assert!(timeline.take_final(Nanos::from_millis(1_900)).is_empty());
        assert_eq!(timeline.take_final(Nanos::from_millis(3_100)).len(), 2);
        // Nothing is made up about seconds in which nothing was seen.
        assert_eq!(timeline.take_final(Nanos::MAX).len(), 2);
        assert!(timeline.finish().is_empty());
    }

    #[test]
    fn held_seconds_are_bounded_and_what_comes_late_is_counted() {
        let mut timeline = Timeline::default();
        let long = record(Outcome::Ok, 0, &[100, 4_000_000]);
        add(&mut timeline, &record(Outcome::Ok, 4_000_000, &[4_000_100]));
        assert!(timeline.open.len() <= HELD_LIMIT);
        add(&mut timeline, &long);
        assert!(timeline.late() > 0);
        let seconds = timeline.finish();
        assert_eq!(seconds.len(), 4_001);
        assert!(seconds.iter().enumerate().all(|(i, second)| second.t_s == i as u64));
        assert_eq!(seconds[4_000].in_flight, 0, "what was sent before is accounted for");
    }

    #[test]
    fn processor_time_is_spread_over_the_seconds_between_samples() {
        let mut timeline = Timeline::default();
        add(&mut timeline, &record(Outcome::Ok, 0, &[2_900]));
        for (at, used) in [(0, 1_000), (500, 1_500), (2_500, 1_700)] {
            timeline.cpu(Nanos(at * MS), Nanos(used * MS));
        }
        let cpu: Vec<_> = timeline.finish().iter().map(|second| second.client_cpu).collect();
        assert_eq!(cpu, [Some(0.55), Some(0.1), Some(0.05)]);
    }

    #[test]
    fn memory_is_the_largest_reading_of_a_second() {
        let mut timeline = Timeline::default();
        add(&mut timeline, &record(Outcome::Ok, 0, &[2_900]));
        for (at, bytes) in [(0, 5), (400, 9), (800, 7), (2_100, 3)] {
            timeline.memory(Nanos(at * MS), bytes);
        }
        let rss: Vec<_> = timeline.finish().iter().map(|second| second.client_rss).collect();
        assert_eq!(rss, [Some(9), None, Some(3)]);
    }
}
