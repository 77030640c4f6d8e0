//! What was asked, and when: the rows of a trace as plain data.
//!
//! [`read`] turns files into [`Request`]s; [`crate::workload`] makes them up. [`stats`] says what they
//! are like, [`lint`] what is wrong with them, [`write`](mod@write) makes files of them. Nothing here knows
//! when a row will be sent (that is [`crate::schedule`]) or how its prompt is worded
//! ([`crate::prompt`]): no clock, no socket, no runtime.

pub mod ids;
pub mod lint;
pub mod read;
pub mod stats;
pub mod write;

use std::sync::Arc;

use serde_json::value::RawValue;

pub use self::ids::Fnv;
use crate::units::Nanos;

/// One row of a trace: a request that somebody sent, or that a workload made up.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// 0-based row of the source (blank lines and the header do not count).
    pub row: u64,
    /// The row of the source that this one is a copy of; `None`: it is no copy.
    pub source_row: Option<u64>,
    /// Trace time. Native traces: as written. Formats with absolute times: from the earliest row.
    pub at: Nanos,
    /// Prompt length in tokens.
    pub input_tok: u32,
    /// Completion length in tokens; `None` where none is asked for, and the answer ends by itself.
    pub output_tok: Option<u32>,
    /// The session a turn belongs to.
    pub session: Option<Arc<str>>,
    /// Turn within the session, from 1.
    pub turn: Option<u32>,
    /// Pause between the end of the previous turn and this one.
    pub think: Option<Nanos>,
    /// Traffic class (tenant, model, kind).
    pub class: Option<Arc<str>>,
    /// Shared prefix, when the trace tells.
    pub prefix: Option<Box<Prefix>>,
    /// What was asked in words, when the trace holds it.
    pub content: Option<Box<Content>>,
}

impl Request {
    /// Whether the trace says the prompt in words, which are sent as they are.
    #[must_use]
    pub fn has_literal_prompt(&self) -> bool {
        let content = self.content.as_deref();
        content.is_some_and(|own| own.prompt.is_some() || own.messages.is_some())
    }
}

/// The start of a prompt as ids of cacheable blocks: equal ids are equal text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Block ids from the start of the prompt; the last block is cut to the prompt's length.
    pub blocks: Box<[u64]>,
    /// Tokens in a block.
    pub block_tok: u32,
}

/// What a row says literally, instead of by length.
#[derive(Clone, Debug, Default)]
pub struct Content {
    /// The prompt as text.
    pub prompt: Option<String>,
    /// The `messages` array, as JSON.
    pub messages: Option<Box<RawValue>>,
    /// A JSON object merged into the request body.
    pub body: Option<Box<RawValue>>,
}

/// Completion tokens that a set of rows asks for. With one row that asks for no length, and is answered to
/// its end, the sum is unknown: never that of the others, and never 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputSum {
    /// Tokens of the rows that ask for a length.
    pub limited_tok: u64,
    /// Rows that ask for none: their answers end by themselves.
    pub natural_rows: u64,
}

impl OutputSum {
    /// A sum over rows that all ask for a length.
    #[must_use]
    pub const fn of(limited_tok: u64) -> Self {
        Self { limited_tok, natural_rows: 0 }
    }

    /// Counts a row.
    pub fn add(&mut self, output_tok: Option<u32>) {
        match output_tok {
            Some(tok) => self.limited_tok += u64::from(tok),
            None => self.natural_rows += 1,
        }
    }

    /// Counts the rows of another set too.
    pub fn merge(&mut self, other: Self) {
        self.limited_tok += other.limited_tok;
        self.natural_rows += other.natural_rows;
    }

    /// Tokens of all rows; `None` where some row asks for no length.
    #[must_use]
    pub fn total(self) -> Option<u64> {
        (self.natural_rows == 0).then_some(self.limited_tok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_row_of_no_length_makes_the_sum_unknown() {
        let mut sum = OutputSum::default();
        assert_eq!(sum.total(), Some(0));
        sum.add(Some(7));
        assert_eq!(sum, OutputSum::of(7));
        assert_eq!(sum.total(), Some(7));
        let mut other = OutputSum::of(5);
        other.add(None);
        sum.merge(other);
        assert_eq!((sum.limited_tok, sum.natural_rows, sum.total()), (12, 1, None));
    }
}
