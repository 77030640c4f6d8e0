//! How well a fitted workload gives back the trace: both measured by the same code.

use super::super::Workload;
use super::{Sample, session_goodness};
use crate::trace::stats::{Shapes, Stats, TraceFigures};

/// Seeds of which the median counts, and rows over all of them.
const SEEDS: u64 = 5;
const ROWS_IN_ALL: usize = 2_000_000;
/// Beyond these a part does not fit, and it is said: distances of Kolmogorov and Smirnov, shares of blocks
/// that were seen before, and the quotient of two indices of dispersion.
pub(super) const DISTANCE_BOUND: f64 = 0.05;
const REUSE_BOUND: f64 = 0.03;
const DISPERSION_BOUND: f64 = 1.5;

/// A line or more for each part.
#[derive(Clone, Debug, Default)]
pub(super) struct Goodness {
    pub(super) arrival: Vec<String>,
    pub(super) input: Vec<String>,
    pub(super) output: Vec<String>,
    pub(super) sessions: Vec<String>,
    pub(super) prefix: Vec<String>,
    /// Of the prompts of all rows.
    pub(super) input_distance: Option<f64>,
    /// A line for each part beyond its bound.
    pub(super) warnings: Vec<String>,
}

impl Goodness {
    pub(super) fn lines(&self) -> Vec<String> {
        [&self.arrival, &self.input, &self.output, &self.sessions, &self.prefix]
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }

    /// A distance, and a warning where it is beyond the bound.
    pub(super) fn told(&mut self, name: &str, distance: f64, why: &str) -> String {
        let line = format!("{name}: Kolmogorov-Smirnov distance {distance:.4}");
        if distance > DISTANCE_BOUND {
            self.warnings.push(format!("{line} is above {DISTANCE_BOUND}: {why}"));
        }
        line
    }

    /// The share of blocks that were seen before, the same.
    pub(super) fn reuse(&mut self, (was, is): (f64, f64), why: &str) {
        self.prefix.push(format!("blocks seen before, without a limit: {was:.3} ÷ {is:.3}"));
        if (was - is).abs() > REUSE_BOUND {
            self.warnings.push(format!(
                "blocks seen before are {was:.3} of those recorded and {is:.3} of those generated, more than \
                 {REUSE_BOUND} apart: {why}"
            ));
        }
    }
}

/// Generates as much as was recorded, several times, and compares.
pub(super) fn measure(
    workload: &Workload,
    sample: &Sample,
    recorded: &TraceFigures,
    shapes: &Shapes,
) -> Goodness {
    let rows = sample.times.count();
    let seeds = SEEDS.min((ROWS_IN_ALL / rows.max(1)).max(1) as u64);
    let made: Vec<(TraceFigures, Shapes)> =
        (0..seeds).map(|seed| make(workload, seed, rows * 4)).collect();
    let mut goodness = Goodness::default();
    // Where sessions begin together there are no arrivals to be held against any.
    if !sample.times.begin_together() {
        arrivals(&mut goodness, recorded, &made);
    }
    if sample.turns.are_there() {
        session_goodness::measure(workload, sample, recorded, &mut goodness);
        return goodness;
    }
    let ks = |of: &dyn Fn(&Shapes) -> Option<f64>| {
        median(made.iter().filter_map(|own| of(&own.1)).collect())
    };
    goodness.input_distance = ks(&|own| shapes.input_tok.distance(&own.input_tok));
    let why = "too few rows, or values that a grid of hundredths cannot tell apart";
    if let Some(distance) = goodness.input_distance {
        let line = goodness.told("prompt tokens", distance, why);
        goodness.input.push(line);
    }
    if let Some(distance) = ks(&|own| shapes.output_tok.distance(&own.output_tok)) {
        let line = goodness.told("completion tokens", distance, why);
        goodness.output.push(line);
    }
    if let Some(shares) = both(recorded, &made, &|own| Some(own.reuse.as_ref()?.block_hit)) {
        goodness.reuse(shares, "the tree shares otherwise than this trace does");
    }
    goodness
}

type Made = [(TraceFigures, Shapes)];

/// A figure of what was recorded, and the median of those generated.
fn both(
    recorded: &TraceFigures,
    made: &Made,
    figure: &dyn Fn(&TraceFigures) -> Option<f64>,
) -> Option<(f64, f64)> {
    let generated = median(made.iter().filter_map(|own| figure(&own.0)).collect());
    figure(recorded).zip(generated)
}

fn arrivals(goodness: &mut Goodness, recorded: &TraceFigures, made: &Made) {
    let mut apart = Vec::new();
    for (place, scale) in recorded.arrivals.scales.iter().enumerate() {
        let idc = both(recorded, made, &|own| own.arrivals.scales.get(place)?.idc);
        let Some((was, is)) = idc else { continue };
        let window = scale.window_s;
        goodness.arrival.push(format!("index of dispersion at {window} s: {was:.2} ÷ {is:.2}"));
        if was.max(is) > was.min(is) * DISPERSION_BOUND {
            apart.push(format!("{was:.2} ÷ {is:.2} at {window} s"));
        }
    }
    if !apart.is_empty() {
        goodness.warnings.push(format!(
            "indices of dispersion are more than {DISPERSION_BOUND} times apart ({}): arrivals come out \
             more or less bursty than they were",
            apart.join(", ")
        ));
    }
    if let Some((was, is)) = both(recorded, made, &|own| own.arrivals.scales.last()?.peak_to_mean) {
        goodness.arrival.push(format!("peak ÷ mean of 60 s counts: {was:.2} ÷ {is:.2}"));
    }
    if let Some((was, is)) = both(recorded, made, &|own| own.arrivals.scales.first()?.empty) {
        goodness.arrival.push(format!("silent seconds: {was:.3} ÷ {is:.3}"));
    }
}

fn make(workload: &Workload, seed: u64, limit: usize) -> (TraceFigures, Shapes) {
    let mut stats = Stats::default();
    workload.rows(seed).take(limit).for_each(|row| stats.add(&row));
    stats.finish()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
