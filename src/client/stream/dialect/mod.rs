//! What each API is asked and what it answers: request bodies out, the meaning of one event in.
//!
//! One event is read in one pass into a [`Chunk`], borrowed and without allocation: by a scan for the
//! form that servers send for every token (`quick`), else as typed JSON where a server keeps to the
//! form (`openai`); what does not fit is read again, slowly and with patience (`lenient`). All three
//! give the same answer where they give one. Deliberately absent: sockets, clocks and SSE framing, state between two chunks (the caller
//! keeps the last usage and finish reason), and the text itself, of which only
//! the presence counts (`text` reads it again for whoever wants to keep it).

#[cfg(test)]
mod agreement;
mod body;
#[cfg(test)]
mod captures;
mod error_text;
mod lenient;
mod merge;
mod openai;
mod quick;
mod raw;
#[cfg(test)]
mod tests;
mod text;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

pub use body::{BodyError, BodyParams, MaxTokensKey, Prompt, UnknownKey, body};
pub use error_text::{error_message, error_outside};
pub use merge::{MergeError, merge};
pub use text::append_text;

use crate::record::{Kind, Usage};

/// The APIs that requests can be sent to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Api {
    /// Chat completions.
    #[default]
    Chat,
    /// Completions, the older form: text or exact token ids.
    Completions,
}

impl Api {
    /// Every API, with the word that names it.
    const WORDS: [(Self, &'static str); 2] =
        [(Self::Chat, "chat"), (Self::Completions, "completions")];

    /// The path under a server's root.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Completions => "/v1/completions",
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::WORDS.iter().find(|(api, _)| api == self).map_or("", |(_, word)| word))
    }
}

/// A word that names no API.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown API `{0}`; known are chat and completions")]
pub struct UnknownApi(String);

impl FromStr for Api {
    type Err = UnknownApi;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let found = Self::WORDS.iter().find(|(_, known)| *known == word);
        found.map(|(api, _)| *api).ok_or_else(|| UnknownApi(word.to_owned()))
    }
}

/// What one event of a stream says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// `[DONE]`: the end of the stream.
    Done,
    /// Anything else.
    Chunk(Chunk<'a>),
}

/// One chunk of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// The kind of text it carries; `None`: it is no token event. An answer hides reasoning beside it.
    pub kind: Option<Kind>,
    /// Why a choice ended, when one did.
    pub finish_reason: Option<Cow<'a, str>>,
    /// The token counts on it. With several chunks that bear some, the last one counts.
    pub usage: Option<Usage>,
    /// The server's id of the response.
    pub id: Option<Cow<'a, str>>,
    /// The server's words, when the chunk says that the request failed.
    pub error: Option<String>,
}

impl Chunk<'_> {
    /// Whether it carries text of the *answer*: content, text, refusal or tool call, not reasoning.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        matches!(self.kind, Some(Kind::Content | Kind::Tool))
    }

    /// The same chunk, borrowing nothing.
    #[must_use]
    pub fn into_owned(self) -> Chunk<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        Chunk {
            kind: self.kind,
            finish_reason: self.finish_reason.map(owned),
            usage: self.usage,
            id: self.id.map(owned),
            error: self.error,
        }
    }

    /// Marks the counts of a chunk before the end of the answer.
    ///
    /// A final usage comes with a finish reason or on a chunk without text. So does the count of the
    /// opening chunk of vLLM's running usage, which is zero.
    fn mark_running(&mut self) {
        if let Some(usage) = &mut self.usage {
            let before_text = usage.output_tok == Some(0);
            usage.running = self.finish_reason.is_none() && (self.kind.is_some() || before_text);
        }
    }
}

/// An event whose data is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is no JSON object ({reason}): `{excerpt}`")]
pub struct ChunkError {
    reason: String,
    excerpt: String,
}

/// Characters of an event that its error quotes.
const EXCERPT_CHARS: usize = 80;

/// Reads one event. An event named `error` is one, whatever form its data has.
pub fn parse_event<'a>(name: &[u8], data: &'a [u8]) -> Result<Parsed<'a>, ChunkError> {
    if name != b"error" {
        return parse(data);
    }
    let mut chunk = match parse(data) {
        Ok(Parsed::Chunk(chunk)) => chunk,
        _ => Chunk::default(),
    };
    chunk.error.get_or_insert_with(|| error_message(data));
    Ok(Parsed::Chunk(chunk))
}

/// Reads the data of one event. Empty data says nothing, so it is a chunk without anything.
pub fn parse(data: &[u8]) -> Result<Parsed<'_>, ChunkError> {
    let data = data.trim_ascii();
    if data == b"[DONE]" {
        return Ok(Parsed::Done);
    }
    if data.is_empty() {
        return Ok(Parsed::Chunk(Chunk::default()));
    }
    let mut chunk = match quick::read(data) {
        Some(chunk) => chunk,
        None => read_slowly(data)?,
    };
    chunk.mark_running();
    Ok(Parsed::Chunk(chunk))
}

/// Reads whatever is a JSON object, in its usual form or not.
fn read_slowly(data: &[u8]) -> Result<Chunk<'_>, ChunkError> {
    let chunk = match std::str::from_utf8(data) {
        Ok(text) => match openai::read(text) {
            Some(chunk) => Ok(chunk),
            None => lenient::read(text),
        },
        Err(_) => lenient::read(&String::from_utf8_lossy(data)).map(Chunk::into_owned),
    };
    chunk.map_err(|reason| ChunkError {
        reason: reason.to_string(),
        excerpt: error_text::one_line(&String::from_utf8_lossy(data), EXCERPT_CHARS),
    })
}

/// Which kinds of text a chunk carries, folded over its choices and their parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Text {
    content: bool,
    tool: bool,
    reasoning: bool,
}

impl Text {
    fn kind(self) -> Option<Kind> {
        match self {
            Self { content: true, .. } => Some(Kind::Content),
            Self { tool: true, .. } => Some(Kind::Tool),
            Self { reasoning: true, .. } => Some(Kind::Reasoning),
            _ => None,
        }
    }
}

impl std::ops::BitOrAssign for Text {
    fn bitor_assign(&mut self, other: Self) {
        self.content |= other.content;
        self.tool |= other.tool;
        self.reasoning |= other.reasoning;
    }
}
