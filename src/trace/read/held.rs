//! Rows that are held in memory, within a limit, the beginnings of a session's prompts stored once.
//!
//! A coding agent's prompt repeats the one before it but for a few blocks; whole lists of ids for every
//! row of a folder of sessions would be many times the size of its files.

use std::collections::HashMap;
use std::sync::Arc;

use super::error::{Fault, TraceError};
use super::row::{ROWS_LIMIT_BYTES, Row, memory_bytes};
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
struct Sharing {
    /// The latest ids of each session of a document.
    latest: HashMap<Arc<str>, Blocks>,
}

impl Sharing {
    /// Takes a row's ids out of it, and says how many bytes they need beside those of rows before.
    fn store(&mut self, request: &mut Request) -> (Blocks, u64) {
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

/// Rows taken from documents.
#[derive(Default)]
pub(super) struct Held {
    pub(super) rows: Vec<(Row, Blocks)>,
    /// Things read that are no request.
    pub(super) skipped: u64,
    memory_bytes: u64,
    /// Where the document under way begins.
    line: u64,
    sharing: Sharing,
}

impl Held {
    /// Begins a document.
    pub(super) fn begin(&mut self, line: u64) {
        self.line = line;
        // No other document shares its ids.
        self.sharing.latest.clear();
    }

    /// Adds a row, at a time on the file's own scale.
    pub(super) fn push(&mut self, at_ns: i64, mut request: Request) -> Result<(), Fault> {
        request.row = self.rows.len() as u64 + self.skipped;
        let (blocks, bytes) = self.sharing.store(&mut request);
        let row = Row { at_ns, line: self.line, offset: 0, request };
        self.memory_bytes += memory_bytes(&row) + bytes;
        if self.memory_bytes > ROWS_LIMIT_BYTES {
            return Err(Fault::row(format!(
                "the rows of this format are held in memory, and need more than {} MiB; cut the trace into \
                 parts",
                ROWS_LIMIT_BYTES >> 20
            )));
        }
        self.rows.push((row, blocks));
        Ok(())
    }

    pub(super) fn skip(&mut self) {
        self.skipped += 1;
    }
}

/// Held rows, handed out one by one.
pub(super) struct HeldRows {
    pub(super) rows: Arc<Vec<(Request, Blocks)>>,
    pub(super) next: usize,
}

impl Iterator for HeldRows {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (row, blocks) = self.rows.get(self.next)?;
        self.next += 1;
        Some(Ok(Request { prefix: blocks.prefix(), ..row.clone() }))
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
