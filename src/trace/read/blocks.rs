//! Ids of prefix blocks: whether they fit a prompt's length, and ids made where a trace has none.
//!
//! Conventions differ (blocks of 512, 64 or 16 tokens; the last, partial block counted or not), and a
//! wrong guess changes what a cache can reuse without a word. So what does not fit is refused, with the
//! option that settles it.

use super::error::Fault;
use crate::trace::Prefix;
use crate::trace::ids::scoped;

/// Tokens that one of Mooncake's ids stands for, and one of a native row that does not say.
pub(super) const MOONCAKE_BLOCK_TOK: u32 = 512;
/// The same in vLLM's own traces and in Bailian's.
pub(super) const VLLM_BLOCK_TOK: u32 = 16;

/// How many ids a prompt has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdCount {
    /// One for every block, the last, partial one too.
    Partial,
    /// One for every full block.
    Full,
    /// Either.
    Either,
}

impl IdCount {
    fn takes(self, ids: usize, input_tok: u32, block_tok: u32) -> bool {
        let full = (input_tok / block_tok) as usize;
        let partial = input_tok.div_ceil(block_tok) as usize;
        match self {
            Self::Partial => ids == partial,
            Self::Full => ids == full,
            Self::Either => ids == full || ids == partial,
        }
    }

    fn needed(self, input_tok: u32, block_tok: u32) -> u32 {
        match self {
            Self::Full => input_tok / block_tok,
            Self::Partial | Self::Either => input_tok.div_ceil(block_tok),
        }
    }
}

/// The prefix of a prompt; no ids, no prefix.
pub(super) fn prefix(
    ids: Vec<u64>,
    input_tok: u32,
    block_tok: u32,
    fit: IdCount,
    key: &str,
) -> Result<Option<Box<Prefix>>, Fault> {
    if !fit.takes(ids.len(), input_tok, block_tok) {
        return Err(Fault::at(
            key,
            format!(
                "{} ids, but {input_tok} tokens in blocks of {block_tok} need {}; name the trace's block size \
                 with `--block-tok`",
                ids.len(),
                fit.needed(input_tok, block_tok)
            ),
        ));
    }
    Ok((!ids.is_empty()).then(|| Box::new(Prefix { blocks: ids.into_boxed_slice(), block_tok })))
}

/// What a session's prompts share, where a trace tells only how many tokens of each were in a cache:
/// which round wrote which stretch of the context.
#[derive(Debug, Default)]
pub(super) struct Context {
    /// First block of a stretch, and the round that wrote it; in order of the blocks.
    stretches: Vec<(u32, u64)>,
    /// Blocks of the round before.
    blocks: u32,
    rounds: u64,
}

impl Context {
    /// The ids of the next round's prompt, of which the first `shared_tok` tokens stand since earlier
    /// rounds; all its full blocks get one.
    pub(super) fn next(
        &mut self,
        scope: u64,
        shared_tok: u32,
        input_tok: u32,
        block_tok: u32,
    ) -> Vec<u64> {
        let all = input_tok / block_tok;
        // The first round may find blocks that other sessions left; here they are its own.
        let kept = (shared_tok / block_tok).min(self.blocks);
        self.blocks = all;
        self.stretches.retain(|&(first, _)| first < kept);
        if kept < all {
            self.stretches.push((kept, self.rounds));
        }
        self.rounds += 1;
        let mut ids = Vec::with_capacity(all as usize);
        for (place, &(first, round)) in self.stretches.iter().enumerate() {
            let end = self.stretches.get(place + 1).map_or(all, |next| next.0);
            let written_by = scoped(scope, round);
            ids.extend((first..end).map(|block| scoped(written_by, u64::from(block))));
        }
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_shares_exactly_what_was_told() {
        let shared = |a: &[u64], b: &[u64]| a.iter().zip(b).take_while(|(a, b)| a == b).count();
        let mut context = Context::default();
        let first = context.next(7, 300, 1000, 100);
        let grown = context.next(7, 1000, 1550, 100);
        let cut = context.next(7, 450, 1200, 100);
        let same = context.next(7, 1200, 1200, 100);
        assert_eq!([first.len(), grown.len(), cut.len(), same.len()], [10, 15, 12, 12]);
        assert_eq!((shared(&first, &grown), shared(&grown, &cut)), (10, 4));
        assert_eq!(cut, same);
        let all: std::collections::HashSet<_> = [first, grown, cut].concat().into_iter().collect();
        assert_eq!(all.len(), 10 + 5 + 8, "what is not shared is new");
        assert_eq!(shared(&Context::default().next(8, 0, 1000, 100), &same), 0);
    }

    #[test]
    fn both_ways_of_counting_are_told_apart() {
        let check = |ids: u64, input_tok, fit, expect| {
            let taken = prefix((0..ids).collect(), input_tok, 64, fit, "hash_ids").is_ok();
            assert_eq!(taken, expect, "{ids} ids for {input_tok} tokens, {fit:?}");
        };
        for (fit, partial, full) in [
            (IdCount::Partial, true, false),
            (IdCount::Full, false, true),
            (IdCount::Either, true, true),
        ] {
            check(3, 130, fit, partial);
            check(2, 130, fit, full);
            check(2, 128, fit, true);
            check(4, 130, fit, false);
        }
    }
}
