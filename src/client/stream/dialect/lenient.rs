//! The patient reading of a chunk: any JSON object, whatever the types of its fields.
//!
//! It reads what [`super::quick`] gives up on, at leisure, and is the slow obvious reading that the
//! quick one is tested against. A field of an unexpected type says nothing; only text that is no JSON
//! object is an error.

use serde_json::value::RawValue;

use super::chunk::{ABSURD_TOK, Chunk, Text, counted};
use super::error_text::message_of;
use super::raw::{Member, elements, last, members, members_or_none, text_of};
use crate::record::Usage;

/// How deep parts of parts are followed.
const DEPTH: usize = 4;

/// Reads any JSON object.
pub(super) fn read(text: &str) -> Result<Chunk<'_>, serde_json::Error> {
    let members = members(text)?;
    let mut chunk = Chunk::default();
    let mut kinds = Text::default();
    for (key, value) in &members {
        match key.as_ref() {
            "id" => chunk.id = text_of(value),
            "usage" => chunk.usage = counts(value),
            "choices" => {
                for choice in elements(value) {
                    read_choice(choice, &mut kinds, &mut chunk);
                }
            }
            _ => {}
        }
    }
    chunk.kind = kinds.kind();
    chunk.error = failure(&members);
    Ok(chunk)
}

fn read_choice<'a>(choice: &'a RawValue, kinds: &mut Text, chunk: &mut Chunk<'a>) {
    for (key, value) in members_or_none(choice) {
        match key.as_ref() {
            "text" => kinds.content |= filled(value),
            "delta" => *kinds |= delta(value),
            "finish_reason" if chunk.finish_reason.is_none() => {
                chunk.finish_reason = text_of(value);
            }
            _ => {}
        }
    }
}

fn delta(delta: &RawValue) -> Text {
    let mut kinds = Text::default();
    for (key, value) in members_or_none(delta) {
        match key.as_ref() {
            "content" => kinds |= parts(value),
            "text" | "refusal" => kinds.content |= filled(value),
            "reasoning" | "reasoning_content" => kinds.reasoning |= filled(value),
            "tool_calls" => {
                for call in elements(value) {
                    let function = last(&members_or_none(call), "function");
                    kinds.tool |= function.is_some_and(names_or_argues);
                }
            }
            "function_call" => kinds.tool |= names_or_argues(value),
            _ => {}
        }
    }
    kinds
}

/// Text as a string or as typed parts: `text`, `refusal`, and `thinking`, which has parts of its own.
fn parts(value: &RawValue) -> Text {
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
fn filled(value: &RawValue) -> bool {
    value.get().len() > 2 && value.get().starts_with('"')
}

/// Whether a function has a name or arguments, which some servers send as an object.
fn names_or_argues(function: &RawValue) -> bool {
    members_or_none(function).iter().any(|(key, value)| match key.as_ref() {
        "name" => filled(value),
        "arguments" => filled(value) || !members_or_none(value).is_empty(),
        _ => false,
    })
}

fn counts(value: &RawValue) -> Option<Usage> {
    let members = members_or_none(value);
    let number = |members: &[Member<'_>], key| last(members, key).and_then(count);
    let detail = |key, inner| number(&members_or_none(last(&members, key)?), inner);
    counted(Usage {
        input_tok: number(&members, "prompt_tokens"),
        output_tok: number(&members, "completion_tokens"),
        cached_tok: detail("prompt_tokens_details", "cached_tokens")
            .or_else(|| number(&members, "prompt_cache_hit_tokens")),
        reasoning_tok: detail("completion_tokens_details", "reasoning_tokens")
            .or_else(|| number(&members, "reasoning_tokens")),
        running: false,
    })
}

/// A token count: a whole number, also spelled `12.0`; anything else is none.
fn count(number: &RawValue) -> Option<u64> {
    let text = number.get();
    if let Ok(count) = text.parse::<u64>() {
        return (count <= ABSURD_TOK).then_some(count);
    }
    let count = text.parse::<f64>().ok()?;
    if !(0.0..=ABSURD_TOK as f64).contains(&count) {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between zero and 2^40, as just seen"
    )]
    Some(count.round() as u64)
}

/// The server's words when the chunk is an error in one of the forms seen: an `error` object or
/// string, `"object":"error"`, or a flat `message` or `detail` where an answer would have `choices`.
fn failure(members: &[Member<'_>]) -> Option<String> {
    if let Some(error) = last(members, "error")
        && !matches!(error.get(), "null" | "false" | "0" | "\"\"" | "{}" | "[]")
    {
        return Some(message_of(error));
    }
    let is_error = last(members, "object").and_then(text_of).as_deref() == Some("error");
    let answers = ["choices", "usage"].iter().any(|key| last(members, key).is_some());
    let message = last(members, "message").filter(|message| filled(message));
    match message.or_else(|| last(members, "detail")) {
        Some(message) if is_error || !answers => Some(message_of(message)),
        None if is_error && !answers => Some("an error without a message".to_owned()),
        _ => None,
    }
}
