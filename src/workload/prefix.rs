//! How prompts begin: with a shared system prompt, and with what earlier prompts said.
//!
//! Both are ids of blocks, equal ids being equal text. A system prompt is a chain of blocks that many
//! rows begin with. The block tree makes a wanted share of all blocks ones that were seen before: each
//! row draws how much of it that is (`u^(1/reuse − 1)`, whose mean is `reuse` and which spreads from
//! almost nothing to almost all, as real requests do), takes so many blocks from the start of an earlier
//! row, and goes on with new ones. How far back that row is counts in rows, so that the blocks do not
//! change with the rate. Deliberately absent: a cache; the reuse is that of one without a limit.

use std::collections::VecDeque;
use std::sync::Arc;

use super::WorkloadError;
use super::distribution::{Distribution, REQUESTS, whole};
use super::draw::{Draws, Purpose};
use super::keys::Keys;
use super::session::pick;
use crate::trace::Prefix;

/// The most system prompts.
const LIMIT_SHARED: usize = 10_000;
/// The most tokens of one.
const LIMIT_SHARED_TOK: u64 = 1_000_000;
/// Earlier rows that are remembered, and the blocks of all of them.
const LIMIT_ROWS: usize = 1 << 17;
const LIMIT_BLOCKS: usize = 1 << 24;
/// Earlier rows that are looked at for one that is long enough.
const TRIES: usize = 256;
/// How much of what is owed to the wanted reuse a row makes up for.
const GAIN: f64 = 0.02;

/// How prompts begin.
#[derive(Clone, Debug)]
pub(super) struct Prefixes {
    block_tok: u32,
    shared: Vec<Shared>,
    tree: Option<Tree>,
}

/// A system prompt.
#[derive(Clone, Debug)]
struct Shared {
    share: f64,
    blocks: Arc<[u64]>,
}

#[derive(Clone, Debug)]
struct Tree {
    reuse: f64,
    age: Distribution,
}

impl Prefixes {
    /// Reads `[prefix]`; ids from `next_id` on are its own.
    pub(super) fn read(mut keys: Keys<'_>, next_id: &mut u64) -> Result<Self, WorkloadError> {
        let block_tok = keys.get("block_tok").map(|field| field.whole_in(1, 65_536)).transpose()?;
        let block_tok = block_tok.unwrap_or(16);
        let mut shared = Vec::new();
        let prompts = keys.sections("shared")?;
        if prompts.len() > LIMIT_SHARED {
            let field = keys.need("shared", "")?;
            return Err(field.fail(format!("lists more than {LIMIT_SHARED} system prompts")));
        }
        for prompt in prompts {
            shared.push(Shared::read(prompt, block_tok, next_id)?);
        }
        let total: f64 = shared.iter().map(|prompt| prompt.share).sum();
        for prompt in &mut shared {
            prompt.share /= total;
        }
        let tree = match keys.get("reuse") {
            None => None,
            Some(reuse) => Some(Tree {
                reuse: reuse.number_in(0.001, 0.999)?,
                age: Distribution::read(
                    keys.section("age", "add a distribution of how many rows back is repeated")?,
                    REQUESTS,
                )?,
            }),
        };
        keys.finish()?;
        let block_tok = u32::try_from(block_tok).expect("the limit fits");
        Ok(Self { block_tok, shared, tree })
    }

    /// Whether rows take blocks from earlier ones.
    pub(super) fn has_tree(&self) -> bool {
        self.tree.is_some()
    }

    /// The system prompt of row or session `index`.
    pub(super) fn system(&self, index: u64, draws: &mut Draws) -> Option<Arc<[u64]>> {
        if self.shared.is_empty() {
            return None;
        }
        let shares = self.shared.iter().map(|prompt| prompt.share);
        let place = pick(&mut draws.of(Purpose::SystemPrompt, index), shares);
        Some(Arc::clone(&self.shared[place].blocks))
    }

    /// The system prompt alone, as far as a prompt of `input_tok` has room for it.
    pub(super) fn of_system(&self, system: &[u64], input_tok: u32) -> Prefix {
        let room = input_tok.div_ceil(self.block_tok) as usize;
        let blocks = system[..room.min(system.len())].into();
        Prefix { blocks, block_tok: self.block_tok }
    }
}

impl Shared {
    fn read(mut keys: Keys<'_>, block_tok: u64, next_id: &mut u64) -> Result<Self, WorkloadError> {
        let tokens_field = keys.need("tokens", "it is how long the system prompt is")?;
        let tokens = tokens_field.whole_in(1, LIMIT_SHARED_TOK)?;
        if tokens % block_tok != 0 {
            let why = format!("is {tokens}; it must be whole blocks of `block_tok` = {block_tok}");
            return Err(tokens_field.fail(why));
        }
        let share = keys.get("weight").map(|field| field.number_in(1e-9, 1e9)).transpose()?;
        keys.finish()?;
        let blocks = (*next_id..*next_id + tokens / block_tok).collect();
        *next_id += tokens / block_tok;
        Ok(Self { share: share.unwrap_or(1.0), blocks })
    }
}

/// The blocks of earlier rows.
#[derive(Clone, Debug, Default)]
pub(super) struct PrefixTree {
    rows: VecDeque<Arc<[u64]>>,
    remembered: usize,
    seen: f64,
    total: f64,
}

impl PrefixTree {
    /// The blocks of a row of `input_tok` tokens.
    pub(super) fn next(
        &mut self,
        prefixes: &Prefixes,
        index: u64,
        input_tok: u32,
        next_id: &mut u64,
        draws: &mut Draws,
    ) -> Option<Box<Prefix>> {
        let tree = prefixes.tree.as_ref()?;
        let count = input_tok.div_ceil(prefixes.block_tok) as usize;
        let system = prefixes.system(index, draws).unwrap_or_default();
        let mut draw = draws.of(Purpose::Reuse, index);
        let share = libm::exp(libm::log(draw.uniform()) * (1.0 / tree.reuse - 1.0));
        let owed = GAIN * (tree.reuse * self.total - self.seen);
        let wanted = whole((share * count as f64 + owed).max(0.0));
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX).min(count);
        let earlier = self.earlier(tree.age.whole_at(draw.uniform()), wanted);
        let start = if wanted > system.len() && earlier.len() > system.len() {
            &earlier[..wanted.min(earlier.len())]
        } else {
            &system[..count.min(system.len())]
        };
        let mut blocks = start.to_vec();
        self.seen += blocks.len() as f64;
        self.total += count as f64;
        let missing = count - blocks.len();
        blocks.extend(*next_id..*next_id + missing as u64);
        *next_id += missing as u64;
        self.remember(Arc::from(blocks.as_slice()));
        Some(Box::new(Prefix { blocks: blocks.into(), block_tok: prefixes.block_tok }))
    }

    /// The blocks of a row about `age` rows back with at least so many, or the most that was found.
    fn earlier(&self, age: u64, wanted: usize) -> Arc<[u64]> {
        let count = self.rows.len();
        let back = usize::try_from(age).unwrap_or(usize::MAX).clamp(1, count.max(1));
        let older = (0..=count.saturating_sub(back)).rev().take(TRIES);
        let mut best: Option<&Arc<[u64]>> = None;
        for row in older.filter_map(|place| self.rows.get(place)) {
            if row.len() >= wanted {
                return Arc::clone(row);
            }
            if best.is_none_or(|best| best.len() < row.len()) {
                best = Some(row);
            }
        }
        best.cloned().unwrap_or_default()
    }

    fn remember(&mut self, blocks: Arc<[u64]>) {
        self.remembered += blocks.len();
        self.rows.push_back(blocks);
        while self.rows.len() > LIMIT_ROWS || self.remembered > LIMIT_BLOCKS {
            let Some(oldest) = self.rows.pop_front() else { break };
            self.remembered -= oldest.len();
        }
    }
}
