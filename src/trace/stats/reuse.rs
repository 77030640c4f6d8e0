//! What a prefix cache could reuse: with room for everything, and with room for some.
//!
//! A block counts as reused when it and all before it in the prompt were seen before. A finite cache
//! holds so many blocks and drops the one that was used longest ago (LRU). This is what the trace
//! offers, at most; a server's own blocks, evictions and order decide what becomes of it.

use std::collections::{HashMap, VecDeque};

use serde::Serialize;

use crate::trace::Request;

/// Blocks that the finite caches hold.
const CACHES: [usize; 3] = [1_000, 10_000, 50_000];
/// Blocks that are told apart; beyond it there are no figures.
const LIMIT: usize = 64 << 20;

/// Gathers reuse.
#[derive(Clone, Debug)]
pub(super) struct Reuse {
    caches: Vec<Cache>,
    rows: u64,
    blocks: u64,
    prompt_tok: u64,
    overflown: bool,
}

impl Default for Reuse {
    fn default() -> Self {
        let caches = CACHES.into_iter().map(Cache::of).chain([Cache::of(usize::MAX)]).collect();
        Self { caches, rows: 0, blocks: 0, prompt_tok: 0, overflown: false }
    }
}

/// Reuse in figures. Shares are of what rows with blocks ask.
#[derive(Clone, Debug, Serialize)]
pub struct ReuseFigures {
    /// Rows with blocks.
    pub rows: u64,
    /// Their blocks.
    pub blocks: u64,
    /// Different blocks.
    pub distinct_blocks: u64,
    /// Share of blocks that a cache with room for all could reuse.
    pub block_hit: f64,
    /// Share of prompt tokens, the same.
    pub token_hit: f64,
    /// By size of a finite cache.
    pub caches: Vec<CacheFigures>,
}

/// What a finite cache could reuse.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CacheFigures {
    /// Blocks it holds.
    pub blocks: usize,
    /// Share of blocks.
    pub block_hit: f64,
    /// Share of prompt tokens.
    pub token_hit: f64,
}

impl Reuse {
    pub(super) fn add(&mut self, request: &Request) {
        let Some(prefix) = &request.prefix else { return };
        self.rows += 1;
        self.blocks += prefix.blocks.len() as u64;
        self.prompt_tok += u64::from(request.input_tok);
        for cache in &mut self.caches {
            let hits = cache.take(&prefix.blocks);
            let tok = (hits * u64::from(prefix.block_tok)).min(request.input_tok.into());
            cache.hit_blocks += hits;
            cache.hit_tok += tok;
        }
        self.overflown |= self.caches.last().is_some_and(|all| all.used.len() > LIMIT);
        if self.overflown {
            self.caches.clear();
        }
    }

    pub(super) fn figures(&self) -> Option<ReuseFigures> {
        let (all, finite) = self.caches.split_last()?;
        if self.rows == 0 {
            return None;
        }
        let block_hit = |cache: &Cache| cache.hit_blocks as f64 / self.blocks as f64;
        let token_hit = |cache: &Cache| cache.hit_tok as f64 / self.prompt_tok as f64;
        let figures = |cache: &Cache| CacheFigures {
            blocks: cache.room,
            block_hit: block_hit(cache),
            token_hit: token_hit(cache),
        };
        Some(ReuseFigures {
            rows: self.rows,
            blocks: self.blocks,
            distinct_blocks: all.used.len() as u64,
            block_hit: block_hit(all),
            token_hit: token_hit(all),
            // A cache with room for everything says nothing new.
            caches: finite.iter().filter(|own| own.room < all.used.len()).map(figures).collect(),
        })
    }
}

/// A cache of blocks.
#[derive(Clone, Debug)]
struct Cache {
    room: usize,
    /// When each block it holds was used last.
    used: HashMap<u64, u64>,
    /// Uses in order, out of date where the block was used again.
    uses: VecDeque<(u64, u64)>,
    clock: u64,
    hit_blocks: u64,
    hit_tok: u64,
}

impl Cache {
    fn of(room: usize) -> Self {
        let used = HashMap::new();
        Self { room, used, uses: VecDeque::new(), clock: 0, hit_blocks: 0, hit_tok: 0 }
    }

    /// Looks a prompt up, then holds all of it. Returns how many blocks from its start were there.
    fn take(&mut self, blocks: &[u64]) -> u64 {
        let hits = blocks.iter().take_while(|id| self.used.contains_key(id)).count() as u64;
        for &id in blocks {
            self.clock += 1;
            self.used.insert(id, self.clock);
            if self.room == usize::MAX {
                continue;
            }
            self.uses.push_back((id, self.clock));
            while self.used.len() > self.room || self.uses.len() > self.room.saturating_mul(4) {
                let Some((id, at)) = self.uses.pop_front() else { break };
                match self.used.get(&id) {
                    Some(&latest) if latest == at && self.used.len() > self.room => {
                        self.used.remove(&id);
                    }
                    // Still held and not to be dropped: its place in the order stands.
                    Some(&latest) if latest == at => {
                        self.uses.push_front((id, at));
                        self.compact();
                    }
                    _ => {}
                }
            }
        }
        hits
    }

    /// Forgets uses that are out of date.
    fn compact(&mut self) {
        let used = &self.used;
        self.uses.retain(|(id, at)| used.get(id) == Some(at));
    }
}
