//! Sessions: turns, what each adds to the prompt, and the pauses.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::text::{distribution, grid};
use crate::trace::Request;
use crate::units::NS_PER_MS;

/// The most sessions that are followed.
const LIMIT_SESSIONS: usize = 5_000_000;

/// The turns of a trace, where later ones name a pause.
#[derive(Debug, Default)]
pub(super) struct Turns {
    open: HashMap<Arc<str>, (u32, u32)>,
    first_input: BTreeMap<u32, u64>,
    new: BTreeMap<u32, u64>,
    /// Milliseconds.
    think: BTreeMap<u32, u64>,
    /// Later turns that say less than the turn before.
    shorter: u64,
    is_full: bool,
}

impl Turns {
    pub(super) fn add(&mut self, row: &Request) {
        let Some(session) = &row.session else { return };
        let before = self.open.get(session).copied();
        if before.is_none() && self.open.len() >= LIMIT_SESSIONS {
            self.is_full = true;
            return;
        }
        let turns = before.map_or(0, |(turns, _)| turns) + 1;
        self.open.insert(Arc::clone(session), (turns, row.input_tok));
        match before {
            None => *self.first_input.entry(row.input_tok.max(1)).or_default() += 1,
            Some((_, input_tok)) if row.input_tok > input_tok => {
                *self.new.entry(row.input_tok - input_tok).or_default() += 1;
            }
            Some(_) => self.shorter += 1,
        }
        if let (Some(_), Some(think)) = (before, row.think) {
            let think_ms = u32::try_from(think.0 / NS_PER_MS).unwrap_or(u32::MAX);
            *self.think.entry(think_ms).or_default() += 1;
        }
    }

    /// Whether turns follow one another with pauses.
    pub(super) fn are_there(&self) -> bool {
        !self.think.is_empty() && !self.new.is_empty()
    }

    /// The prompts of first turns.
    pub(super) fn first_input(&self) -> Vec<(u32, u64)> {
        list(&self.first_input)
    }

    fn lengths(&self) -> BTreeMap<u32, u64> {
        let mut turns = BTreeMap::new();
        for (count, _) in self.open.values() {
            *turns.entry((*count).min(4_095)).or_default() += 1;
        }
        turns
    }

    /// `[sessions]`; empty where there are none.
    pub(super) fn text(&self) -> String {
        if !self.are_there() {
            return String::new();
        }
        let think: Vec<(f64, f64)> =
            grid(&list(&self.think)).into_iter().map(|(q, ms)| (q, ms / 1_000.0)).collect();
        format!(
            "[sessions]\nanswers = false   # what is new holds the answer before it\n\n\
             [sessions.turns]\n{}\n[sessions.new]\n{}\n[[sessions.think]]\n{}",
            distribution("turns", &grid(&list(&self.lengths()))),
            distribution("tokens", &grid(&list(&self.new))),
            distribution("seconds", &think),
        )
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.is_full {
            warnings.push(format!("only the first {LIMIT_SESSIONS} sessions were looked at"));
        }
        if self.are_there() && self.shorter > 0 {
            warnings.push(format!(
                "{} later turns are no longer than the turn before (compaction, or a branch): the model's \
                 sessions only grow, so their prompts may come out longer",
                self.shorter
            ));
        }
        if !self.are_there()
            && self.open.len() > 1
            && self.open.values().any(|(turns, _)| *turns > 1)
        {
            warnings.push(
                "sessions without pauses are not carried: their rows are fitted one by one"
                    .to_owned(),
            );
        }
        warnings
    }
}

fn list(counts: &BTreeMap<u32, u64>) -> Vec<(u32, u64)> {
    counts.iter().map(|(value, count)| (*value, *count)).collect()
}
