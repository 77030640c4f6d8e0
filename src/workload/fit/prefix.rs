//! Shared beginnings: the blocks that all rows begin with, how much was seen before, and how long ago.

use std::collections::HashMap;

use super::arrivals::logs;
use super::sessions::RecordedTurns;
use crate::trace::Request;

/// Blocks that are remembered.
const LIMIT_BLOCKS: usize = 50_000_000;
/// The block size that a tree has where the trace has none that a workload can say.
const LIMIT_BLOCK_TOK: u32 = 65_536;
/// The longest system prompt of a workload, in tokens.
const LIMIT_SHARED_TOK: u64 = 1_000_000;

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
    /// Of each row that begins a session: blocks that were seen before, and all.
    starts: Vec<(usize, usize)>,
    met: u64,
    hits: u64,
    is_full: bool,
}

impl Blocks {
    pub(super) fn add(&mut self, row: &Request, is_start: bool) {
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
        if is_start {
            self.starts.push((seen, blocks.len()));
        }
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

    /// The size of blocks, where rows have any that a workload can say.
    pub(super) fn block_tok(&self) -> Option<u32> {
        Some(self.block_tok).filter(|tok| (1..=LIMIT_BLOCK_TOK).contains(tok))
    }

    /// `[prefix]`; empty where there is nothing to say.
    pub(super) fn text(&self, turns: &RecordedTurns) -> String {
        let Some(block_tok) = self.block_tok() else { return String::new() };
        if turns.are_there() {
            return self.text_beside_sessions(block_tok);
        }
        let Some(reuse) = self.reuse() else { return String::new() };
        if reuse < 0.005 {
            return String::new();
        }
        let (mu, sigma) = if self.ages.is_empty() { (0.0, 0.1) } else { logs(&self.ages) };
        let mut text = format!(
            "[prefix]\nblock_tok = {}\nreuse = {:.4}\n\
             age = {{ distribution = \"lognormal\", mu = {mu:.3}, sigma = {:.3} }}   # rows back\n",
            block_tok,
            reuse.clamp(0.001, 0.999),
            sigma.max(0.001)
        );
        text.push_str(&system_prompt(self.shared.as_ref().map_or(0, Vec::len), block_tok));
        text
    }

    /// What sessions share with earlier ones, as one system prompt: so long that first turns find as many
    /// blocks as they did. What a turn shares with the one before it, the session says by itself.
    fn text_beside_sessions(&self, block_tok: u32) -> String {
        let found: usize = self.starts.iter().map(|(seen, _)| seen).sum();
        // The first session of all finds nothing.
        let finds = |shared: usize| -> usize {
            self.starts.iter().skip(1).map(|(_, all)| shared.min(*all)).sum()
        };
        let longest = self.starts.iter().map(|(_, all)| *all).max().unwrap_or(0);
        let (mut least, mut most) = (0, longest);
        while least < most {
            let middle = usize::midpoint(least, most);
            if finds(middle) < found { least = middle + 1 } else { most = middle }
        }
        let shared = system_prompt(least, block_tok);
        if shared.is_empty() {
            shared
        } else {
            format!("[prefix]\nblock_tok = {block_tok}\n{shared}")
        }
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.is_full {
            warnings.push(format!("only the first {LIMIT_BLOCKS} blocks were looked at for reuse"));
        }
        if self.other_sizes > 0 {
            warnings.push(format!("{} rows have blocks of another size", self.other_sizes));
        }
        warnings
    }
}

/// `[[prefix.shared]]` of so many blocks; empty without any.
fn system_prompt(blocks: usize, block_tok: u32) -> String {
    let tokens = (blocks as u64 * u64::from(block_tok)).min(LIMIT_SHARED_TOK);
    let tokens = tokens / u64::from(block_tok) * u64::from(block_tok);
    if tokens == 0 { String::new() } else { format!("[[prefix.shared]]\ntokens = {tokens}\n") }
}
