//! How well a fitted workload gives back the trace: both measured by the same code.

use super::super::Workload;
use super::Sample;
use crate::trace::stats::{Shapes, Stats, TraceFigures};

/// Seeds of which the median counts, and rows over all of them.
const SEEDS: u64 = 5;
const ROWS_IN_ALL: usize = 2_000_000;

/// A line or more for each part.
#[derive(Clone, Debug, Default)]
pub(super) struct Goodness {
    pub(super) arrival: Vec<String>,
    pub(super) input: Vec<String>,
    pub(super) output: Vec<String>,
    pub(super) sessions: Vec<String>,
    pub(super) prefix: Vec<String>,
}

impl Goodness {
    pub(super) fn lines(&self) -> Vec<String> {
        [&self.arrival, &self.input, &self.output, &self.sessions, &self.prefix]
            .into_iter()
            .flatten()
            .cloned()
            .collect()
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
    let of = |figure: &dyn Fn(&TraceFigures) -> Option<f64>| {
        let generated = median(made.iter().filter_map(|own| figure(&own.0)).collect());
        figure(recorded).zip(generated)
    };
    for (place, scale) in recorded.arrivals.scales.iter().enumerate() {
        if let Some((was, is)) = of(&|own| own.arrivals.scales.get(place)?.idc) {
            let window = scale.window_s;
            goodness.arrival.push(format!("index of dispersion at {window} s: {was:.2} ÷ {is:.2}"));
        }
    }
    if let Some((was, is)) = of(&|own| own.arrivals.scales.last()?.peak_to_mean) {
        goodness.arrival.push(format!("peak ÷ mean of 60 s counts: {was:.2} ÷ {is:.2}"));
    }
    if let Some((was, is)) = of(&|own| own.arrivals.scales.first()?.empty) {
        goodness.arrival.push(format!("silent seconds: {was:.3} ÷ {is:.3}"));
    }
    let ks = |of: &dyn Fn(&Shapes) -> Option<f64>| {
        median(made.iter().filter_map(|own| of(&own.1)).collect())
    };
    if let Some(ks) = ks(&|own| shapes.input_tok.distance(&own.input_tok)) {
        goodness.input.push(format!("prompt tokens: Kolmogorov-Smirnov distance {ks:.4}"));
    }
    if let Some(ks) = ks(&|own| shapes.output_tok.distance(&own.output_tok)) {
        goodness.output.push(format!("completion tokens: Kolmogorov-Smirnov distance {ks:.4}"));
    }
    if let Some((was, is)) = of(&|own| own.sessions.as_ref().map(|own| own.turns_mean))
        .filter(|_| sample.turns.are_there())
    {
        goodness.sessions.push(format!("turns of a session, mean: {was:.2} ÷ {is:.2}"));
    }
    if let Some((was, is)) = of(&|own| own.reuse.as_ref().map(|own| own.block_hit)) {
        goodness.prefix.push(format!("blocks seen before, without a limit: {was:.3} ÷ {is:.3}"));
    }
    goodness
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
