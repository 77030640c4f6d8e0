//! The readings of one server in order, and what grew between each two of them.
//!
//! A counter that falls means a restart: what lies between the two readings is then left out, time and
//! tokens alike, so that a rate is never negative and never too low for it. Where answers come from
//! several servers in turn, counters jump back and forth; no rate can be made of that, and it is refused.
//! Deliberately absent: asking, and the wall clock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::histogram::Histogram;
use super::reading::{Reading, Series, Stepped};
use super::rules::{Counter, Gauge, Latency, Rules, Stepping};
use crate::units::Nanos;

/// Spans kept: more than an hour of one a second.
const KEPT_SPANS: usize = 4_000;
/// Labels that tell replicas and models apart. A series of one that was not there before brings its past
/// with it.
const REPLICA_LABELS: [&str; 9] = [
    "engine",
    "model_name",
    "dp_rank",
    "instance",
    "pod",
    "node",
    "worker",
    "worker_id",
    "replica",
];
/// A fall to no less than this share of what was counted is none of a server that began again.
const SMALL_FALL: f64 = 0.5;
/// No server restarts and has done more work than before within this time.
const FLAPS_WITHIN: Nanos = Nanos::from_secs(60);

/// When a reading was taken: the middle between asking and the answer's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// On the clock's epoch.
    pub at: Nanos,
    /// The server read its counters at most so much earlier or later.
    pub half_width: Nanos,
}

impl Stamp {
    /// The middle of two instants.
    #[must_use]
    pub fn between(sent: Nanos, answered: Nanos) -> Self {
        let half_width = Nanos(answered.since(sent).0 / 2);
        Self { at: sent + half_width, half_width }
    }
}

/// What happened from one reading to the next.
#[derive(Clone, Debug)]
pub struct Span {
    /// The earlier reading.
    pub from: Stamp,
    /// The later one.
    pub to: Stamp,
    /// The server restarted, or one of its replicas did: nothing of this span counts.
    pub is_broken: bool,
    /// Growth of each counter.
    pub grown: BTreeMap<Counter, f64>,
    /// Growth of each histogram, over all series.
    pub latencies: BTreeMap<Latency, Histogram>,
    /// At the later reading.
    pub gauges: BTreeMap<Gauge, f64>,
    /// Growth of [`Reading::stepped`], with the error of both ends.
    pub stepped: Option<Stepped>,
}

/// Answers come from several servers in turn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the answers come from several servers in turn ({sign}): something balances load over them, and no \
     rate can be made of that\nhint: give the page of each server by its own --metrics URL"
)]
pub struct SeveralServers {
    /// By what it was seen.
    pub sign: &'static str,
}

/// A time at which counters fell.
#[derive(Clone, Copy, Debug)]
struct Fall {
    at: Nanos,
    /// All counters added up, just before.
    before: f64,
}

/// One server.
#[derive(Debug, Default)]
pub struct Track {
    last: Option<(Stamp, Reading)>,
    spans: VecDeque<Span>,
    fall: Option<Fall>,
    /// All counters added up, at the reading before the last.
    earlier: Option<f64>,
    restarts: u32,
}

impl Track {
    /// Takes the next reading; says whether it is of a restarted server.
    pub fn push(&mut self, stamp: Stamp, reading: Reading) -> Result<bool, SeveralServers> {
        let Some((from, before)) = self.last.take() else {
            self.last = Some((stamp, reading));
            return Ok(false);
        };
        let mut reading = reading;
        // A page that gives no time of start this once is of the process that was there.
        reading.started = reading.started.or(before.started);
        let earlier_start = before.started.zip(reading.started).is_some_and(|(was, is)| is < was);
        if earlier_start {
            return Err(SeveralServers { sign: "the time at which the process started goes back" });
        }
        let span = Span::between((from, &before), (stamp, &reading));
        let (was, is) = totals(&before, &reading);
        if is < was {
            // A restarted server begins at zero. One that is back where it was two readings ago was not
            // the one that answered in between, and one that went down a little did not begin again.
            let is_back = self.earlier.is_some_and(|earlier| earlier > 0.0 && is >= earlier);
            if is_back || is >= was * SMALL_FALL {
                return Err(SeveralServers { sign: "counters jump back and forth" });
            }
            self.fall = Some(Fall { at: stamp.at, before: was });
        } else if let Some(fall) = self.fall
            && is >= fall.before
        {
            if stamp.at.since(fall.at) <= FLAPS_WITHIN {
                return Err(SeveralServers { sign: "counters jump back and forth" });
            }
            self.fall = None;
        }
        self.earlier = Some(was);
        let restarted = span.is_broken;
        self.restarts += u32::from(restarted);
        if self.spans.len() == KEPT_SPANS {
            self.spans.pop_front();
        }
        self.spans.push_back(span);
        self.last = Some((stamp, reading));
        Ok(restarted)
    }

    /// By which rules the last page was read.
    #[must_use]
    pub fn rules(&self) -> Option<&'static Rules> {
        self.last.as_ref().map(|(_, reading)| reading.rules)
    }

    /// The last reading and when it was taken.
    #[must_use]
    pub fn last(&self) -> Option<(Stamp, &Reading)> {
        self.last.as_ref().map(|(stamp, reading)| (*stamp, reading))
    }

    /// Spans that end after `from` and not after `to`, in order: windows that follow each other share
    /// none and miss none.
    pub fn spans(&self, from: Nanos, to: Nanos) -> impl Iterator<Item = &Span> {
        self.spans.iter().filter(move |span| span.to.at > from && span.to.at <= to)
    }
}

/// All counters that both readings have, added up: they fall at a restart and only there. A replica that
/// came or went is not looked at, unless nothing else is there.
fn totals(before: &Reading, now: &Reading) -> (f64, f64) {
    let mut common = (0.0, 0.0);
    let mut has_common = false;
    for (counter, series) in &before.counters {
        let Some(later) = now.counters.get(counter) else { continue };
        for (was, is) in series.iter().filter_map(|(labels, was)| Some((was, later.get(labels)?))) {
            has_common = true;
            common = (common.0 + was, common.1 + is);
        }
    }
    if has_common {
        return common;
    }
    let all = |reading: &Reading| reading.counters.values().flat_map(BTreeMap::values).sum();
    (all(before), all(now))
}

impl Span {
    fn between((from, before): (Stamp, &Reading), (to, now): (Stamp, &Reading)) -> Self {
        let mut span = Self {
            from,
            to,
            is_broken: before.started.zip(now.started).is_some_and(|(was, is)| is > was),
            grown: BTreeMap::new(),
            latencies: BTreeMap::new(),
            gauges: now.gauges.clone(),
            stepped: None,
        };
        for (counter, series) in &now.counters {
            let earlier = before.counters.get(counter);
            match earlier.and_then(|earlier| {
                growth(earlier, series, |now, was| {
                    Some(now - was.unwrap_or(&0.0)).filter(|grown| *grown >= 0.0)
                })
            }) {
                Some(grown) => {
                    span.grown.insert(*counter, grown.into_iter().sum());
                }
                // A figure that was not there before has no growth; one that was fell.
                None => span.is_broken |= earlier.is_some(),
            }
        }
        let none = BTreeMap::new();
        let empty = Histogram::default();
        for (latency, series) in &now.latencies {
            let earlier = before.latencies.get(latency).unwrap_or(&none);
            match growth(earlier, series, |now, was| now.since(was.unwrap_or(&empty))) {
                Some(grown) => {
                    let mut all = Histogram::default();
                    for one in &grown {
                        all.add(one);
                    }
                    span.latencies.insert(*latency, all);
                }
                None => span.is_broken = true,
            }
        }
        span.stepped = span.stepped_since(before, now);
        span
    }

    /// Gaps grew by series, so that a replica that came in brings no past here either.
    fn stepped_since(&self, before: &Reading, now: &Reading) -> Option<Stepped> {
        if now.rules.stepping == Some(Stepping::TokenGaps) {
            let grown = |latency| self.latencies.get(&latency).map(|histogram| histogram.count);
            let tok = grown(Latency::Ttft)? + grown(Latency::Itl)?;
            return Some(Stepped { tok, error_tok: 0.0 });
        }
        let (was, is) = before.stepped.zip(now.stepped)?;
        Some(Stepped { tok: is.tok - was.tok, error_tok: was.error_tok + is.error_tok })
    }
}

/// The growth of each series; `None` where one fell or went away from a replica that is still there, or
/// none of the replicas is.
///
/// A new series of a replica that was there counts from zero, one of a new replica from the value that it
/// is first seen with. A replica that went away counts for nothing.
fn growth<T, G>(
    before: &BTreeMap<Series, T>,
    now: &BTreeMap<Series, T>,
    grow: impl Fn(&T, Option<&T>) -> Option<G>,
) -> Option<Vec<G>> {
    let replicas = |all: &BTreeMap<Series, T>| -> BTreeSet<Series> {
        all.keys().map(|series| replica(series).cloned().collect()).collect()
    };
    let (known, left) = (replicas(before), replicas(now));
    let is_of = |replicas: &BTreeSet<Series>, series: &Series| {
        replicas.contains(&replica(series).cloned().collect::<Series>())
    };
    if !known.is_empty() && known.is_disjoint(&left)
        || before.keys().any(|series| !now.contains_key(series) && is_of(&left, series))
    {
        return None;
    }
    now.iter()
        .map(|(series, value)| match before.get(series) {
            None if !known.is_empty() && !is_of(&known, series) => grow(value, Some(value)),
            was => grow(value, was),
        })
        .collect()
}

/// What tells a series' replica apart.
fn replica(series: &Series) -> impl Iterator<Item = &(String, String)> {
    series.iter().filter(|(label, _)| REPLICA_LABELS.contains(&label.as_str()))
}
