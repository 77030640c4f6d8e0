//! What each API is asked and what it answers: request bodies out, the meaning of one event in.
//!
//! One event is read in one pass into a [`Chunk`], borrowed and without allocation, by a scan for the
//! forms that servers send (`quick`); what does not fit is read again, slowly and with patience
//! (`lenient`). There are two because neither can be both: the benchmark `chunk_json` holds the one to
//! a small multiple of the time that finding the quotes takes, and only the other reads any JSON
//! object. Where both read, they say the same. Deliberately absent: sockets, clocks and SSE framing,
//! state between two chunks (the caller keeps the last usage and finish reason), and the text itself
//! (`text` reads it again for whoever wants to keep it).

#[cfg(test)]
mod agreement;
mod body;
#[cfg(test)]
mod captures;
mod chunk;
mod error_text;
mod lenient;
mod merge;
mod parse;
mod quick;
mod raw;
#[cfg(test)]
mod tests;
mod text;

pub use body::{Api, BodyError, BodyParams, MaxTokensKey, Prompt, UnknownApi, UnknownKey, body};
pub use chunk::Chunk;
pub use error_text::error_message;
pub use merge::{MergeError, merge, merged};
pub use parse::{ChunkError, Parsed, error_outside, parse, parse_event};
pub use text::append_text;
