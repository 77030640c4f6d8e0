//! What was planned against what was sent: counts per second, gaps, and prompt lengths as servers count.
//!
//! Of at most so many rows: their times are held to be put in order.

use serde::Serialize;

use crate::record::StreamRecord;
use crate::schedule::fidelity::{ArrivalFigures, Arrivals};
use crate::units::{NS_PER_S, Nanos};

/// Rows whose times are held: 64 MB.
const LIMIT_ROWS: usize = 4 << 20;

/// Gathers when rows were due and sent.
#[derive(Debug, Default)]
pub struct SentTimes {
    times: Vec<(Nanos, Nanos)>,
    never_sent: u64,
    beyond_limit: u64,
    input_tok: [u64; 2],
}

/// What was sent, in figures.
#[derive(Clone, Debug, Serialize)]
pub struct SentFigures {
    /// Rows sent.
    pub rows: u64,
    /// Rows due and never sent.
    pub never_sent: u64,
    /// When they were sent.
    pub arrivals: ArrivalFigures,
    /// Largest difference between rows due and rows sent in any second.
    pub worst_second: u64,
    /// Share of seconds in which both are equal.
    pub equal_seconds: Option<f64>,
    /// 99th percentile of how much longer or shorter a gap became.
    pub gap_error_p99_ms: Option<f64>,
    /// Prompt tokens by the servers' count ÷ those asked for, over rows that have both.
    pub input_tok_ratio: Option<f64>,
}

impl SentTimes {
    /// Counts a row that ended.
    pub fn add(&mut self, record: &StreamRecord) {
        let Some(sent) = record.sent else {
            self.never_sent += 1;
            return;
        };
        if self.times.len() < LIMIT_ROWS {
            self.times.push((record.due, sent));
        } else {
            self.beyond_limit += 1;
        }
        let counted = record.usage.and_then(|usage| usage.input_tok);
        if let (Some(asked), Some(counted)) = (record.input_tok_asked, counted) {
            self.input_tok[0] += u64::from(asked);
            self.input_tok[1] += counted;
        }
    }

    /// The figures; absent where nothing was sent, or more than can be held.
    #[must_use]
    pub fn figures(mut self) -> Option<SentFigures> {
        if self.times.is_empty() || self.beyond_limit > 0 {
            return None;
        }
        self.times.sort_unstable();
        let mut errors: Vec<u64> = self
            .times
            .windows(2)
            .map(|pair| {
                let [before, after] = [pair[0], pair[1]];
                after.1.0.abs_diff(before.1.0).abs_diff(after.0.0 - before.0.0)
            })
            .collect();
        errors.sort_unstable();
        let rank = (errors.len() * 99).div_ceil(100);
        let p99 = rank.checked_sub(1).map(|place| Nanos(errors[place]).as_millis_f64());
        let (worst_second, equal_seconds) = self.by_second();
        let mut sent: Vec<Nanos> = self.times.iter().map(|(_, sent)| *sent).collect();
        sent.sort_unstable();
        let mut arrivals = Arrivals::default();
        for at in sent {
            arrivals.add(at);
        }
        let [asked, counted] = self.input_tok;
        Some(SentFigures {
            rows: self.times.len() as u64,
            never_sent: self.never_sent,
            arrivals: arrivals.figures(),
            worst_second,
            equal_seconds,
            gap_error_p99_ms: p99,
            input_tok_ratio: (asked > 0).then(|| counted as f64 / asked as f64),
        })
    }

    /// Over the seconds in which anything was due or sent.
    fn by_second(&self) -> (u64, Option<f64>) {
        let mut counts = std::collections::BTreeMap::<u64, [u64; 2]>::new();
        for (due, sent) in &self.times {
            counts.entry(due.0 / NS_PER_S).or_default()[0] += 1;
            counts.entry(sent.0 / NS_PER_S).or_default()[1] += 1;
        }
        let worst = counts.values().map(|[due, sent]| due.abs_diff(*sent)).max();
        let equal = counts.values().filter(|[due, sent]| due == sent).count();
        let share = (!counts.is_empty()).then(|| equal as f64 / counts.len() as f64);
        (worst.unwrap_or(0), share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_gaps_and_lengths_by_hand() {
        let mut times = SentTimes::default();
        let mut row = |due_ms: u64, sent_ms: Option<u64>| {
            let usage = crate::record::Usage { input_tok: Some(11), ..Default::default() };
            times.add(&StreamRecord {
                due: Nanos::from_millis(due_ms),
                sent: sent_ms.map(Nanos::from_millis),
                input_tok_asked: Some(10),
                usage: Some(usage),
                ..StreamRecord::default()
            });
        };
        row(2_500, Some(2_500));
        row(0, Some(0));
        row(990, Some(1_010));
        row(3_000, None);
        let found = times.figures().unwrap();
        assert_eq!((found.rows, found.never_sent, found.worst_second), (3, 1, 1));
        // Second 0 has 2 due and 1 sent, second 1 none due and 1 sent, second 2 one of each.
        assert_eq!(found.equal_seconds.map(f64::to_bits), Some((1.0_f64 / 3.0).to_bits()));
        assert_eq!(found.gap_error_p99_ms.map(f64::to_bits), Some(20.0_f64.to_bits()));
        assert_eq!(found.input_tok_ratio.map(f64::to_bits), Some(1.1_f64.to_bits()));
        assert!(SentTimes::default().figures().is_none());
    }
}
