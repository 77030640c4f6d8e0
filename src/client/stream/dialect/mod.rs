//! What each API is asked and what it answers: request bodies out, the meaning of one event in.
//!
//! One event is read in one pass into a [`Chunk`], borrowed and without allocation: by a scan for the
//! form that servers send for every token (`quick`), else as typed JSON where a server keeps to the
//! form (`openai`); what does not fit is read again, slowly and with patience (`lenient`). All three
//! give the same answer where they give one. Deliberately absent: sockets, clocks and SSE framing,
//! state between two chunks (the caller keeps the last usage and finish reason), and the text itself
//! (`text` reads it again for whoever wants to keep it).

#[cfg(test)]
mod agreement;
mod api;
mod body;
#[cfg(test)]
mod captures;
mod chunk;
mod error_text;
mod lenient;
mod merge;
mod openai;
mod parse;
mod quick;
mod raw;
#[cfg(test)]
mod tests;
mod text;

pub use api::{Api, UnknownApi};
pub use body::{BodyError, BodyParams, MaxTokensKey, Prompt, UnknownKey, body};
pub use chunk::Chunk;
pub use error_text::error_message;
pub use merge::{MergeError, merge, merged};
pub use parse::{ChunkError, Parsed, error_outside, parse, parse_event};
pub use text::append_text;
