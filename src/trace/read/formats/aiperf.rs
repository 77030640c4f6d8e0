//! What `AIPerf` adds to Mooncake's rows: words, whole bodies, and turns that follow one another.
//!
//! A row has one of `input_length`, `text_input`, `messages` and `payload`. Where it says its prompt in
//! words and no length, the length is an estimate (4 bytes a token), which is said: the words are sent as
//! they are, and only counts made before sending rest on it.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::super::error::Fault;
use super::super::json::{JsonRow, raw_value, text};
use super::super::number::token_count;
use crate::trace::Content;

/// Keys of a row: four of Mooncake's own, and those that `AIPerf` adds.
pub(super) const TOTAL: usize = 11;
pub(super) const NAMES: [&str; TOTAL] = [
    "timestamp",
    "input_length",
    "output_length",
    "hash_ids",
    "session_id",
    "delay",
    "text_input",
    "messages",
    "tools",
    "payload",
    "extra",
];
pub(super) const TIME: usize = 0;
pub(super) const INPUT: usize = 1;
pub(super) const OUTPUT: usize = 2;
pub(super) const IDS: usize = 3;
pub(super) const SESSION: usize = 4;
pub(super) const DELAY: usize = 5;
const TEXT: usize = 6;
const MESSAGES: usize = 7;
const TOOLS: usize = 8;
const PAYLOAD: usize = 9;
const EXTRA: usize = 10;

/// Bytes of text that count as a token, where nobody counted.
const BYTES_PER_TOK: usize = 4;

/// What a row says beyond times and ids.
pub(super) struct RowContent {
    pub(super) content: Option<Box<Content>>,
    pub(super) input_tok: u32,
    pub(super) output_tok: u32,
    /// Whether the prompt's length is an estimate.
    pub(super) is_estimate: bool,
}

/// Reads lengths and words of a row.
pub(super) fn read_content(row: &JsonRow<'_, TOTAL>) -> Result<RowContent, Fault> {
    let prompts = [TEXT, MESSAGES, PAYLOAD].map(|name| row.slots[name]);
    let described = [row.slots[INPUT]].iter().chain(&prompts).flatten().count();
    let prompt_count = prompts.iter().flatten().count();
    if described == 0 {
        return Err(Fault::at(
            NAMES[INPUT],
            "the key is missing; every row needs it, or else `text_input`, `messages` or `payload`",
        ));
    }
    if prompt_count > 1 {
        return Err(Fault::row(
            "the row says its prompt more than once; keep one of `text_input`, `messages` and `payload`",
        ));
    }
    let bytes = prompts.iter().flatten().map(|raw| raw.len()).sum::<usize>();
    let estimate = u32::try_from(bytes / BYTES_PER_TOK).unwrap_or(u32::MAX).max(1);
    let input_tok = row.tokens_if_any(INPUT)?;
    let output_tok = match row.tokens_if_any(OUTPUT)? {
        Some(count) => count,
        None => most_tokens(row)?.map_or_else(|| row.tokens(OUTPUT), Ok)?,
    };
    Ok(RowContent {
        content: content(row)?,
        input_tok: input_tok.unwrap_or(estimate),
        output_tok,
        is_estimate: input_tok.is_none(),
    })
}

/// The answer's length as a body asks for it.
fn most_tokens(row: &JsonRow<'_, TOTAL>) -> Result<Option<u32>, Fault> {
    const LIMITS: [&str; 2] = ["max_completion_tokens", "max_tokens"];
    for name in [PAYLOAD, EXTRA] {
        let limits = JsonRow::nested(row.slots[name], NAMES[name], &LIMITS)?;
        for (key, raw) in LIMITS.iter().zip(limits.slots) {
            if let Some(raw) = raw {
                return token_count(raw.as_bytes()).map(Some).map_err(|what| Fault::at(key, what));
            }
        }
    }
    Ok(None)
}

fn content(row: &JsonRow<'_, TOTAL>) -> Result<Option<Box<Content>>, Fault> {
    let raw = |name: usize, opening: char| {
        row.slots[name].map(|raw| raw_value(raw, opening, NAMES[name])).transpose()
    };
    let prompt = row.slots[TEXT].map(|raw| text(raw, NAMES[TEXT])).transpose()?;
    let messages = raw(MESSAGES, '[')?;
    let (tools, payload) = (raw(TOOLS, '[')?, raw(PAYLOAD, '{')?);
    let extra = raw(EXTRA, '{')?;
    let mut keys: BTreeMap<String, &RawValue> = BTreeMap::new();
    for object in [&payload, &extra].into_iter().flatten() {
        let own = serde_json::from_str::<BTreeMap<String, &RawValue>>(object.get());
        keys.extend(own.map_err(|error| Fault::at(NAMES[EXTRA], error.to_string()))?);
    }
    if let Some(tools) = &tools {
        keys.insert(NAMES[TOOLS].to_owned(), tools);
    }
    let body = (!keys.is_empty())
        .then(|| serde_json::value::to_raw_value(&keys))
        .transpose()
        .map_err(|error| Fault::row(error.to_string()))?;
    let is_there = prompt.is_some() || messages.is_some() || body.is_some();
    Ok(is_there.then(|| Box::new(Content { prompt, messages, body })))
}
