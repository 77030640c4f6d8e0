//! Sessions: turns that follow one another, each with all that was said before in its prompt.
//!
//! The prompt of a later turn is the one before, the answer to it (unless `answers = false`), and what
//! is new. A session ends after its turns, or where the next prompt would be beyond its context.
//! Deliberately absent: compaction, after which a session is another one here.

use super::WorkloadError;
use super::distribution::{Distribution, SECONDS, TOKENS, TURNS};
use super::draw::{Draw, Draws, Purpose};
use super::keys::Keys;
use crate::units::{NS_PER_S, Nanos};

/// The most kinds of pause.
const LIMIT_KINDS: usize = 64;

/// How sessions go on.
#[derive(Clone, Debug)]
pub(super) struct Sessions {
    turns: Distribution,
    new: Distribution,
    context: Option<Distribution>,
    keeps_answers: bool,
    think: Vec<Think>,
}

/// A kind of pause, with its share.
#[derive(Clone, Debug)]
struct Think {
    share: f64,
    span: Distribution,
}

/// How one session goes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct SessionPlan {
    /// Its number among all of its stream.
    pub(super) number: u64,
    turns: u64,
    context_tok: u64,
}

impl Sessions {
    /// Reads `[sessions]`.
    pub(super) fn read(mut keys: Keys<'_>) -> Result<Self, WorkloadError> {
        let turns = keys.section("turns", "add a distribution of turns in a session")?;
        let new = keys.section("new", "add a distribution of tokens that a later turn adds")?;
        let context = keys.section_if_any("context")?;
        let keeps_answers = keys.get("answers").map_or(Ok(true), |field| field.truth())?;
        let think = keys.need("think", "add [[sessions.think]] with a distribution of seconds")?;
        let kinds = keys.sections("think")?;
        if kinds.is_empty() || kinds.len() > LIMIT_KINDS {
            return Err(
                think.fail(format!("has {} kinds; 1 to {LIMIT_KINDS} make sense", kinds.len()))
            );
        }
        keys.finish()?;
        let think: Result<Vec<Think>, WorkloadError> = kinds.into_iter().map(Think::read).collect();
        let mut think = think?;
        let total: f64 = think.iter().map(|kind| kind.share).sum();
        for kind in &mut think {
            kind.share /= total;
        }
        Ok(Self {
            turns: Distribution::read(turns, TURNS)?,
            new: Distribution::read(new, TOKENS)?,
            context: context.map(|keys| Distribution::read(keys, TOKENS)).transpose()?,
            keeps_answers,
            think,
        })
    }

    /// Whether the history grows by the answers, whose lengths then have to be known.
    pub(super) fn keeps_answers(&self) -> bool {
        self.keeps_answers
    }

    /// How session `number` goes on.
    pub(super) fn plan(&self, number: u64, draws: &mut Draws) -> SessionPlan {
        let mut draw = draws.of(Purpose::Session, number);
        let turns = self.turns.whole_at(draw.uniform());
        let limit = draw.uniform();
        let context = self.context.as_ref().map(|context| context.whole_at(limit));
        SessionPlan { number, turns, context_tok: context.unwrap_or(u64::from(u32::MAX)) }
    }

    /// The prompt length of `turn` and the probability it was drawn at, after one of `input_tok` that
    /// was answered with `output_tok`, where that is known; `None` where the session has ended.
    pub(super) fn next_input(
        &self,
        plan: SessionPlan,
        turn: u32,
        (input_tok, output_tok): (u32, Option<u32>),
        draws: &mut Draws,
    ) -> Option<(u32, f64)> {
        if u64::from(turn) > plan.turns {
            return None;
        }
        let u = draws.of(Purpose::TurnInput, plan.index(turn)).uniform();
        let answer = output_tok.filter(|_| self.keeps_answers).map_or(0, u64::from);
        let length = u64::from(input_tok) + answer + self.new.whole_at(u);
        (length <= plan.context_tok).then(|| u32::try_from(length).ok()).flatten().zip(Some(u))
    }

    /// The pause before `turn`.
    pub(super) fn think(&self, plan: SessionPlan, turn: u32, draws: &mut Draws) -> Nanos {
        let mut draw = draws.of(Purpose::Think, plan.index(turn));
        let kind = pick(&mut draw, self.think.iter().map(|kind| kind.share));
        let seconds = self.think[kind].span.at(draw.uniform());
        Nanos(super::distribution::whole(seconds * NS_PER_S as f64))
    }
}

impl SessionPlan {
    /// Where the draws of a turn stand.
    pub(super) fn index(self, turn: u32) -> u64 {
        (self.number << 12) | u64::from(turn)
    }
}

impl Think {
    fn read(mut keys: Keys<'_>) -> Result<Self, WorkloadError> {
        // A name for the reader of the file.
        keys.get("kind").map(|field| field.text()).transpose()?;
        let share = keys.get("share").map(|field| field.number_in(1e-9, 1e9)).transpose()?;
        Ok(Self { share: share.unwrap_or(1.0), span: Distribution::read(keys, SECONDS)? })
    }
}

/// The place of a share that one uniform number falls into; the shares make up 1.
pub(super) fn pick(draw: &mut Draw<'_>, shares: impl Iterator<Item = f64>) -> usize {
    let u = draw.uniform();
    let mut sum = 0.0;
    let mut last = 0;
    for (place, share) in shares.enumerate() {
        sum += share;
        if u < sum {
            return place;
        }
        last = place;
    }
    last
}
