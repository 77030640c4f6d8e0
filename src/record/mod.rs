//! Everything that was observed about one request, as plain data.
//!
//! A stream owns its [`StreamRecord`] while it runs and hands it over once, when it ends. Nothing
//! here computes a statistic over several requests (that is [`crate::metrics`]), and nothing reads a
//! clock. All instants are offsets from the run's `t0`.

pub mod csv;
mod outcome;
mod row;
mod saved_text;
mod stall;
mod tokens;

use std::sync::Arc;

pub use outcome::Outcome;
pub use row::{Phase, Row, TokenSource};
pub use saved_text::SavedText;
pub use stall::{ReaderPace, Stalls};
pub use tokens::{Kind, TokenTimes};

use crate::units::Nanos;

/// One due request: what was asked, what happened, and when. One record, however often it was sent.
#[derive(Clone, Debug, Default)]
pub struct StreamRecord {
    /// 0-based row of the source.
    pub row: u64,
    /// Session, where the trace has them.
    pub session: Option<Arc<str>>,
    /// Turn, from 1.
    pub turn: Option<u32>,
    /// Traffic class.
    pub class: Option<Arc<str>>,
    /// 0-based index of the `--url`.
    pub target: u32,
    /// When the schedule says that the request leaves.
    pub due: Nanos,
    /// When the client started the attempt, before connecting; `None`: never sent.
    pub sent: Option<Nanos>,
    /// How long DNS, TCP and TLS took; `None` on a reused connection.
    pub connect: Option<Nanos>,
    /// Whether the connection had served before; `None` when none was had.
    pub conn_reused: Option<bool>,
    /// When the response head was complete.
    pub headers: Option<Nanos>,
    /// First SSE event of any kind (comments are none).
    pub first_event: Option<Nanos>,
    /// First token of the *answer*: content, text, refusal or tool call, not reasoning.
    pub first_answer: Option<Nanos>,
    /// Arrival of every token event.
    pub tokens: TokenTimes,
    /// The longest that a token event lay in the kernel before it was read, where the kernel tells.
    pub rx_delay: Option<Nanos>,
    /// End of the stream, whatever ended it.
    pub close: Option<Nanos>,
    /// Prompt tokens asked for; `None` where the prompt came from a file and nobody counted it.
    pub input_tok_asked: Option<u32>,
    /// Completion tokens asked for; `None` where the answer was left to end by itself.
    pub output_tok_asked: Option<u32>,
    /// The server's own last count.
    pub usage: Option<Usage>,
    /// `finish_reason` as the server said it.
    pub finish_reason: Option<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// Status code, when there was a response.
    pub http_status: Option<u16>,
    /// What went wrong, in the server's words or ours; one line.
    pub error: Option<String>,
    /// The id that the server gave this response.
    pub request_id: Option<String>,
    /// Times that it was sent; `None` where it could be once only.
    pub attempts: Option<u32>,
    /// What the answer said; `None`: nobody asked to keep it.
    pub text: Option<Box<SavedText>>,
    /// Tokens of that, counted after the end; `None`: nobody did, or the text is not whole.
    pub text_tok: Option<TextTok>,
}

impl StreamRecord {
    /// Memory that it holds, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let texts = [&self.finish_reason, &self.error, &self.request_id].into_iter().flatten();
        let saved = self.text.as_ref().map_or(0, |saved| {
            saved.text.len() + saved.reasoning.len() + saved.tool.len() + size_of::<SavedText>()
        });
        let texts: usize = texts.map(String::len).sum();
        size_of::<Self>() + self.tokens.heap_bytes() + saved + texts
    }
}

/// Tokens of an answer's text by a tokenizer of the client's. What stands around the text on the server
/// (an end of sequence, the frame of a tool call) is not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextTok {
    /// All of it.
    pub output_tok: u64,
    /// Of these, reasoning.
    pub reasoning_tok: u64,
}

/// Token counts as a server reports them. The last one seen counts; they are never summed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// `prompt_tokens`.
    pub input_tok: Option<u64>,
    /// `completion_tokens`.
    pub output_tok: Option<u64>,
    /// Prompt tokens served from a prefix cache.
    pub cached_tok: Option<u64>,
    /// Completion tokens that were reasoning.
    pub reasoning_tok: Option<u64>,
    /// True when it came on a chunk before the end of the answer: a running count.
    pub running: bool,
}
