//! How well a fitted workload gives back the trace: both measured by the same code.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::super::Workload;
use super::Sample;
use super::sessions::{Parts, RecordedTurns};
use crate::trace::Request;
use crate::trace::stats::{Lengths, Shapes, Stats, TraceFigures};

/// Seeds of which the median counts, and rows over all of them.
const SEEDS: u64 = 5;
const ROWS_IN_ALL: usize = 2_000_000;
/// Beyond these a part does not fit, and it is said: distances of Kolmogorov and Smirnov, shares of blocks
/// that were seen before, and the quotient of two indices of dispersion.
pub(super) const DISTANCE_BOUND: f64 = 0.05;
const REUSE_BOUND: f64 = 0.03;
const DISPERSION_BOUND: f64 = 1.5;

/// Sessions that are generated at least, unless they have more rows than the limit, or samples are empty.
const LEAST_SESSIONS: usize = 4_000;
const SESSION_ROWS: usize = 2_000_000;
const LIMIT_SAMPLES: u64 = 2_000;

const INPUT: &str =
    "what turns add depends on the turn or the session in this trace; the model draws it anew";
const DRAWN: &str = "too few sessions, or values that a grid of hundredths cannot tell apart";
const TURNS: &str = "too few sessions, or longer ones than a workload can say (4095 turns)";

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
    pub(super) fn distance_line(&mut self, name: &str, distance: f64, why: &str) -> String {
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
        measure_sessions(workload, sample, recorded, &mut goodness);
        return goodness;
    }
    let ks = |of: &dyn Fn(&Shapes) -> Option<f64>| {
        median(made.iter().filter_map(|own| of(&own.1)).collect())
    };
    goodness.input_distance = ks(&|own| shapes.input_tok.distance(&own.input_tok));
    let why = "too few rows, or values that a grid of hundredths cannot tell apart";
    if let Some(distance) = goodness.input_distance {
        let line = goodness.distance_line("prompt tokens", distance, why);
        goodness.input.push(line);
    }
    if let Some(distance) = ks(&|own| shapes.output_tok.distance(&own.output_tok)) {
        let line = goodness.distance_line("completion tokens", distance, why);
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

/// Generates sessions and compares them with the recorded ones. They are long and few, so one sample of them
/// scatters more than the model is wrong: samples are generated until there are enough sessions, and taken
/// together.
fn measure_sessions(
    workload: &Workload,
    sample: &Sample,
    recorded: &TraceFigures,
    goodness: &mut Goodness,
) {
    let was = Parts::of(sample.turns.stretches());
    let (mut is, mut repeats) = (Parts::default(), Repeats::new(sample.blocks.block_tok()));
    for seed in 0..LIMIT_SAMPLES {
        if is.stretches >= LEAST_SESSIONS || is.rows >= SESSION_ROWS {
            break;
        }
        let mut turns = RecordedTurns::default();
        for row in workload.rows(seed).take(SESSION_ROWS) {
            turns.add(&row);
            repeats.add(&row);
        }
        repeats.forget();
        is.add(turns.stretches());
    }
    let distance = |of: &dyn Fn(&Parts) -> &Lengths| of(&was).distance(of(&is));
    goodness.input_distance = distance(&|own| &own.input_tok);
    let parts = [
        ("prompt tokens of all turns", goodness.input_distance, INPUT),
        ("prompt tokens of first turns", distance(&|own| &own.first_tok), DRAWN),
        ("completion tokens", distance(&|own| &own.output_tok), DRAWN),
        ("turns of a session", distance(&|own| &own.turns), TURNS),
        ("tokens that a turn adds", distance(&|own| &own.new_tok), DRAWN),
        ("pauses", distance(&|own| &own.think_ms), DRAWN),
    ];
    for (name, distance, why) in parts {
        let Some(distance) = distance else { continue };
        let line = goodness.distance_line(name, distance, why);
        goodness.sessions.push(line);
    }
    let mean = |own: &Parts| own.rows as f64 / own.stretches.max(1) as f64;
    let (was_mean, is_mean) = (mean(&was), mean(&is));
    goodness.sessions.push(format!("turns of a session, mean: {was_mean:.2} ÷ {is_mean:.2}"));
    if let Some((was, is)) = recorded.reuse.as_ref().map(|own| own.block_hit).zip(repeats.share()) {
        let why =
            "a model's turn repeats the one before whole, and all sessions share one system prompt";
        goodness.reuse((was, is), why);
    }
}

/// How many blocks of generated rows an earlier row said: the turn before, or the system prompt.
#[derive(Debug)]
struct Repeats {
    block_tok: Option<u32>,
    /// Blocks of the last turn, by session.
    last: HashMap<Arc<str>, usize>,
    /// First blocks of system prompts that were said.
    systems: HashSet<u64>,
    blocks: u64,
    hits: u64,
}

impl Repeats {
    fn new(block_tok: Option<u32>) -> Self {
        let (last, systems) = (HashMap::new(), HashSet::new());
        Self { block_tok, last, systems, blocks: 0, hits: 0 }
    }

    fn add(&mut self, row: &Request) {
        let Some(block_tok) = self.block_tok else { return };
        let all = (row.input_tok / block_tok) as usize;
        let system = row.prefix.as_ref().map_or(&[][..], |own| &own.blocks[..]);
        let is_known = system.first().is_some_and(|first| !self.systems.insert(*first));
        let mut seen = if is_known { system.len() } else { 0 };
        if let Some(session) = &row.session {
            let before = self.last.insert(Arc::clone(session), all);
            seen = seen.max(before.unwrap_or(0));
        }
        self.blocks += all as u64;
        self.hits += seen.min(all) as u64;
    }

    /// The next row begins a sample of its own.
    fn forget(&mut self) {
        self.last.clear();
        self.systems.clear();
    }

    fn share(&self) -> Option<f64> {
        (self.blocks > 0).then(|| self.hits as f64 / self.blocks as f64)
    }
}
