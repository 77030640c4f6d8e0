//! Block ids of rows that are held, the beginnings of a session's prompts stored once.
//!
//! A coding agent's prompt repeats the one before it but for a few blocks; whole lists of ids for every
//! row of a folder of sessions would be many times the size of its files.

use std::collections::HashMap;
use std::sync::Arc;

use crate::trace::{Prefix, Request};

/// Ids that are stored together.
const CHUNK: usize = 64;

/// A prompt's ids in chunks, some of which belong to other rows as well.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    chunks: Box<[Arc<[u64]>]>,
    block_tok: u32,
}

impl Blocks {
    /// The ids as a row has them.
    pub(super) fn prefix(&self) -> Option<Box<Prefix>> {
        let blocks: Vec<u64> = self.chunks.iter().flat_map(|chunk| chunk.iter().copied()).collect();
        let block_tok = self.block_tok;
        (!blocks.is_empty()).then(|| Box::new(Prefix { blocks: blocks.into(), block_tok }))
    }
}

/// Stores the ids of rows as they come.
#[derive(Default)]
pub(super) struct Sharing {
    /// The latest ids of each session of a document.
    latest: HashMap<Arc<str>, Blocks>,
}

impl Sharing {
    /// Forgets the sessions of a document, whose ids no other shares.
    pub(super) fn clear(&mut self) {
        self.latest.clear();
    }

    /// Takes a row's ids out of it, and says how many bytes they need beside those of rows before.
    pub(super) fn store(&mut self, request: &mut Request) -> (Blocks, u64) {
        let Some(prefix) = request.prefix.take() else { return (Blocks::default(), 0) };
        let before = request.session.as_ref().and_then(|name| self.latest.get(name));
        let mut bytes = 0;
        let chunks = prefix.blocks.chunks(CHUNK).enumerate().map(|(place, chunk)| {
            bytes += size_of::<Arc<[u64]>>();
            match before.and_then(|blocks| blocks.chunks.get(place)) {
                Some(same) if **same == *chunk => Arc::clone(same),
                _ => {
                    bytes += size_of_val(chunk) + 16;
                    chunk.into()
                }
            }
        });
        let blocks = Blocks { chunks: chunks.collect(), block_tok: prefix.block_tok };
        if let Some(name) = &request.session {
            self.latest.insert(Arc::clone(name), blocks.clone());
        }
        (blocks, bytes as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back_and_beginnings_are_stored_once() {
        let row = |session: &str, blocks: Vec<u64>| Request {
            session: Some(session.into()),
            prefix: Some(Box::new(Prefix { blocks: blocks.into(), block_tok: 64 })),
            ..Request::default()
        };
        let mut sharing = Sharing::default();
        let mut check = |session: &str, blocks: Vec<u64>, most_bytes: u64| {
            let mut request = row(session, blocks.clone());
            let (held, bytes) = sharing.store(&mut request);
            assert!(request.prefix.is_none() && bytes <= most_bytes, "{bytes} bytes");
            assert_eq!(held.prefix().map(|own| own.blocks.to_vec()).unwrap_or_default(), blocks);
        };
        check("a", (0..1000).collect(), 9_000);
        check("a", (0..1010).collect(), 800);
        check("a", (0..500).chain(9_000..9_600).collect(), 6_500);
        check("b", (0..1000).collect(), 9_000);
        check("a", vec![], 0);
    }
}
