//! Sessions: how they begin, what each turn adds to the prompt, how many turns there are, and the pauses.
//!
//! A model's session only grows. So a recorded one is cut where its prompt falls back, by compaction or
//! because a branch begins, and what follows is a session of its own; here they are called stretches. A
//! row without a session is a stretch of one turn. The same code looks at what was recorded and at what is
//! generated, so that both can be held against each other. Deliberately absent: kinds of pause, which rows
//! do not tell; one distribution holds them all.

use std::collections::HashMap;
use std::sync::Arc;

use crate::trace::Request;
use crate::trace::stats::Lengths;
use crate::units::NS_PER_MS;

/// The most rows of which turns are held.
const LIMIT_ROWS: usize = 20_000_000;
/// A prompt below this share of the one before is no growth of it.
const FALLS_BACK: f64 = 0.9;

/// A turn, as far as a fit needs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordedTurn {
    pub(super) input_tok: u32,
    /// Absent where no length was asked for.
    pub(super) output_tok: Option<u32>,
    /// Absent for the first turn, and where the pause was not recorded.
    pub(super) think_ms: Option<u32>,
}

/// Turns of which each says what the one before said, and more.
pub(super) type Stretch = Vec<RecordedTurn>;

/// The turns of a trace.
#[derive(Debug, Default)]
pub(super) struct RecordedTurns {
    stretches: Vec<Stretch>,
    /// The stretch that each session is in.
    open: HashMap<Arc<str>, usize>,
    rows: usize,
    later: u64,
    thinks: u64,
    falls: u64,
    is_full: bool,
}

impl RecordedTurns {
    /// Takes a row, and tells whether a stretch begins with it.
    pub(super) fn add(&mut self, row: &Request) -> bool {
        if self.rows >= LIMIT_ROWS {
            self.is_full = true;
            return row.think.is_none();
        }
        self.rows += 1;
        let place = row.session.as_ref().and_then(|name| self.open.get(name)).copied();
        let before = place.and_then(|place| self.stretches.get_mut(place));
        let think = row.think.map(|own| u32::try_from(own.0 / NS_PER_MS).unwrap_or(u32::MAX));
        let (input_tok, output_tok) = (row.input_tok.max(1), row.output_tok);
        let falls = |own: &Stretch| {
            let last = own.last().map_or(0, |turn| turn.input_tok);
            f64::from(input_tok) < f64::from(last) * FALLS_BACK
        };
        match before {
            Some(stretch) if !falls(stretch) => {
                stretch.push(RecordedTurn { input_tok, output_tok, think_ms: think });
                self.later += 1;
                self.thinks += u64::from(think.is_some());
                false
            }
            other => {
                self.falls += u64::from(other.is_some());
                if let Some(session) = &row.session {
                    self.open.insert(Arc::clone(session), self.stretches.len());
                }
                self.stretches.push(vec![RecordedTurn { input_tok, output_tok, think_ms: None }]);
                true
            }
        }
    }

    /// Whether turns follow one another with pauses.
    pub(super) fn are_there(&self) -> bool {
        self.later > 0 && self.thinks > 0
    }

    /// All of them, in the order in which they begin.
    pub(super) fn stretches(&self) -> &[Stretch] {
        &self.stretches
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.is_full {
            warnings.push(format!("only the first {LIMIT_ROWS} rows were looked at for sessions"));
        }
        if self.are_there() && self.falls > 0 {
            warnings.push(format!(
                "{} later turns say less than nine tenths of the turn before (compaction, or a branch): the \
                 model's sessions only grow, so what follows is fitted as a session of its own",
                self.falls
            ));
        }
        if self.are_there() && self.stretches.len() < 50 {
            warnings.push(format!(
                "{} sessions are few: another sample of the same traffic may look different",
                self.stretches.len()
            ));
        }
        if !self.are_there() && self.later > 0 {
            warnings.push(
                "sessions without pauses are not carried: their rows are fitted one by one"
                    .to_owned(),
            );
        }
        warnings
    }
}

/// What sessions are like, part by part; several samples add up.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// Prompts of all turns.
    pub(super) input_tok: Lengths,
    pub(super) output_tok: Lengths,
    /// Prompts of first turns.
    pub(super) first_tok: Lengths,
    /// What a later turn adds to the prompt.
    pub(super) new_tok: Lengths,
    /// Turns of a stretch.
    pub(super) turns: Lengths,
    /// Milliseconds.
    pub(super) think_ms: Lengths,
    pub(super) stretches: usize,
    pub(super) rows: usize,
}

impl Parts {
    pub(super) fn of<'a>(stretches: impl IntoIterator<Item = &'a Stretch>) -> Self {
        let mut parts = Self::default();
        parts.add(stretches);
        parts
    }

    pub(super) fn add<'a>(&mut self, stretches: impl IntoIterator<Item = &'a Stretch>) {
        for stretch in stretches {
            self.stretches += 1;
            self.rows += stretch.len();
            self.turns.add(u32::try_from(stretch.len()).unwrap_or(u32::MAX));
            for (place, turn) in stretch.iter().enumerate() {
                self.input_tok.add(turn.input_tok);
                if let Some(output_tok) = turn.output_tok {
                    self.output_tok.add(output_tok);
                }
                if let Some(think_ms) = turn.think_ms {
                    self.think_ms.add(think_ms);
                }
                match place.checked_sub(1).map(|before| stretch[before].input_tok) {
                    None => self.first_tok.add(turn.input_tok),
                    // A turn that says no more is one that adds the least a model's turn can add.
                    Some(before) => {
                        self.new_tok.add(turn.input_tok.saturating_sub(before).max(1));
                    }
                }
            }
        }
    }
}

/// The sessions in `by_turns` groups by their number of turns, each in `by_first` by their first prompt,
/// with about as many rows in each: what goes together in a session is in one group.
pub(super) fn grouped(
    stretches: &[Stretch],
    by_turns: usize,
    by_first: usize,
) -> Vec<Vec<Stretch>> {
    let all: Vec<&Stretch> = stretches.iter().collect();
    let halves = cut(all, by_turns, Vec::len)
        .into_iter()
        .flat_map(|group| cut(group, by_first, |own| own[0].input_tok));
    halves.map(|group| group.into_iter().cloned().collect()).collect()
}

/// In order of `key`, in at most `parts` of about as many rows each.
fn cut<K: Ord>(
    mut stretches: Vec<&Stretch>,
    parts: usize,
    key: impl Fn(&Stretch) -> K,
) -> Vec<Vec<&Stretch>> {
    stretches.sort_by_key(|own| key(own));
    let rows: usize = stretches.iter().map(|own| own.len()).sum();
    let mut groups: Vec<Vec<&Stretch>> = vec![Vec::new(); parts];
    let mut before = 0;
    for stretch in stretches {
        groups[(before * parts / rows.max(1)).min(parts - 1)].push(stretch);
        before += stretch.len();
    }
    groups.retain(|group| !group.is_empty());
    groups
}
