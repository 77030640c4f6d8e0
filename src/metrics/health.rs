//! Whether the client kept up with its own schedule: one verdict, with its reasons in words.
//!
//! Judged by what is ours alone: lag, rows never sent, descriptors, ports and memory that ran out, and
//! the time that arrivals waited for us where that is known. What a server does, stalls and bursts
//! included, is no part of it. Deliberately absent: the exit code, and any reading of the machine.

use super::client_figures::ClientFigures;
use super::line::Line;
use super::percentile::Percentile;
use super::summary::{ALL, MEASURED, Summary};
use crate::record::Outcome;
use crate::units::Nanos;

/// A p99 lag above this and the client was the bottleneck.
const LAG_LIMIT_MS: f64 = 50.0;
/// So was it above this share of a limit on the time to first token.
const TTFT_SHARE: f64 = 0.1;
/// A p99 above this is worth a warning.
const LAG_WARNING_MS: f64 = 5.0;
/// A thread that is on a core for more than this has nothing left for what comes next.
const BUSY_LIMIT: f64 = 0.9;
/// Threads that are kept waiting for a core for more than this share of their work lack processor time,
const WAIT_LIMIT: f64 = 0.2;
/// where something was late or lay unread for longer than this at p99.
const WAIT_FELT_MS: f64 = 2.0;

/// What the figures do not tell of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct HealthFacts {
    /// Rows waited for a slot because the user said so: their lag is no fault of ours.
    pub capped: bool,
    /// The run was ended before its plan was: rows that were just due are left unsent.
    pub stopped: bool,
    /// The strictest limit on the time to first token, where one is given.
    pub ttft_limit: Option<Nanos>,
    /// What the machine told of the client.
    pub figures: ClientFigures,
}

/// Whether the client was the bottleneck.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientVerdict {
    /// Why it was; empty where it was not.
    pub limited: Vec<String>,
    /// What is not enough for that, and worth knowing.
    pub warnings: Vec<String>,
}

impl ClientVerdict {
    /// Judges the figures of a run.
    #[must_use]
    pub fn of(summary: &Summary, facts: HealthFacts) -> Self {
        let mut verdict = Self::default();
        if !facts.capped {
            verdict.lag(summary, facts.ttft_limit);
            verdict.behind(summary);
        }
        if let Some(error) = summary.all.first_errors.get(&Outcome::Client) {
            let n = summary.all.count(Outcome::Client);
            verdict.limited.push(format!("{n} requests found no room on this machine: {error}"));
        }
        let unsent = summary.all.count(Outcome::Unsent);
        if unsent > 0 && !facts.capped {
            let words = format!("{unsent} requests fell due and were never sent");
            let list = if facts.stopped { &mut verdict.warnings } else { &mut verdict.limited };
            list.push(words);
        }
        verdict.cpu(summary, facts);
        if let Some((ms, which)) = summary.line("rx_delay_ms", ALL).and_then(high) {
            let words = format!("arrivals waited {ms:.1} ms ({which}) to be read");
            if ms > LAG_LIMIT_MS {
                verdict.limited.push(words);
            } else if ms > LAG_WARNING_MS {
                verdict.warnings.push(words);
            }
        }
        verdict
    }

    /// Whether it lacked processor time, and whose fault that is.
    fn cpu(&mut self, summary: &Summary, facts: HealthFacts) {
        let ClientFigures { thread_cpu_share, cpu_wait_share, .. } = facts.figures;
        if let Some(busiest) = thread_cpu_share.filter(|share| *share > BUSY_LIMIT) {
            let percent = busiest * 100.0;
            self.limited
                .push(format!("processor: one of its threads ran {percent:.0}% of the time"));
        }
        // Of few rows one alone may have been late, whatever the rest of the machine does.
        let felt = |name, scope| summary.line(name, scope)?.percentile(Percentile::P99);
        let lag = felt("lag_ms", MEASURED).filter(|_| !facts.capped);
        let worst = lag.into_iter().chain(felt("rx_delay_ms", ALL)).fold(0.0, f64::max);
        let waited = cpu_wait_share.filter(|share| *share > WAIT_LIMIT);
        if let Some(waited) = waited.filter(|_| worst > WAIT_FELT_MS) {
            let percent = waited * 100.0;
            self.limited.push(format!(
                "processor: its threads waited for a core {percent:.0}% of the time that they had work, since \
                 others use it too"
            ));
        }
    }

    fn lag(&mut self, summary: &Summary, ttft_limit: Option<Nanos>) {
        let Some((ms, which)) = summary.line("lag_ms", MEASURED).and_then(high) else { return };
        let share_ms = ttft_limit.map(|limit| limit.as_millis_f64() * TTFT_SHARE);
        let words = format!("requests left {ms:.1} ms late ({which})");
        if ms > LAG_LIMIT_MS {
            self.limited.push(format!("{words}, more than {LAG_LIMIT_MS} ms"));
        } else if share_ms.is_some_and(|share_ms| ms > share_ms) {
            self.limited.push(format!("{words}, more than a tenth of the limit on TTFT"));
        } else if ms > LAG_WARNING_MS {
            self.warnings.push(words);
        }
    }

    /// Whether the schedule bent somewhere, though most rows may have left in time.
    fn behind(&mut self, summary: &Summary) {
        let latest_ms = summary.line("lag_ms", ALL).and_then(|line| line.max);
        if let Some(behind) = summary.behind.filter(|behind| behind.rows > 0)
            && latest_ms.is_some_and(|ms| ms > LAG_LIMIT_MS)
        {
            let (rows, at_s) = (behind.rows, behind.at_s);
            self.warnings.push(format!(
                "the schedule bent: {rows} requests that were due had not left at {at_s} s"
            ));
        }
    }

    /// Whether it was.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        !self.limited.is_empty()
    }

    /// `ok` or `limited`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        if self.is_limited() { "limited" } else { "ok" }
    }

    /// The verdict with its reasons, in one line.
    #[must_use]
    pub fn words(&self) -> String {
        let reasons: Vec<_> = self.limited.iter().chain(&self.warnings).cloned().collect();
        if reasons.is_empty() {
            return self.word().to_owned();
        }
        format!("{} ({})", self.word(), reasons.join("; "))
    }
}

/// The 99th percentile, or the greatest value where they are too few for one.
fn high(line: &Line) -> Option<(f64, &'static str)> {
    match line.percentile(Percentile::P99) {
        Some(ms) => Some((ms, "p99")),
        None => line.max.map(|ms| (ms, "max")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Metrics, Window};
    use super::*;
    use crate::record::{Kind, Row, StreamRecord};

    /// 400 rows, sent so late, each with a second token after so long; the first `odd` rows are `outcome`.
    fn judged(
        lag_ms: u64,
        gap_ms: u64,
        odd: u64,
        outcome: Outcome,
        facts: HealthFacts,
    ) -> ClientVerdict {
        let mut metrics = Metrics::new(Window::default());
        for row in 0..400 {
            let due = Nanos::from_millis(row * 10);
            let sent = due + Nanos::from_millis(lag_ms);
            let outcome = if row < odd { outcome } else { Outcome::Ok };
            let mut record = StreamRecord {
                row,
                due,
                sent: (outcome != Outcome::Unsent).then_some(sent),
                outcome,
                error: (outcome != Outcome::Ok).then(|| "Too many open files".to_owned()),
                ..StreamRecord::default()
            };
            if outcome == Outcome::Ok {
                for at in [100, 100 + gap_ms] {
                    record.tokens.push(sent + Nanos::from_millis(at), Kind::Content, None);
                }
            }
            metrics.add(&Row::of(&record, Nanos::ZERO), &record);
        }
        ClientVerdict::of(&metrics.finish(), facts)
    }

    #[test]
    fn lag_decides_by_its_own_limits_and_by_those_on_ttft() {
        let none = HealthFacts::default();
        let check = |lag_ms, facts, limited, warned| {
            let verdict = judged(lag_ms, 20, 0, Outcome::Ok, facts);
            let found = (verdict.is_limited(), !verdict.warnings.is_empty());
            assert_eq!(found, (limited, warned), "{lag_ms} ms: {}", verdict.words());
        };
        check(1, none, false, false);
        check(6, none, false, true);
        check(51, none, true, false);
        let strict = HealthFacts { ttft_limit: Some(Nanos::from_millis(200)), ..none };
        check(21, strict, true, false);
        check(19, strict, false, true);
        // Who holds rows back on purpose makes them late on purpose.
        check(5_000, HealthFacts { capped: true, ..none }, false, false);
    }

    #[test]
    fn a_server_that_stalls_or_comes_in_bursts_is_no_fault_of_ours() {
        for gap_ms in [0, 60_000] {
            let verdict = judged(0, gap_ms, 0, Outcome::Ok, HealthFacts::default());
            assert_eq!(verdict.words(), "ok");
        }
        for outcome in [Outcome::Connect, Outcome::Timeout, Outcome::Http(503)] {
            assert_eq!(judged(0, 20, 50, outcome, HealthFacts::default()).words(), "ok");
        }
    }

    #[test]
    fn a_starved_client_is_told_from_a_busy_machine_that_it_does_not_feel() {
        let with = |lag_ms, busiest, waited| {
            let figures = ClientFigures {
                thread_cpu_share: Some(busiest),
                cpu_wait_share: Some(waited),
                ..ClientFigures::default()
            };
            judged(lag_ms, 20, 0, Outcome::Ok, HealthFacts { figures, ..HealthFacts::default() })
        };
        assert!(with(3, 0.4, 0.5).words().starts_with("limited (processor: its threads waited"));
        assert_eq!(with(1, 0.4, 0.5).words(), "ok");
        assert!(!with(3, 0.4, 0.1).is_limited());
        assert!(with(0, 0.97, 0.0).words().contains("ran 97% of the time"));
    }

    #[test]
    fn what_ran_out_and_what_was_never_sent_limit_it() {
        let none = HealthFacts::default();
        let words = judged(0, 20, 3, Outcome::Client, none).words();
        assert_eq!(
            words,
            "limited (3 requests found no room on this machine: Too many open files)"
        );
        assert!(judged(0, 20, 1, Outcome::Unsent, none).is_limited());
        for facts in [HealthFacts { stopped: true, ..none }, HealthFacts { capped: true, ..none }] {
            assert!(!judged(0, 20, 1, Outcome::Unsent, facts).is_limited());
        }
    }
}
