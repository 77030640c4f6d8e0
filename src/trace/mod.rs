//! What was asked, and when: the rows of a trace as plain data.
//!
//! [`read`] turns files into [`Request`]s; [`crate::workload`] makes them up. [`stats`] says what they
//! are like, [`lint`] what is wrong with them, [`write`](mod@write) makes files of them. Nothing here knows
//! when a row will be sent (that is [`crate::schedule`]) or how its prompt is worded
//! ([`crate::prompt`]): no clock, no socket, no runtime.

mod fnv;
pub mod ids;
pub mod lint;
mod output_sum;
pub mod read;
pub mod stats;
pub mod write;

pub use fnv::Fnv;
pub use output_sum::OutputSum;

use std::sync::Arc;

use serde_json::value::RawValue;

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
