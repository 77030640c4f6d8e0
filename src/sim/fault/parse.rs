//! A fault from its word and value. Deliberately absent: on which requests it falls (see `when`).

use super::script::Done;
use super::{Break, ErrorForm, Fault, LineEnd, ReasoningKey};
use crate::units::Nanos;

/// The longest line that may be asked for: beyond it a client may well give up, and memory matters.
const LINE_BYTES: usize = 64 << 20;

/// Faults without a value.
const PLAIN: [(&str, Fault); 18] = [
    ("refuse", Fault::Refuse),
    ("json", Fault::Json),
    ("no-done", Fault::NoDone),
    ("bytes", Fault::Bytes),
    ("utf8", Fault::Utf8),
    ("crlf", Fault::Lines(LineEnd::CrLf)),
    ("cr", Fault::Lines(LineEnd::Cr)),
    ("bom", Fault::Bom),
    ("comments", Fault::Comments),
    ("no-space", Fault::NoSpace),
    ("empty-choices", Fault::EmptyChoices),
    ("early-role", Fault::EarlyRole),
    ("running-usage", Fault::RunningUsage),
    ("no-usage", Fault::NoUsage),
    ("no-finish", Fault::NoFinish),
    ("empty", Fault::Empty),
    ("gzip", Fault::Gzip),
    ("tools", Fault::Tools),
];

/// How a stream stays open.
const OPEN: [(&str, Done); 3] =
    [("", Done::Open), ("bare", Done::OpenBare), ("mute", Done::OpenMute)];

/// In which form an error comes.
const ERROR_FORMS: [(&str, ErrorForm); 5] = [
    ("object", ErrorForm::Object),
    ("string", ErrorForm::String),
    ("event", ErrorForm::Event),
    ("field", ErrorForm::Field),
    ("bare", ErrorForm::Bare),
];

/// A rule that means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// No such fault.
    #[error("unknown fault `{0}`\nhint: `underfire sim --help` lists them")]
    Unknown(String),
    /// A fault whose value is missing, or makes no sense.
    #[error("fault `{fault}` needs {wanted}")]
    Value {
        /// As it was written.
        fault: String,
        /// What would do.
        wanted: &'static str,
    },
    /// A condition that is none.
    #[error("`@{0}` is no condition\nhint: rows=3,7,10-12 or rate=1% or time=10s-20s")]
    When(String),
}

/// Reads `WORD[=VALUE]`.
pub(super) fn fault(text: &str) -> Result<Fault, FaultError> {
    let (word, value) = match text.split_once('=') {
        Some((word, value)) => (word, Some(value)),
        None => (text, None),
    };
    if let Some(fault) = one_of(word, &PLAIN) {
        let wanted = "no value";
        return match value {
            None => Ok(fault),
            Some(_) => Err(FaultError::Value { fault: text.to_owned(), wanted }),
        };
    }
    let (read, wanted) =
        valued(word, value.unwrap_or("")).ok_or_else(|| FaultError::Unknown(text.to_owned()))?;
    read.ok_or_else(|| FaultError::Value { fault: text.to_owned(), wanted })
}

/// Faults with a value, and what that has to be; `None`: no such fault.
fn valued(word: &str, value: &str) -> Option<(Option<Fault>, &'static str)> {
    let span = || Nanos::parse_duration(value).ok();
    let within = |low: u16, high: u16| {
        value.parse::<u16>().ok().filter(|status| (low..=high).contains(status))
    };
    // `HOW,N`, with `otherwise` where no number is given.
    let counted = |otherwise: u64| match value.split_once(',') {
        None => Some((value, otherwise)),
        Some((how, after)) => Some((how, after.trim().parse().ok()?)),
    };
    Some(match word {
        "hangup" => {
            (how(value).filter(|how| *how != Break::End).map(Fault::Hangup), "`close` or `reset`")
        }
        "status" => (within(400, 599).map(Fault::Status), "a status from 400 to 599"),
        "redirect" => (within(300, 399).map(Fault::Redirect), "a status from 300 to 399"),
        "headers" => (span().map(Fault::Headers), "a duration such as 2s"),
        "late-usage" => (span().map(Fault::LateUsage), "a duration such as 1s"),
        "idle" => (span().map(Fault::Idle), "a duration such as 1s"),
        "error" => (
            counted(0)
                .and_then(|(form, after)| Some(Fault::Error(one_of(form, &ERROR_FORMS)?, after))),
            "`object`, `string`, `event`, `field` or `bare`, and maybe `,N` tokens before it",
        ),
        "stall" => (
            counted(1).and_then(|(span, after)| {
                Some(Fault::Stall(Nanos::parse_duration(span).ok()?, after.max(1)))
            }),
            "a duration such as 2s, and maybe `,N` tokens before it",
        ),
        "cut" => (
            counted(1).and_then(|(word, after)| Some(Fault::Cut(how(word)?, after))),
            "`end`, `close` or `reset`, and maybe `,N` tokens before it",
        ),
        "open" => (one_of(value, &OPEN).map(Fault::Open), "no value, `bare` or `mute`"),
        "group" => (
            value.parse().ok().filter(|tokens| *tokens >= 1).map(Fault::Group),
            "a number of tokens, at least 1",
        ),
        "long-line" => (
            value.parse().ok().filter(|bytes| *bytes <= LINE_BYTES).map(Fault::LongLine),
            "a number of bytes, at most 67108864",
        ),
        "reasoning" => (reasoning(ReasoningKey::Reasoning, value), "a number of tokens"),
        "reasoning-content" => {
            (reasoning(ReasoningKey::ReasoningContent, value), "a number of tokens")
        }
        _ => return None,
    })
}

fn reasoning(key: ReasoningKey, value: &str) -> Option<Fault> {
    let tokens = if value.is_empty() { u64::MAX } else { value.parse().ok()? };
    Some(Fault::Reasoning(key, tokens))
}

fn how(word: &str) -> Option<Break> {
    one_of(word, &[("end", Break::End), ("close", Break::Close), ("reset", Break::Reset)])
}

/// What a word stands for.
fn one_of<T: Copy>(word: &str, known: &[(&str, T)]) -> Option<T> {
    known.iter().find(|(name, _)| *name == word).map(|(_, value)| *value)
}
