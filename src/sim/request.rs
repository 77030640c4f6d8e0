//! What a client asks for: the JSON body of a generation request, reduced to what the model needs.
//!
//! Texts are counted and let go of, never kept. Absent: sampling parameters, tools, images; fields
//! that are not named here are ignored, as servers do.
//!
//! # How the prompt is counted
//! As many tokens as there are ids in a prompt of ids; else as many as there are words between
//! whitespace, summed over the messages (over the text parts of a message). No template is added.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::refusal::Refusal;
use super::settings::Settings;

/// The two endpoints that generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Api {
    /// `/v1/chat/completions`
    Chat,
    /// `/v1/completions`
    Completions,
}

/// A request that can be admitted, but for its length by chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the protocol")]
pub(super) struct Ask {
    pub(super) api: Api,
    pub(super) prompt_tok: u64,
    pub(super) min_tok: u64,
    pub(super) max_tok: u64,
    /// Nobody named a longest answer, and `max_tok` is the room that the prompt leaves.
    pub(super) is_open_ended: bool,
    pub(super) is_stream: bool,
    pub(super) ignore_eos: bool,
    /// A usage chunk at the end of the stream.
    pub(super) usage: bool,
    /// Usage so far on every chunk; asks for the one at the end too.
    pub(super) running_usage: bool,
}

/// The body as it is written. Numbers are signed so that a negative one is refused by name; what may
/// have several forms is looked at only when its turn comes.
#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    messages: Option<Vec<Message<'a>>>,
    #[serde(borrow)]
    prompt: Option<&'a RawValue>,
    max_tokens: Option<i64>,
    max_completion_tokens: Option<i64>,
    min_tokens: Option<i64>,
    n: Option<i64>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    ignore_eos: Option<bool>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

/// One of several parts of a message.
#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
    continuous_usage_stats: Option<bool>,
}

impl Ask {
    /// Reads and checks a body, in the order in which vLLM does: form, model, lengths.
    pub(super) fn read(api: Api, body: &[u8], settings: &Settings) -> Result<Self, Refusal> {
        let body: Body = serde_json::from_slice(body).map_err(|error| Refusal::bad_json(&error))?;
        if let Some(model) = body.model.as_deref().filter(|name| *name != settings.model) {
            return Err(Refusal::unknown_model(model, &settings.model));
        }
        let prompt_tok = body.prompt_tok(api)?;
        if body.n.is_some_and(|n| n != 1) {
            return Err(Refusal::parameter(
                "n",
                "the simulated server gives one choice: n must be 1",
            ));
        }
        let (min_tok, max_tok) = body.limits_tok(api, prompt_tok, settings.max_model_len_tok)?;
        let is_open_ended = api == Api::Chat && body.asked_tok(api).1.is_none();
        let is_stream = body.stream.unwrap_or(false);
        let options = body.stream_options.as_ref().filter(|_| is_stream);
        let usage = options.and_then(|options| options.include_usage).unwrap_or(false);
        let running = options.and_then(|options| options.continuous_usage_stats).unwrap_or(false);
        Ok(Self {
            api,
            prompt_tok,
            min_tok,
            max_tok,
            is_open_ended,
            is_stream,
            ignore_eos: body.ignore_eos.unwrap_or(false),
            usage,
            // As in vLLM, where running usage without the usage at the end is no usage.
            running_usage: usage && running,
        })
    }
}

impl Body<'_> {
    fn prompt_tok(&self, api: Api) -> Result<u64, Refusal> {
        match api {
            Api::Chat => {
                let messages =
                    self.messages.as_ref().ok_or_else(|| Refusal::missing("messages"))?;
                if messages.is_empty() {
                    return Err(Refusal::parameter("messages", "messages must not be empty"));
                }
                messages.iter().map(Message::count_words).sum()
            }
            Api::Completions => {
                tokens(self.prompt.ok_or_else(|| Refusal::missing("prompt"))?.get())
            }
        }
    }

    /// What the longest answer is called, and what it is where it is asked for.
    fn asked_tok(&self, api: Api) -> (&'static str, Option<i64>) {
        match self.max_completion_tokens {
            Some(asked) if api == Api::Chat => ("max_completion_tokens", Some(asked)),
            _ => ("max_tokens", self.max_tokens),
        }
    }

    /// (`min_tokens`, the longest answer), checked against the model's length.
    fn limits_tok(&self, api: Api, prompt_tok: u64, len_tok: u64) -> Result<(u64, u64), Refusal> {
        let (key, asked) = self.asked_tok(api);
        let asked = match asked.map(|asked| u64::try_from(asked).map_err(|_| asked)) {
            None => None,
            Some(Ok(tok)) if tok > 0 => Some(tok),
            Some(Ok(_)) => return Err(Refusal::too_few(key, 0)),
            Some(Err(negative)) => return Err(Refusal::too_few(key, negative)),
        };
        if prompt_tok >= len_tok {
            return Err(Refusal::too_long(prompt_tok, len_tok));
        }
        let room_tok = len_tok - prompt_tok;
        let max_tok = asked.unwrap_or(match api {
            Api::Chat => room_tok,
            Api::Completions => room_tok.min(16),
        });
        if max_tok > room_tok {
            return Err(Refusal::too_much(prompt_tok, max_tok, len_tok));
        }
        let min_tok = u64::try_from(self.min_tokens.unwrap_or(0))
            .map_err(|_| Refusal::parameter("min_tokens", "min_tokens must be at least 0"))?;
        if min_tok > max_tok {
            let message = format!("min_tokens must not exceed {key}={max_tok}, got {min_tok}.");
            return Err(Refusal::parameter("min_tokens", &message));
        }
        Ok((min_tok, max_tok))
    }
}

impl Message<'_> {
    fn count_words(&self) -> Result<u64, Refusal> {
        // An assistant's message that only calls tools has none.
        let Some(content) = self.content.map(RawValue::get) else { return Ok(0) };
        if let Ok(text) = serde_json::from_str::<Cow<str>>(content) {
            return Ok(count_words(&text));
        }
        let parts = serde_json::from_str::<Vec<Part>>(content).map_err(|_| {
            Refusal::parameter("messages", "content must be a string or an array of text parts")
        })?;
        Ok(parts.iter().map(|part| count_words(&part.text)).sum())
    }
}

/// The length of a prompt: a string, an array of ids, or an array of one string.
fn tokens(prompt: &str) -> Result<u64, Refusal> {
    if prompt.starts_with('"') {
        let text: Cow<str> =
            serde_json::from_str(prompt).map_err(|error| Refusal::bad_json(&error))?;
        return Ok(count_words(&text));
    }
    match serde_json::from_str::<Vec<u32>>(prompt) {
        Ok(ids) if !ids.is_empty() => return Ok(ids.len() as u64),
        _ => {}
    }
    match serde_json::from_str::<Vec<Cow<str>>>(prompt).as_deref() {
        Ok([text]) => Ok(count_words(text)),
        _ => Err(Refusal::parameter(
            "prompt",
            "prompt must be a string, an array of token ids, or an array of one string",
        )),
    }
}

fn count_words(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(api: Api, body: &str) -> Result<Ask, Refusal> {
        let settings = Settings { max_model_len_tok: 100, ..Settings::default() };
        Ask::read(api, body.as_bytes(), &settings)
    }

    #[test]
    fn prompts_are_counted_in_every_form() {
        let check = |api: Api, body: &str, want: u64| {
            assert_eq!(read(api, body).expect(body).prompt_tok, want, "{body}");
        };
        check(Api::Completions, r#"{"prompt":"one two  three\n four"}"#, 4);
        check(Api::Completions, r#"{"prompt":"esc\u0061ped\ttext"}"#, 2);
        check(Api::Completions, r#"{"prompt":[1,2,3]}"#, 3);
        check(Api::Completions, r#"{"prompt":["one two"]}"#, 2);
        check(Api::Completions, r#"{"prompt":""}"#, 0);
        check(Api::Chat, r#"{"messages":[{"role":"user","content":" a b "}]}"#, 2);
        check(
            Api::Chat,
            r#"{"messages":[{"role":"system","content":"a"},{"role":"assistant","content":null},
                {"role":"tool"},{"role":"user","content":[{"type":"text","text":"b c"},
                {"type":"text","text":"d"}]}],"temperature":0.5,"unknown":{"deep":[1]}}"#,
            4,
        );
    }

    #[test]
    fn lengths_have_the_defaults_of_each_endpoint() {
        let limits = |api: Api, body: &str| {
            let ask = read(api, body).expect(body);
            (ask.min_tok, ask.max_tok)
        };
        let chat = |rest: &str| format!(r#"{{"messages":[{{"content":"a b"}}]{rest}}}"#);
        assert_eq!(limits(Api::Chat, &chat("")), (0, 98));
        assert_eq!(limits(Api::Chat, &chat(r#","max_tokens":7"#)), (0, 7));
        let both = chat(r#","max_tokens":7,"max_completion_tokens":9,"min_tokens":3"#);
        assert_eq!(limits(Api::Chat, &both), (3, 9));
        assert_eq!(limits(Api::Completions, r#"{"prompt":"a"}"#), (0, 16));
        assert_eq!(limits(Api::Completions, r#"{"prompt":"a","max_tokens":null}"#), (0, 16));
        let running = chat(r#","stream":true,"stream_options":{"continuous_usage_stats":true}"#);
        assert!(!read(Api::Chat, &running).expect("fine").running_usage);
    }

    #[test]
    fn bad_requests_are_refused_in_words() {
        let check = |api: Api, body: &str, status: u16, part: &str| {
            let refusal = read(api, body).expect_err(body);
            let text = String::from_utf8(refusal.body.clone()).expect("JSON is UTF-8");
            serde_json::from_str::<serde_json::Value>(&text).expect(&text);
            assert_eq!(refusal.status, status, "{body}");
            assert!(text.contains(part), "{body}: {text}");
        };
        check(Api::Chat, r#"{"messages":[{"#, 400, "json_invalid");
        check(Api::Chat, r#"{"messages":"hello"}"#, 400, "sequence");
        check(Api::Chat, r#"{"prompt":"a"}"#, 400, "body.messages");
        check(Api::Chat, r#"{"messages":[]}"#, 400, "must not be empty");
        check(Api::Chat, r#"{"messages":[{"content":5}]}"#, 400, "text parts");
        check(Api::Chat, r#"{"messages":[{"content":[{"type":"image_url"}]}]}"#, 400, "text parts");
        check(Api::Completions, "{}", 400, "body.prompt");
        check(Api::Completions, r#"{"prompt":["a","b"]}"#, 400, "array of one string");
        check(Api::Completions, r#"{"prompt":[]}"#, 400, "array of one string");
        check(Api::Completions, r#"{"prompt":[1,-2]}"#, 400, "array of one string");
        check(
            Api::Completions,
            r#"{"model":"x\"y","prompt":"a"}"#,
            404,
            r#"`x\"y` does not exist"#,
        );
        check(Api::Completions, r#"{"prompt":"a","max_tokens":-5}"#, 400, "at least 1, got -5");
        check(Api::Completions, r#"{"prompt":"a","max_tokens":0}"#, 400, "at least 1, got 0");
        check(Api::Completions, r#"{"prompt":"a","max_tokens":100}"#, 400, "total of at least 101");
        check(Api::Completions, r#"{"prompt":"a","min_tokens":17}"#, 400, "must not exceed");
        check(Api::Completions, r#"{"prompt":"a","n":2}"#, 400, "one choice");
        let long = format!(r#"{{"prompt":[{}1]}}"#, "1,".repeat(100));
        check(Api::Completions, &long, 400, "maximum context length is 100 tokens");
    }
}
