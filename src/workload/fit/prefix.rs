//! Shared beginnings: the blocks that all rows begin with, how much was seen before, and how long ago.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::arrivals::logs;
use super::sessions::Turns;
use crate::trace::Request;

/// Blocks that are remembered.
const LIMIT_BLOCKS: usize = 50_000_000;
/// The block size that a tree has where the trace has none that a workload can say.
const LIMIT_BLOCK_TOK: u32 = 65_536;

/// The blocks of a trace.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    rows: u64,
    block_tok: u32,
    other_sizes: u64,
    /// What every row so far begins with.
    shared: Option<Vec<u64>>,
    /// The last row with each block.
    last: HashMap<u64, u64>,
    /// Rows back to the row that the last block seen before came from.
    ages: Vec<f64>,
    met: u64,
    hits: u64,
    is_full: bool,
}

impl Blocks {
    pub(super) fn add(&mut self, row: &Request) {
        let Some(prefix) = &row.prefix else { return };
        if self.block_tok == 0 {
            self.block_tok = prefix.block_tok;
        }
        self.other_sizes += u64::from(self.block_tok != prefix.block_tok);
        self.rows += 1;
        let blocks = &prefix.blocks[..];
        let shared = self.shared.get_or_insert_with(|| blocks.to_vec());
        let same = shared.iter().zip(blocks).take_while(|(one, other)| one == other).count();
        // A prompt that is shorter says nothing of what it has no room for.
        if same < blocks.len() {
            shared.truncate(same);
        }
        let seen = blocks.iter().take_while(|block| self.last.contains_key(block)).count();
        self.met += blocks.len() as u64;
        self.hits += seen as u64;
        if seen > same
            && let Some(last) = self.last.get(&blocks[seen - 1])
        {
            self.ages.push((self.rows - last) as f64);
        }
        if self.last.len() + blocks.len() > LIMIT_BLOCKS {
            self.is_full = true;
            return;
        }
        for block in blocks {
            self.last.insert(*block, self.rows);
        }
    }

    /// The share of blocks that were seen before, stopping at the first that was not.
    pub(super) fn reuse(&self) -> Option<f64> {
        (self.met > 0).then(|| self.hits as f64 / self.met as f64)
    }

    /// `[prefix]`; empty where there is nothing to say, or where sessions say it.
    pub(super) fn text(&self, turns: &Turns) -> String {
        let is_told = self.block_tok > 0 && self.block_tok <= LIMIT_BLOCK_TOK && !turns.are_there();
        let Some(reuse) = self.reuse().filter(|_| is_told) else { return String::new() };
        if reuse < 0.005 {
            return String::new();
        }
        let (mu, sigma) = if self.ages.is_empty() { (0.0, 0.1) } else { logs(&self.ages) };
        let mut text = format!(
            "[prefix]\nblock_tok = {}\nreuse = {:.4}\n\
             age = {{ distribution = \"lognormal\", mu = {mu:.3}, sigma = {:.3} }}   # rows back\n",
            self.block_tok,
            reuse.clamp(0.001, 0.999),
            sigma.max(0.001)
        );
        let shared = self.shared.as_ref().map_or(0, Vec::len) as u64;
        if shared > 0 {
            let tokens = (shared * u64::from(self.block_tok)).min(1_000_000);
            let tokens = tokens / u64::from(self.block_tok) * u64::from(self.block_tok);
            let _ = writeln!(text, "[[prefix.shared]]\ntokens = {tokens}");
        }
        text
    }

    pub(super) fn warnings(&self, turns: &Turns) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.is_full {
            warnings.push(format!("only the first {LIMIT_BLOCKS} blocks were looked at for reuse"));
        }
        if self.other_sizes > 0 {
            warnings.push(format!("{} rows have blocks of another size", self.other_sizes));
        }
        if self.rows > 0 && turns.are_there() {
            warnings.push(
                "blocks are not fitted beside sessions: each turn repeats the one before whole"
                    .to_owned(),
            );
        }
        warnings
    }
}
