//! One chunk of an answer: what it says, and which kinds of text it carries.
//!
//! Deliberately absent: the text, of which only the presence counts.

use std::borrow::Cow;

use crate::record::{Kind, Usage};

/// More tokens than any count can mean: 2^40. Larger numbers are ignored.
pub(super) const ABSURD_TOK: u64 = 1 << 40;

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
    pub(super) fn mark_running(&mut self) {
        if let Some(usage) = &mut self.usage {
            let before_text = usage.output_tok == Some(0);
            usage.running = self.finish_reason.is_none() && (self.kind.is_some() || before_text);
        }
    }
}

/// Which kinds of text a chunk carries, folded over its choices and their parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) content: bool,
    pub(super) tool: bool,
    pub(super) reasoning: bool,
}

impl Text {
    pub(super) fn kind(self) -> Option<Kind> {
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

/// A usage that counts nothing is none.
pub(super) fn counted(usage: Usage) -> Option<Usage> {
    (usage != Usage::default()).then_some(usage)
}
