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

/// A control group that holds the client back for more than this share of the time gives it too little.
const THROTTLED_LIMIT: f64 = 0.01;

/// More than this share of what is limited in use is worth a warning.
const SCARCE_SHARE: f64 = 0.9;

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
            verdict.delay(ms, format!("arrivals waited {ms:.1} ms ({which}) to be read"));
        }
        // A short run has beats enough for a longest one, which any machine has.
        if let Some(ms) = facts.figures.heartbeat_ms.and_then(|heartbeat| heartbeat.p99) {
            verdict.delay(ms, format!("its workers woke {ms:.1} ms late (p99)"));
        }
        if let Some(ms) = facts.figures.record_wait_ms {
            let words =
                "its workers stood still, since what they had measured was not written in time";
            verdict.warnings.push(format!("{words} ({ms:.0} ms in all)"));
        }
        verdict.scarcity(&facts.figures);
        verdict
    }

    /// Something waited for us so long.
    fn delay(&mut self, ms: f64, words: String) {
        if ms > LAG_LIMIT_MS {
            self.limited.push(words);
        } else if ms > LAG_WARNING_MS {
            self.warnings.push(words);
        }
    }

    /// What may give out next; where it did, there are rows that say so.
    fn scarcity(&mut self, figures: &ClientFigures) {
        let ClientFigures { fds, fds_limit, ports, ports_limit, .. } = *figures;
        for (what, used, limit, remedy) in [
            ("descriptors", fds, fds_limit, "ulimit -n raises it"),
            ("local ports", ports, ports_limit, "net.ipv4.ip_local_port_range widens it"),
        ] {
            let Some((used, limit)) = used.zip(limit) else { continue };
            if used as f64 > limit as f64 * SCARCE_SHARE {
                self.warnings.push(format!("up to {used} of {limit} {what} were taken ({remedy})"));
            }
        }
    }

    /// Whether it lacked processor time, and whose fault that is.
    fn cpu(&mut self, summary: &Summary, facts: HealthFacts) {
        let ClientFigures { thread_cpu_share, cpu_wait_share, .. } = facts.figures;
        if let Some(busiest) = thread_cpu_share.filter(|share| *share > BUSY_LIMIT) {
            let percent = busiest * 100.0;
            self.limited
                .push(format!("processor: one of its threads ran {percent:.0}% of the time"));
        }
        let throttled = facts.figures.cpu_throttled_share.filter(|share| *share > THROTTLED_LIMIT);
        if let Some(share) = throttled {
            let percent = share * 100.0;
            let cores = facts.figures.cpu_allowed;
            let allowed = cores.map_or_else(String::new, |n| format!(" (it allows {n:.2} cores)"));
            self.limited.push(format!(
                "processor: its control group held it back for {percent:.1}% of the time{allowed}"
            ));
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
mod tests;
