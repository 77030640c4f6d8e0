//! How well fitted sessions give back the recorded ones, part by part.
//!
//! Sessions are long and few, so one sample of them scatters more than the model is wrong. So samples are
//! generated until there are enough sessions, and taken together.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::super::Workload;
use super::Sample;
use super::goodness::Goodness;
use super::sessions::{Parts, Turns};
use crate::trace::Request;
use crate::trace::stats::{Lengths, TraceFigures};

/// Sessions that are generated at least, unless they have more rows than the limit, or samples are empty.
const SESSIONS: usize = 4_000;
const LIMIT_ROWS: usize = 2_000_000;
const LIMIT_SAMPLES: u64 = 2_000;

/// Generates sessions and compares them with the recorded ones.
pub(super) fn measure(
    workload: &Workload,
    sample: &Sample,
    recorded: &TraceFigures,
    goodness: &mut Goodness,
) {
    let was = Parts::of(sample.turns.stretches());
    let (mut is, mut repeats) = (Parts::default(), Repeats::new(sample.blocks.block_tok()));
    for seed in 0..LIMIT_SAMPLES {
        if is.stretches >= SESSIONS || is.rows >= LIMIT_ROWS {
            break;
        }
        let mut turns = Turns::default();
        for row in workload.rows(seed).take(LIMIT_ROWS) {
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
        let line = goodness.told(name, distance, why);
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

const INPUT: &str =
    "what turns add depends on the turn or the session in this trace; the model draws it anew";
const DRAWN: &str = "too few sessions, or values that a grid of hundredths cannot tell apart";
const TURNS: &str = "too few sessions, or longer ones than a workload can say (4095 turns)";

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
