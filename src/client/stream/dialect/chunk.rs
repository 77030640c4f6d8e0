//! One chunk of an answer: what it says, and which kinds of text it carries.
//!
//! Deliberately absent: the text, of which only the presence counts.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::raw::{elements, last, members_or_none};
use crate::record::{Kind, Usage};

/// How deep parts of parts are followed.
const DEPTH: usize = 4;

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

/// Text as a string or as typed parts: `text`, `refusal`, and `thinking`, which has parts of its own.
pub(super) fn parts(value: &RawValue) -> Text {
    let mut kinds = Text { content: filled(value), ..Text::default() };
    for part in elements(value) {
        kinds.content |= filled(part);
        for (key, value) in members_or_none(part) {
            match key.as_ref() {
                "text" | "refusal" | "content" => kinds.content |= filled(value),
                "thinking" | "reasoning" => kinds.reasoning |= any_filled(value, DEPTH),
                _ => {}
            }
        }
    }
    kinds
}

/// Whether text stands in a value, or as `text` in its parts.
fn any_filled(value: &RawValue, depth: usize) -> bool {
    if depth == 0 {
        return false;
    }
    let deeper = |value| any_filled(value, depth - 1);
    filled(value)
        || elements(value).into_iter().any(deeper)
        || last(&members_or_none(value), "text").is_some_and(deeper)
}

/// Whether a string with something in it stands here.
pub(super) fn filled(value: &RawValue) -> bool {
    value.get().len() > 2 && value.get().starts_with('"')
}
