//! The APIs of a server that generate text, and the bodies of requests to them, in a fixed key order,
//! so that one row is always the same bytes.
//!
//! Vendor keys stand in them only when asked for: strict gateways refuse what they do not know.
//! Deliberately absent: prompts of a wanted length (see [`crate::prompt`]) and the choice of keys by
//! engine, which is the caller's.

use std::fmt;
use std::str::FromStr;

use serde_json::value::RawValue;

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

crate::units::serialize_as_text!(Api);

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

/// What a body says beside its prompt.
#[derive(Clone, Copy, Debug, Default)]
pub struct BodyParams<'a> {
    /// The API it is for.
    pub api: Api,
    /// `model`; left out where there is none.
    pub model: Option<&'a str>,
    /// The longest answer, in tokens; `None`: the body names none, and the answer ends by itself.
    pub max_tokens: Option<u32>,
    /// What the body calls it.
    pub max_tokens_key: MaxTokensKey,
    /// `stream_options.include_usage`.
    pub include_usage: bool,
    /// `stream_options.continuous_usage_stats`: a vendor key, and it implies `include_usage`.
    pub running_usage: bool,
    /// `ignore_eos`: a vendor key.
    pub ignore_eos: bool,
}

/// What a body calls the longest answer: newer hosted models take only the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokensKey {
    /// `max_tokens`
    #[default]
    MaxTokens,
    /// `max_completion_tokens`
    MaxCompletionTokens,
}

impl FromStr for MaxTokensKey {
    type Err = UnknownKey;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "max_tokens" => Ok(Self::MaxTokens),
            "max_completion_tokens" => Ok(Self::MaxCompletionTokens),
            _ => Err(UnknownKey(word.to_owned())),
        }
    }
}

/// A word that names no such key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown key `{0}`; known are max_tokens and max_completion_tokens")]
pub struct UnknownKey(String);

/// What is sent for completion.
#[derive(Clone, Copy, Debug)]
pub enum Prompt<'a> {
    /// Text: the one user message of a chat, or the prompt of a completion.
    Text(&'a str),
    /// The messages of a chat, as JSON.
    Messages(&'a RawValue),
    /// Token ids: the prompt of a completion.
    Ids(&'a [u32]),
}

/// Why a prompt cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Messages are for chats.
    #[error("messages cannot be sent to the completions API; use --api chat")]
    MessagesToCompletions,
    /// Token ids are for completions.
    #[error("token ids cannot be sent to the chat API; use --api completions")]
    IdsToChat,
}

/// Writes the body of one request.
pub fn body(params: &BodyParams<'_>, prompt: Prompt<'_>) -> Result<Vec<u8>, BodyError> {
    let mut out = Vec::with_capacity(256 + prompt.size_hint());
    out.push(b'{');
    if let Some(model) = params.model {
        out.extend_from_slice(b"\"model\":");
        write_json(&mut out, model);
        out.push(b',');
    }
    match (params.api, prompt) {
        (Api::Chat, Prompt::Text(text)) => {
            out.extend_from_slice(b"\"messages\":[{\"role\":\"user\",\"content\":");
            write_json(&mut out, text);
            out.extend_from_slice(b"}]");
        }
        (Api::Chat, Prompt::Messages(messages)) => {
            out.extend_from_slice(b"\"messages\":");
            out.extend_from_slice(messages.get().as_bytes());
        }
        (Api::Completions, Prompt::Text(text)) => {
            out.extend_from_slice(b"\"prompt\":");
            write_json(&mut out, text);
        }
        (Api::Completions, Prompt::Ids(ids)) => {
            out.extend_from_slice(b"\"prompt\":");
            write_json(&mut out, ids);
        }
        (Api::Chat, Prompt::Ids(_)) => return Err(BodyError::IdsToChat),
        (Api::Completions, Prompt::Messages(_)) => return Err(BodyError::MessagesToCompletions),
    }
    if let Some(max_tokens) = params.max_tokens {
        out.extend_from_slice(match params.max_tokens_key {
            MaxTokensKey::MaxTokens => b",\"max_tokens\":",
            MaxTokensKey::MaxCompletionTokens => b",\"max_completion_tokens\":",
        });
        write_json(&mut out, &max_tokens);
    }
    out.extend_from_slice(b",\"stream\":true");
    if params.running_usage {
        out.extend_from_slice(
            b",\"stream_options\":{\"include_usage\":true,\"continuous_usage_stats\":true}",
        );
    } else if params.include_usage {
        out.extend_from_slice(b",\"stream_options\":{\"include_usage\":true}");
    }
    if params.ignore_eos {
        out.extend_from_slice(b",\"ignore_eos\":true");
    }
    out.push(b'}');
    Ok(out)
}

impl Prompt<'_> {
    /// About the bytes it takes; ids of common vocabularies have up to six digits.
    fn size_hint(&self) -> usize {
        match self {
            Self::Text(text) => text.len() + text.len() / 16,
            Self::Messages(messages) => messages.get().len(),
            Self::Ids(ids) => ids.len() * 7,
        }
    }
}

fn write_json<T: serde::Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(out, value)
        .expect("strings and numbers always are JSON, and memory takes them");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).expect("JSON")
    }

    #[test]
    fn bodies_are_plain_and_in_a_fixed_order() {
        let check = |params: BodyParams<'_>, prompt: Prompt<'_>, expect: &str| {
            let body = body(&params, prompt).expect("a body");
            assert_eq!(String::from_utf8(body).expect("UTF-8"), expect);
        };
        let chat = BodyParams { model: Some("m\"1"), max_tokens: Some(7), ..BodyParams::default() };
        check(
            BodyParams { include_usage: true, ..chat },
            Prompt::Text("say \"é\"\n"),
            r#"{"model":"m\"1","messages":[{"role":"user","content":"say \"é\"\n"}],"max_tokens":7,"stream":true,"stream_options":{"include_usage":true}}"#,
        );
        let messages = raw(r#"[{"role":"system", "content":"s"}]"#);
        check(
            BodyParams { model: None, ignore_eos: true, ..chat },
            Prompt::Messages(&messages),
            r#"{"messages":[{"role":"system", "content":"s"}],"max_tokens":7,"stream":true,"ignore_eos":true}"#,
        );
        let completions = BodyParams { api: Api::Completions, ..chat };
        check(
            BodyParams { running_usage: true, ..completions },
            Prompt::Ids(&[1, 0, 4_294_967_295]),
            r#"{"model":"m\"1","prompt":[1,0,4294967295],"max_tokens":7,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}"#,
        );
        let key = "max_completion_tokens".parse().expect("a key");
        check(
            BodyParams { model: None, max_tokens_key: key, ..chat },
            Prompt::Text("a"),
            r#"{"messages":[{"role":"user","content":"a"}],"max_completion_tokens":7,"stream":true}"#,
        );
        check(
            BodyParams { model: None, ..completions },
            Prompt::Text(""),
            r#"{"prompt":"","max_tokens":7,"stream":true}"#,
        );
        check(
            BodyParams { model: None, max_tokens: None, include_usage: true, ..chat },
            Prompt::Text("a"),
            r#"{"messages":[{"role":"user","content":"a"}],"stream":true,"stream_options":{"include_usage":true}}"#,
        );
        assert_eq!(body(&chat, Prompt::Ids(&[1])), Err(BodyError::IdsToChat));
        assert_eq!(
            body(&completions, Prompt::Messages(&messages)),
            Err(BodyError::MessagesToCompletions)
        );
    }
}
