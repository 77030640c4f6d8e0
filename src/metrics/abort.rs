//! When to stop sending: too many errors in a while, or too many refused connections in a row. A dying
//! server must not burn a data set in seconds.
//!
//! The error rate is that of requests that *ended* in the last so-much time, judged whenever one ends,
//! and not before the run has lasted so long. Time is kept in [`SLICES`] parts of the span, so memory
//! is bounded and the span exact to that. Deliberately absent: a clock, and the stopping itself.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use crate::record::{Outcome, StreamRecord};
use crate::units::Nanos;

/// Parts that a rule's span is kept in.
pub const SLICES: u64 = 1_000;

/// `error_rate>5%/30s`: stop when more than that share of the requests that ended in that time failed.
#[derive(Clone, Debug, PartialEq)]
pub struct AbortRule {
    /// As it was typed.
    text: String,
    /// Share of one.
    share: f64,
    span: Nanos,
}

/// A rule that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no rule to stop by\nhint: write it as error_rate>5%/30s")]
pub struct AbortRuleError(String);

/// As it was typed.
impl fmt::Display for AbortRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

crate::units::serialize_as_text!(AbortRule);

impl FromStr for AbortRule {
    type Err = AbortRuleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (rate, span) = text.split_once('/')?;
            let (metric, limit) = rate.split_once('>')?;
            let percent: f64 = limit.trim().strip_suffix('%')?.trim_end().parse().ok()?;
            let span = Nanos::parse_duration(span.trim()).ok()?;
            let fits = metric.trim() == "error_rate"
                && (0.0..100.0).contains(&percent)
                && span > Nanos::ZERO;
            fits.then(|| Self { text: text.to_owned(), share: percent / 100.0, span })
        };
        parse().ok_or_else(|| AbortRuleError(text.to_owned()))
    }
}

/// Why sending stops.
#[derive(Clone, Debug, PartialEq)]
pub enum AbortReason {
    /// A rule was broken.
    ErrorRate {
        /// The rule, as it was typed.
        rule: String,
        /// Requests that ended in its span.
        ended: u64,
        /// Of them, how many failed.
        failed: u64,
    },
    /// No connection could be made, so many times in a row.
    Refused(u64),
}

impl fmt::Display for AbortReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ErrorRate { rule, ended, failed } => {
                write!(f, "--abort-on '{rule}': {failed} of the {ended} last requests failed")
            }
            Self::Refused(n) => {
                write!(f, "--max-refused {n}: so many connections in a row could not be made")
            }
        }
    }
}

/// Watches a run for reasons to stop it.
#[derive(Debug, Default)]
pub struct AbortWatch {
    windows: Vec<Sliding>,
    /// 0: never.
    max_refused: u64,
    refused: u64,
    now: Nanos,
}

/// What ended in the last span of a rule.
#[derive(Debug)]
struct Sliding {
    rule: AbortRule,
    /// Number of the slice, ended, failed.
    slices: VecDeque<(u64, u64, u64)>,
    ended: u64,
    failed: u64,
}

impl AbortWatch {
    /// Watches for any of the rules, and for `max_refused` connections in a row that cannot be made.
    #[must_use]
    pub fn new(rules: &[AbortRule], max_refused: u64) -> Self {
        let sliding = |rule: &AbortRule| Sliding {
            rule: rule.clone(),
            slices: VecDeque::new(),
            ended: 0,
            failed: 0,
        };
        Self { windows: rules.iter().map(sliding).collect(), max_refused, ..Self::default() }
    }

    /// Takes a request as it ends.
    pub fn ended(&mut self, record: &StreamRecord) -> Option<AbortReason> {
        // Several workers' records may come a little out of order.
        self.now = self.now.max(record.close.or(record.sent).unwrap_or(record.due));
        let refused = record.outcome == Outcome::Connect && record.conn_reused.is_none();
        if refused {
            self.refused += 1;
        } else if record.conn_reused.is_some() {
            self.refused = 0;
        }
        if self.max_refused > 0 && self.refused >= self.max_refused {
            return Some(AbortReason::Refused(self.max_refused));
        }
        let (now, failed) = (self.now, record.outcome.is_error());
        self.windows.iter_mut().find_map(|window| window.ended(now, failed))
    }
}

impl Sliding {
    fn ended(&mut self, now: Nanos, failed: bool) -> Option<AbortReason> {
        let length = (self.rule.span.0 / SLICES).max(1);
        let slice = now.0 / length;
        let failures = u64::from(failed);
        match self.slices.back_mut() {
            Some(last) if last.0 == slice => {
                last.1 += 1;
                last.2 += failures;
            }
            _ => self.slices.push_back((slice, 1, failures)),
        }
        self.ended += 1;
        self.failed += failures;
        let first = slice.saturating_sub(self.rule.span.0 / length);
        while let Some((_, ended, failed)) = self.slices.front().filter(|(at, _, _)| *at < first) {
            self.ended -= ended;
            self.failed -= failed;
            self.slices.pop_front();
        }
        let over = self.failed as f64 > self.rule.share * self.ended as f64;
        (now >= self.rule.span && over).then(|| AbortReason::ErrorRate {
            rule: self.rule.text.clone(),
            ended: self.ended,
            failed: self.failed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(at_ms: u64, outcome: Outcome) -> StreamRecord {
        StreamRecord {
            close: Some(Nanos::from_millis(at_ms)),
            conn_reused: (outcome != Outcome::Connect).then_some(true),
            outcome,
            ..StreamRecord::default()
        }
    }

    fn rule(text: &str) -> AbortRule {
        text.parse().expect(text)
    }

    #[test]
    fn rules_read_as_they_are_documented() {
        let parsed = rule("error_rate>5%/30s");
        assert_eq!((parsed.share, parsed.span), (0.05, Nanos::from_secs(30)));
        assert_eq!(rule(" error_rate > 0.5% / 1m30s").span, Nanos::from_secs(90));
        for text in [
            "",
            "error_rate>5%",
            "error_rate<5%/3s",
            "errors>5%/3s",
            "error_rate>5/3s",
            "error_rate>100%/3s",
            "error_rate>5%/0s",
            "error_rate>NaN%/3s",
        ] {
            let error = text.parse::<AbortRule>().expect_err(text).to_string();
            assert!(error.contains("hint: "), "{error}");
        }
    }

    #[test]
    fn errors_count_over_the_last_span_alone() {
        let mut watch = AbortWatch::new(&[rule("error_rate>10%/10s")], 0);
        // A fifth of the first five seconds fails: not judged before ten seconds have passed.
        for i in 0..50 {
            let outcome = if i % 5 == 0 { Outcome::Http(500) } else { Outcome::Ok };
            assert_eq!(watch.ended(&ended(i * 100, outcome)), None, "{i}");
        }
        for i in 50..300 {
            assert_eq!(watch.ended(&ended(i * 100, Outcome::Ok)), None, "{i}");
        }
        // Ten of the last hundred are not more than a tenth, eleven are.
        for i in 300..310 {
            assert_eq!(watch.ended(&ended(i * 100, Outcome::Truncated)), None, "{i}");
        }
        let reason = watch.ended(&ended(31_000, Outcome::Truncated)).expect("too many");
        assert_eq!(
            reason.to_string(),
            "--abort-on 'error_rate>10%/10s': 11 of the 101 last requests failed"
        );
    }

    #[test]
    fn what_we_cut_is_no_error_and_the_memory_is_bounded() {
        let mut watch = AbortWatch::new(&[rule("error_rate>0%/1s")], 0);
        for i in 0..200_000 {
            assert_eq!(watch.ended(&ended(i, Outcome::Incomplete)), None);
        }
        assert!(watch.windows[0].slices.len() as u64 <= SLICES + 1);
        assert!(watch.ended(&ended(200_000, Outcome::Timeout)).is_some());
    }

    #[test]
    fn refusals_in_a_row_end_with_any_connection() {
        let mut watch = AbortWatch::new(&[], 3);
        let mut is_over = |outcome| watch.ended(&ended(0, outcome)).is_some();
        assert!(!is_over(Outcome::Connect) && !is_over(Outcome::Connect));
        assert!(!is_over(Outcome::Http(500)), "it is there");
        assert!(
            !is_over(Outcome::Connect) && !is_over(Outcome::Connect) && is_over(Outcome::Connect)
        );
        let mut never = AbortWatch::new(&[], 0);
        assert!((0..1_000).all(|_| never.ended(&ended(0, Outcome::Connect)).is_none()));
    }
}
