//! What a server has counted since its first reading, reading by reading.
//!
//! Growth is added up span by span, so that a restart costs the span around it and nothing else. Pure.

use super::rules::{Counter, Gauge};
use super::track::{Stamp, Track};
use crate::units::Nanos;

/// What one server, or several together, have counted up to a reading.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Count {
    /// When, from the run's start in seconds; below zero before it.
    pub at_s: f64,
    /// It was counted at most so much earlier or later.
    pub half_width_s: f64,
    /// Completion tokens.
    pub output_tok: f64,
    /// Prompt tokens; `None` where the page does not tell them.
    pub input_tok: Option<f64>,
    /// Requests that were answered whole.
    pub finished: Option<f64>,
    /// Requests in the batch, at this reading.
    pub running: Option<f64>,
    /// Requests that wait for a place, at this reading.
    pub waiting: Option<f64>,
    /// Spans that hold a restart: nothing of them counts.
    pub restarts: u32,
}

impl Count {
    /// Counts of another server at about the same time. A figure that one of them lacks is lacking.
    #[must_use]
    pub fn and(self, other: &Self) -> Self {
        let at_s = f64::midpoint(self.at_s, other.at_s);
        let off = |one: &Self| (one.at_s - at_s).abs() + one.half_width_s;
        Self {
            at_s,
            half_width_s: off(&self).max(off(other)),
            output_tok: self.output_tok + other.output_tok,
            input_tok: add(self.input_tok, other.input_tok),
            finished: add(self.finished, other.finished),
            running: add(self.running, other.running),
            waiting: add(self.waiting, other.waiting),
            restarts: self.restarts + other.restarts,
        }
    }
}

/// Adds up the readings of one server.
#[derive(Debug, Default)]
pub struct Counting {
    last: Option<Nanos>,
    count: Option<Count>,
}

impl Counting {
    /// The count at the last reading of `track`, which started at `t0` of its clock; `None` when there was
    /// no reading since the last time, or its page does not count completion tokens.
    pub fn up_to(&mut self, track: &Track, t0: Nanos) -> Option<Count> {
        let (stamp, reading) = track.last()?;
        if self.last == Some(stamp.at) {
            return None;
        }
        let has = |counter| reading.counters.contains_key(&counter);
        if !has(Counter::Generation) {
            return None;
        }
        let none_yet = |counter| has(counter).then_some(0.0);
        let mut count = self.count.unwrap_or_else(|| Count {
            input_tok: none_yet(Counter::Prompt),
            finished: none_yet(Counter::Finished),
            ..Count::default()
        });
        if let Some(from) = self.last {
            for span in track.spans(from, stamp.at) {
                let grown = |counter| span.grown.get(&counter).copied();
                if span.is_broken {
                    count.restarts += 1;
                    continue;
                }
                count.output_tok += grown(Counter::Generation).unwrap_or(0.0);
                count.input_tok = add(count.input_tok, grown(Counter::Prompt));
                count.finished = add(count.finished, grown(Counter::Finished));
            }
        }
        let gauge = |gauge| reading.gauges.get(&gauge).copied();
        (count.running, count.waiting) = (gauge(Gauge::Running), gauge(Gauge::Waiting));
        (count.at_s, count.half_width_s) = (offset_s(stamp, t0), stamp.half_width.as_secs_f64());
        (self.last, self.count) = (Some(stamp.at), Some(count));
        Some(count)
    }
}

fn add(sum: Option<f64>, grown: Option<f64>) -> Option<f64> {
    sum.zip(grown).map(|(sum, grown)| sum + grown)
}

/// A stamp in seconds from `t0`.
#[must_use]
pub fn offset_s(stamp: Stamp, t0: Nanos) -> f64 {
    stamp.at.since(t0).as_secs_f64() - t0.since(stamp.at).as_secs_f64()
}
