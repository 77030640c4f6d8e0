//! Little's law on our own bookkeeping: requests in flight as they were seen from time to time, against what
//! the rows say of how long each was under way. Both are the same number, by two ways; where they differ,
//! something was counted wrong here. Pure; the caller tells the time.

use crate::record::StreamRecord;
use crate::units::Nanos;

/// Fewer looks than this say nothing.
const LEAST_LOOKS: u64 = 50;
/// A mean of looks is off by chance: standard deviations that are allowed, of a count as random as arrivals
/// in bursts.
const DEVIATIONS: f64 = 8.0;
/// And a share, for requests that come and go between two looks.
const SHARE: f64 = 0.25;

/// Requests in flight, both ways.
#[derive(Clone, Copy, Debug, Default)]
pub struct InFlight {
    looks: u64,
    /// Request-seconds, from looks.
    area_s: f64,
    last: Option<(Nanos, f64)>,
    ended: u64,
    /// Request-seconds, from rows.
    under_way_s: f64,
}

impl InFlight {
    /// Takes in a request that has ended.
    pub fn ended(&mut self, record: &StreamRecord) {
        let Some(sent) = record.sent else { return };
        self.ended += 1;
        self.under_way_s += record.close.unwrap_or(sent).since(sent).as_secs_f64();
    }

    /// Takes a look: so many requests had been sent `at`.
    pub fn sees(&mut self, at: Nanos, sent: u64) {
        let open = sent.saturating_sub(self.ended) as f64;
        if let Some((before, was)) = self.last.replace((at, open)) {
            self.area_s += at.since(before).as_secs_f64() * f64::midpoint(was, open);
            self.looks += 1;
        }
    }

    /// The mean of looks; `None` without any.
    #[must_use]
    pub fn seen_mean(&self) -> Option<f64> {
        self.over(self.area_s)
    }

    /// The mean by the rows: rate times mean time under way.
    #[must_use]
    pub fn rows_mean(&self) -> Option<f64> {
        self.over(self.under_way_s)
    }

    fn over(&self, request_s: f64) -> Option<f64> {
        let span_s = self.last.map(|(at, _)| at.as_secs_f64()).filter(|span_s| *span_s > 0.0)?;
        (self.looks > 0).then(|| request_s / span_s)
    }

    /// What to say where the two contradict each other.
    #[must_use]
    pub fn contradiction(&self) -> Option<String> {
        let (seen, rows) = self.seen_mean().zip(self.rows_mean())?;
        let mean = seen.max(rows);
        let chance = DEVIATIONS * (mean.max(1.0) / self.looks as f64).sqrt();
        let differ = (seen - rows).abs() > chance + SHARE * mean;
        (self.looks >= LEAST_LOOKS && differ).then(|| {
            format!(
                "this run's bookkeeping contradicts itself: {seen:.1} requests in flight were seen on average, \
                 and the rows say {rows:.1}; please report this, and do not use its figures"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten seconds of one request a second, each under way for so long, looked at ten times a second.
    fn run(under_way_s: u64, says_s: u64) -> InFlight {
        let mut in_flight = InFlight::default();
        for tenth in 0..=100_u64 {
            let s = tenth / 10;
            if tenth % 10 == 0 && s >= under_way_s {
                let sent = Nanos::from_secs(s - under_way_s);
                in_flight.ended(&StreamRecord {
                    sent: Some(sent),
                    close: Some(sent + Nanos::from_secs(says_s)),
                    ..StreamRecord::default()
                });
            }
            in_flight.sees(Nanos::from_millis(tenth * 100), s + 1);
        }
        in_flight
    }

    #[test]
    fn looks_and_rows_agree() {
        let in_flight = run(2, 2);
        let (seen, rows) =
            (in_flight.seen_mean().expect("looks"), in_flight.rows_mean().expect("looks"));
        assert!((seen - 1.9).abs() < 0.2 && (rows - 1.8).abs() < 0.2, "{seen} {rows}");
        assert_eq!(in_flight.contradiction(), None);
        assert_eq!(InFlight::default().seen_mean(), None);
    }

    #[test]
    fn rows_that_say_much_more_are_told() {
        let words = run(2, 20).contradiction().expect("a contradiction");
        assert!(words.contains("contradicts itself"), "{words}");
    }
}
