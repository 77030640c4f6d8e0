//! One entry of a file of prompts: which of the forms it has, and what it says.
//!
//! Deliberately absent: where it stands; a fault names the key, and the file's reader the place.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::trace::Content;

/// Keys of a batch request that the run decides.
const OURS: [&str; 8] = [
    "model",
    "messages",
    "prompt",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "n",
];

/// What is wrong with an entry.
pub(super) struct Fault {
    pub(super) key: Option<&'static str>,
    pub(super) problem: String,
}

impl Fault {
    fn at(key: &'static str, problem: impl Into<String>) -> Self {
        Self { key: Some(key), problem: problem.into() }
    }

    pub(super) fn whole(problem: impl Into<String>) -> Self {
        Self { key: None, problem: problem.into() }
    }
}

#[derive(Deserialize)]
struct PromptEntry<'a> {
    #[serde(borrow)]
    prompt: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    #[serde(borrow)]
    conversations: Option<&'a RawValue>,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
}

/// One entry; `None` for a conversation in which nobody asks anything.
pub(super) fn entry(json: &str) -> Result<Option<Content>, Fault> {
    if !json.trim_start().starts_with('{') {
        return Err(Fault::whole("is no JSON object; write one per line"));
    }
    let entry: PromptEntry<'_> = serde_json::from_str(json).map_err(|error| {
        let words = error.to_string();
        let what = words.split(" at line ").next().unwrap_or(&words);
        Fault::whole(format!("no valid JSON at column {}: {what}", error.column()))
    })?;
    match entry {
        PromptEntry { prompt: None, messages: None, conversations: None, body: None } => {
            Err(Fault::whole(
                "has none of the keys `prompt`, `messages`, `conversations` and `body`; name the text `prompt`",
            ))
        }
        PromptEntry { prompt: None, messages: None, conversations: Some(turns), body } => {
            let messages = conversation(turns)?;
            let body = body.map(object).transpose()?;
            Ok(messages.map(|messages| Content { messages: Some(messages), body, prompt: None }))
        }
        PromptEntry { prompt: None, messages: None, conversations: None, body: Some(body) } => {
            batch(body).map(Some)
        }
        PromptEntry { prompt, messages, body, .. } => {
            let body = body.map(object).transpose()?;
            content(prompt, messages, body).map(Some)
        }
    }
}

fn content(
    prompt: Option<&RawValue>,
    messages: Option<&RawValue>,
    body: Option<Box<RawValue>>,
) -> Result<Content, Fault> {
    if let Some(messages) = messages {
        if !messages.get().starts_with('[')
            || serde_json::from_str::<[&RawValue; 0]>(messages.get()).is_ok()
        {
            return Err(Fault::at("messages", "is no array of messages; write one, or a `prompt`"));
        }
        return Ok(Content { messages: Some(messages.to_owned()), prompt: None, body });
    }
    let text = prompt.and_then(|prompt| serde_json::from_str::<String>(prompt.get()).ok());
    match text.filter(|text| !text.is_empty()) {
        Some(text) => Ok(Content { prompt: Some(text), messages: None, body }),
        None => Err(Fault::at("prompt", "is no text, or has nothing in it; write a JSON string")),
    }
}

fn object(body: &RawValue) -> Result<Box<RawValue>, Fault> {
    if body.get().starts_with('{') {
        Ok(body.to_owned())
    } else {
        Err(Fault::at("body", "is no JSON object; write one, or leave it out"))
    }
}

/// A line of `OpenAI`'s batch input: the request's own keys, but for those that the run decides.
fn batch(body: &RawValue) -> Result<Content, Fault> {
    let members: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(body.get())
        .map_err(|_| Fault::at("body", "is no JSON object; write a request with `messages`"))?;
    let (prompt, messages) = (members.get("prompt").copied(), members.get("messages").copied());
    if prompt.or(messages).is_none() {
        return Err(Fault::at("body", "has neither `messages` nor `prompt`; give one of them"));
    }
    let rest: BTreeMap<_, _> =
        members.iter().filter(|(key, _)| !OURS.contains(&key.as_ref())).collect();
    let rest = (!rest.is_empty())
        .then(|| serde_json::value::to_raw_value(&rest))
        .transpose()
        .map_err(|error| Fault::at("body", error.to_string()))?;
    content(prompt, messages, rest)
}

#[derive(Deserialize)]
struct ShareGptTurn<'a> {
    #[serde(borrow)]
    from: Cow<'a, str>,
    #[serde(borrow)]
    value: Cow<'a, str>,
}

#[derive(serde::Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
}

/// A `ShareGPT` conversation as messages, up to its last human turn.
fn conversation(turns: &RawValue) -> Result<Option<Box<RawValue>>, Fault> {
    const KEY: &str = "conversations";
    let turns: Vec<ShareGptTurn<'_>> = serde_json::from_str(turns.get())
        .map_err(|_| Fault::at(KEY, "is no array of turns with text in `from` and `value`"))?;
    let mut messages = Vec::with_capacity(turns.len());
    for turn in turns.iter().filter(|turn| !turn.value.is_empty()) {
        let role = match turn.from.as_ref() {
            "human" | "user" => "user",
            "gpt" | "chatgpt" | "bing" | "bard" | "assistant" | "model" => "assistant",
            "system" => "system",
            other => {
                let other: String = other.chars().take(40).collect();
                let problem = format!("has a turn from `{other}`; known are human, gpt and system");
                return Err(Fault::at(KEY, problem));
            }
        };
        messages.push(Message { role, content: &turn.value });
    }
    let asked = messages.iter().rposition(|message| message.role == "user");
    let Some(last) = asked else { return Ok(None) };
    messages.truncate(last + 1);
    let messages = serde_json::value::to_raw_value(&messages);
    messages.map(Some).map_err(|error| Fault::at(KEY, error.to_string()))
}
