//! A row of a trace on its way to a [`Request`]: as a format's reader makes it, and in its place in the file.

use std::sync::Arc;

use crate::trace::Request;
use crate::units::Nanos;

/// Memory for whole rows.
pub(super) const ROWS_LIMIT_BYTES: u64 = 1 << 30;

/// What a format's reader makes of one line: lengths as written, `row` and `at` still unset.
#[derive(Debug)]
pub(super) struct Parsed {
    /// Time on the file's own scale.
    pub(super) at_ns: i64,
    pub(super) request: Request,
}

/// A row in its place.
#[derive(Debug)]
pub(super) struct Row {
    /// Time on the file's own scale.
    pub(super) at_ns: i64,
    pub(super) line: u64,
    /// Where its line starts.
    pub(super) offset: u64,
    pub(super) request: Request,
}

/// Trace time of a file time. `zero_ns` is never later where the caller kept its promise.
pub(super) fn trace_time(at_ns: i64, zero_ns: i64) -> Nanos {
    Nanos(at_ns.saturating_sub(zero_ns).max(0).unsigned_abs())
}

/// About what a row holds in memory, for the limit.
pub(super) fn memory_bytes(row: &Row) -> u64 {
    let request = &row.request;
    let words = request.session.as_ref().map_or(0, |name| name.len() + 16);
    let blocks = request.prefix.as_ref().map_or(0, |prefix| size_of_val(&*prefix.blocks) + 32);
    let content = request.content.as_ref().map_or(0, |content| {
        let prompt = content.prompt.as_ref().map_or(0, String::len);
        let raw = [&content.messages, &content.body];
        let raw: usize = raw.into_iter().flatten().map(|raw| raw.get().len()).sum();
        prompt + raw + 64
    });
    (size_of::<Request>() + words + blocks + content) as u64
}

/// Different names that are remembered; a file with more of them only shares less.
const INTERNED_LIMIT: usize = 64;

/// Names that many rows share, such as classes and models, each of them held once.
#[derive(Default)]
pub(super) struct Interner {
    known: Vec<Arc<str>>,
}

impl Interner {
    /// The shared text of `name`.
    pub(super) fn shared(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.known.iter().find(|known| ***known == *name) {
            return Arc::clone(known);
        }
        let new: Arc<str> = name.into();
        if self.known.len() < INTERNED_LIMIT {
            self.known.push(Arc::clone(&new));
        }
        new
    }
}
