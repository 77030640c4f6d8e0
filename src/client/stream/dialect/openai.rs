//! The quick reading of a chunk of chat completions or completions: typed, borrowed, one pass.
//!
//! It reads what servers send a million times and gives up on everything else, which [`super::lenient`]
//! then reads: odd types, repeated keys, errors, chunks without `choices`. It never errs on its own.
//! Of a text only its emptiness is read, so nothing is unescaped and nothing is allocated.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::chunk::{Chunk, Text, parts};
use crate::record::Usage;

/// More tokens than any count can mean: 2^40. Larger numbers are ignored.
pub(super) const ABSURD_TOK: u64 = 1 << 40;

/// Reads a chunk that keeps to the form; `None` asks for the lenient reading.
pub(super) fn read(text: &str) -> Option<Chunk<'_>> {
    let Object(wire) = serde_json::from_str::<Object<Wire<'_>>>(text).ok()?;
    if wire.error.is_some() || wire.message.is_some() || wire.detail.is_some() {
        return None;
    }
    let choices = wire.choices?;
    Some(Chunk {
        kind: choices.text.kind(),
        finish_reason: choices.finish_reason.0,
        usage: wire.usage.and_then(|Object(usage)| usage.counts()),
        id: wire.id.0,
        error: None,
    })
}

#[derive(serde::Deserialize)]
struct Wire<'a> {
    #[serde(borrow, default)]
    id: Word<'a>,
    #[serde(borrow, default)]
    choices: Option<Choices<'a>>,
    #[serde(default)]
    usage: Option<Object<WireUsage>>,
    #[serde(default)]
    error: Option<IgnoredAny>,
    #[serde(default)]
    message: Option<IgnoredAny>,
    #[serde(default)]
    detail: Option<IgnoredAny>,
}

/// All choices, folded.
#[derive(Default)]
struct Choices<'a> {
    text: Text,
    finish_reason: Word<'a>,
}

#[derive(serde::Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    delta: Option<Object<Delta>>,
    #[serde(default)]
    text: Filled,
    #[serde(borrow, default)]
    finish_reason: Word<'a>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Delta {
    content: Content,
    text: Filled,
    refusal: Filled,
    reasoning: Filled,
    reasoning_content: Filled,
    tool_calls: Tools,
    function_call: Option<Object<Function>>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Function {
    name: Filled,
    arguments: Filled,
}

#[derive(serde::Deserialize)]
struct ToolCall {
    #[serde(default)]
    function: Option<Object<Function>>,
}

/// Counts as servers name them.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct WireUsage {
    prompt_tokens: Count,
    completion_tokens: Count,
    prompt_tokens_details: Option<Object<PromptDetails>>,
    completion_tokens_details: Option<Object<CompletionDetails>>,
    /// `DeepSeek`.
    prompt_cache_hit_tokens: Count,
    /// `SGLang`.
    reasoning_tokens: Count,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct PromptDetails {
    cached_tokens: Count,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct CompletionDetails {
    reasoning_tokens: Count,
}

impl Delta {
    fn text(&self) -> Text {
        let Content(mut text) = self.content;
        text.content |= self.text.0 || self.refusal.0;
        text.reasoning |= self.reasoning.0 || self.reasoning_content.0;
        text.tool |=
            self.tool_calls.0 || self.function_call.as_ref().is_some_and(|call| call.0.any());
        text
    }
}

impl Function {
    fn any(&self) -> bool {
        self.name.0 || self.arguments.0
    }
}

impl WireUsage {
    fn counts(self) -> Option<Usage> {
        let cached = self.prompt_tokens_details.and_then(|Object(details)| details.cached_tokens.0);
        let reasoning =
            self.completion_tokens_details.and_then(|Object(details)| details.reasoning_tokens.0);
        usage(Usage {
            input_tok: self.prompt_tokens.0,
            output_tok: self.completion_tokens.0,
            cached_tok: cached.or(self.prompt_cache_hit_tokens.0),
            reasoning_tok: reasoning.or(self.reasoning_tokens.0),
            running: false,
        })
    }
}

/// A usage that counts nothing is none.
pub(super) fn usage(usage: Usage) -> Option<Usage> {
    (usage != Usage::default()).then_some(usage)
}

/// A token count: a whole number, also spelled `12.0`; anything else is none.
pub(super) fn count(number: &RawValue) -> Option<u64> {
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

/// A struct that is read from an object only; derived code would also take an array of its fields.
struct Object<T>(T);

/// A string or nothing; the empty string is nothing.
#[derive(Default)]
struct Word<'a>(Option<Cow<'a, str>>);

/// Whether a string with something in it stands here.
#[derive(Clone, Copy, Default)]
struct Filled(bool);

/// The same where a list of typed parts may stand instead.
#[derive(Clone, Copy, Default)]
struct Content(Text);

/// Whether any of the calls has a name or arguments.
#[derive(Clone, Copy, Default)]
struct Tools(bool);

#[derive(Default)]
struct Count(Option<u64>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData)).map(Self)
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Word<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordVisitor).map(Self)
    }
}

struct WordVisitor;

impl<'de> Visitor<'de> for WordVisitor {
    type Value = Option<Cow<'de, str>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or null")
    }

    fn visit_borrowed_str<E>(self, word: &'de str) -> Result<Self::Value, E> {
        Ok((!word.is_empty()).then_some(Cow::Borrowed(word)))
    }

    fn visit_str<E>(self, word: &str) -> Result<Self::Value, E> {
        Ok((!word.is_empty()).then(|| Cow::Owned(word.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

impl<'de> Deserialize<'de> for Filled {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match <&RawValue>::deserialize(deserializer)?.get() {
            "null" | "\"\"" => Ok(Self(false)),
            text if text.starts_with('"') => Ok(Self(true)),
            _ => Err(D::Error::custom("not a string")),
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = <&RawValue>::deserialize(deserializer)?;
        match value.get() {
            "null" | "\"\"" => Ok(Self::default()),
            text if text.starts_with('"') => Ok(Self(Text { content: true, ..Text::default() })),
            text if text.starts_with('[') => Ok(Self(parts(value))),
            _ => Err(D::Error::custom("neither a string nor parts")),
        }
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(count(<&RawValue>::deserialize(deserializer)?)))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Choices<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ChoicesVisitor)
    }
}

struct ChoicesVisitor;

impl<'de> Visitor<'de> for ChoicesVisitor {
    type Value = Choices<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of choices")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut choices = Choices::default();
        while let Some(Object(choice)) = seq.next_element::<Object<Choice<'de>>>()? {
            choices.text.content |= choice.text.0;
            if let Some(Object(delta)) = &choice.delta {
                choices.text |= delta.text();
            }
            if choices.finish_reason.0.is_none() {
                choices.finish_reason = choice.finish_reason;
            }
        }
        Ok(choices)
    }
}

impl<'de> Deserialize<'de> for Tools {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ToolsVisitor)
    }
}

struct ToolsVisitor;

impl<'de> Visitor<'de> for ToolsVisitor {
    type Value = Tools;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of tool calls or null")
    }

    fn visit_unit<E>(self) -> Result<Tools, E> {
        Ok(Tools(false))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Tools, A::Error> {
        let mut any = false;
        while let Some(Object(call)) = seq.next_element::<Object<ToolCall>>()? {
            any |= call.function.is_some_and(|Object(function)| function.any());
        }
        Ok(Tools(any))
    }
}
