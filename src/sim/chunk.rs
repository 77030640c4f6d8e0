//! The bytes of an answer: SSE events as vLLM writes them, and the one JSON document of an answer
//! that is not streamed.
//!
//! What is the same in every chunk of a stream is formatted once; a token then costs a few copies into
//! the buffer it is given. Absent: HTTP, time, and any decision about what to send.

use std::fmt::Write as _;

use bytes::{BufMut, BytesMut};

use super::request::{Api, GenerateRequest};

/// The end of every stream.
const DONE: &[u8] = b"data: [DONE]\n\n";

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finish {
    /// At the length asked for.
    Length,
    /// By itself.
    Stop,
}

impl Finish {
    fn word(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Stop => "stop",
        }
    }
}

/// Formats one answer.
pub(super) struct Chunks {
    api: Api,
    running_usage: bool,
    prompt_tok: u64,
    /// `"id":…,"object":…,"created":…,"model":…,`
    head: Vec<u8>,
}

impl Chunks {
    /// For request `number` of a server that calls itself by that model's name.
    pub(super) fn new(ask: &GenerateRequest, number: u64, created_s: i128, model: &str) -> Self {
        let object = match (ask.api, ask.is_stream) {
            (Api::Chat, true) => "chat.completion.chunk",
            (Api::Chat, false) => "chat.completion",
            (Api::Completions, _) => "text_completion",
        };
        let id = request_id(ask.api, number);
        let model = serde_json::to_string(model).expect("a string is JSON");
        let head =
            format!(r#""id":"{id}","object":"{object}","created":{created_s},"model":{model},"#);
        Self {
            api: ask.api,
            running_usage: ask.running_usage,
            prompt_tok: ask.prompt_tok,
            head: head.into_bytes(),
        }
    }

    /// The chunk that opens a chat answer; there is none for completions.
    pub(super) fn role(&self, out: &mut BytesMut) -> bool {
        if self.api == Api::Completions {
            return false;
        }
        self.open(out);
        out.extend_from_slice(
            br#""choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]"#,
        );
        self.running(0, out);
        out.extend_from_slice(br#","prompt_token_ids":null,"prompt_text":null"#);
        close(out);
        true
    }

    /// The chunk of token number `output_tok` (from 1). `text` must need no escaping.
    pub(super) fn token(
        &self,
        output_tok: u64,
        text: &str,
        finish: Option<Finish>,
        out: &mut BytesMut,
    ) {
        debug_assert!(!text.contains(['"', '\\']) && !text.contains(char::is_control));
        self.open(out);
        out.extend_from_slice(match self.api {
            Api::Chat => br#""choices":[{"index":0,"delta":{"content":""#,
            Api::Completions => br#""choices":[{"index":0,"text":""#,
        });
        out.extend_from_slice(text.as_bytes());
        out.extend_from_slice(match self.api {
            Api::Chat => br#""},"logprobs":null,"finish_reason":"#,
            Api::Completions => br#"","logprobs":null,"finish_reason":"#,
        });
        match finish {
            None => out.extend_from_slice(b"null"),
            Some(finish) => {
                out.put_u8(b'"');
                out.extend_from_slice(finish.word().as_bytes());
                out.put_u8(b'"');
            }
        }
        out.extend_from_slice(match (self.api, finish) {
            (Api::Chat, None) => br#","token_ids":null}]"#,
            (Api::Chat, Some(_)) => br#","stop_reason":null,"token_ids":null}]"#,
            (Api::Completions, _) => {
                br#","stop_reason":null,"prompt_token_ids":null,"token_ids":null}]"#
            }
        });
        self.running(output_tok, out);
        close(out);
    }

    /// A chunk with these choices, as JSON without their brackets.
    pub(super) fn choices(&self, choices: &str, output_tok: u64, out: &mut BytesMut) {
        self.open(out);
        out.extend_from_slice(br#""choices":["#);
        out.extend_from_slice(choices.as_bytes());
        out.put_u8(b']');
        self.running(output_tok, out);
        close(out);
    }

    /// Counts on every chunk, asked or not.
    pub(super) fn count_always(&mut self) {
        self.running_usage = true;
    }

    /// The chunk with the usage at the end.
    pub(super) fn usage(&self, output_tok: u64, out: &mut BytesMut) {
        self.open(out);
        out.extend_from_slice(br#""choices":[],"#);
        self.usage_counts(output_tok, out);
        let version = env!("CARGO_PKG_VERSION");
        let _ = write!(out, r#"}},"system_fingerprint":"underfire-sim-{version}""#);
        close(out);
    }

    /// The event after the last.
    pub(super) fn done(out: &mut BytesMut) {
        out.extend_from_slice(DONE);
    }

    /// The whole answer, not streamed. `text` must need no escaping.
    pub(super) fn document(&self, text: &str, output_tok: u64, finish: Finish) -> BytesMut {
        debug_assert!(!text.contains(['"', '\\']) && !text.contains(char::is_control));
        let mut out = BytesMut::with_capacity(1_024 + text.len());
        out.put_u8(b'{');
        out.extend_from_slice(&self.head);
        let finish = finish.word();
        let _ = match self.api {
            Api::Chat => write!(
                out,
                r#""choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}","refusal":null,"annotations":null,"audio":null,"function_call":null,"reasoning":null}},"logprobs":null,"finish_reason":"{finish}","stop_reason":null,"token_ids":null}}],"#,
            ),
            Api::Completions => write!(
                out,
                r#""choices":[{{"index":0,"text":"{text}","logprobs":null,"finish_reason":"{finish}","stop_reason":null,"token_ids":null,"prompt_logprobs":null,"prompt_token_ids":null}}],"#,
            ),
        };
        self.usage_counts(output_tok, &mut out);
        out.extend_from_slice(
            br#","prompt_tokens_details":null,"completion_tokens_details":null}}"#,
        );
        out
    }

    fn open(&self, out: &mut BytesMut) {
        out.extend_from_slice(b"data: {");
        out.extend_from_slice(&self.head);
    }

    fn running(&self, output_tok: u64, out: &mut BytesMut) {
        if self.running_usage {
            out.put_u8(b',');
            self.usage_counts(output_tok, out);
            out.extend_from_slice(br#","completion_tokens_details":null}"#);
        }
    }

    /// `"usage":{…` without its closing brace.
    fn usage_counts(&self, output_tok: u64, out: &mut BytesMut) {
        let (prompt_tok, total_tok) = (self.prompt_tok, self.prompt_tok + output_tok);
        // Writing to a growing buffer cannot fail.
        let _ = write!(
            out,
            r#""usage":{{"prompt_tokens":{prompt_tok},"total_tokens":{total_tok},"completion_tokens":{output_tok}"#,
        );
    }
}

fn close(out: &mut BytesMut) {
    out.extend_from_slice(b"}\n\n");
}

/// The id by which a request is known in its answer and in the truth log.
pub(super) fn request_id(api: Api, number: u64) -> String {
    match api {
        Api::Chat => format!("chatcmpl-sim-{number}"),
        Api::Completions => format!("cmpl-sim-{number}"),
    }
}

/// What is known of an answer before its first token.
pub(super) struct Plan {
    pub(super) ask: GenerateRequest,
    pub(super) output_tok: u64,
    pub(super) finish: Finish,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events that a stream of two tokens is made of.
    fn stream(api: Api, running_usage: bool) -> String {
        let ask = GenerateRequest {
            api,
            prompt_tok: 19,
            min_tok: 0,
            max_tok: 2,
            is_open_ended: false,
            is_stream: true,
            ignore_eos: false,
            usage: true,
            running_usage,
        };
        let chunks = Chunks::new(&ask, 7, 1_796_059_123, "tiny-\"llama");
        let mut out = BytesMut::new();
        chunks.role(&mut out);
        chunks.token(1, " Wille", None, &mut out);
        chunks.token(2, " Wille", Some(Finish::Length), &mut out);
        chunks.usage(2, &mut out);
        Chunks::done(&mut out);
        String::from_utf8(out.to_vec()).expect("text")
    }

    /// Events written as vLLM 0.32 writes them, but for the names of server and model.
    fn check(got: &str, events: &[&str]) {
        let mut expected = String::new();
        for event in events {
            expected += "data: ";
            expected += event;
            expected += "\n\n";
        }
        assert_eq!(got.replace(env!("CARGO_PKG_VERSION"), "V"), expected);
        for event in events.iter().filter(|event| **event != "[DONE]") {
            serde_json::from_str::<serde_json::Value>(event).expect(event);
        }
    }

    #[test]
    fn chat_is_written_as_vllm_writes_it() {
        check(
            &stream(Api::Chat, false),
            &[
                r#"{"id":"chatcmpl-sim-7","object":"chat.completion.chunk","created":1796059123,"model":"tiny-\"llama","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null,"prompt_text":null}"#,
                r#"{"id":"chatcmpl-sim-7","object":"chat.completion.chunk","created":1796059123,"model":"tiny-\"llama","choices":[{"index":0,"delta":{"content":" Wille"},"logprobs":null,"finish_reason":null,"token_ids":null}]}"#,
                r#"{"id":"chatcmpl-sim-7","object":"chat.completion.chunk","created":1796059123,"model":"tiny-\"llama","choices":[{"index":0,"delta":{"content":" Wille"},"logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null}]}"#,
                r#"{"id":"chatcmpl-sim-7","object":"chat.completion.chunk","created":1796059123,"model":"tiny-\"llama","choices":[],"usage":{"prompt_tokens":19,"total_tokens":21,"completion_tokens":2},"system_fingerprint":"underfire-sim-V"}"#,
                "[DONE]",
            ],
        );
    }

    #[test]
    fn completions_with_running_usage_are_written_as_vllm_writes_them() {
        check(
            &stream(Api::Completions, true),
            &[
                r#"{"id":"cmpl-sim-7","object":"text_completion","created":1796059123,"model":"tiny-\"llama","choices":[{"index":0,"text":" Wille","logprobs":null,"finish_reason":null,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}],"usage":{"prompt_tokens":19,"total_tokens":20,"completion_tokens":1,"completion_tokens_details":null}}"#,
                r#"{"id":"cmpl-sim-7","object":"text_completion","created":1796059123,"model":"tiny-\"llama","choices":[{"index":0,"text":" Wille","logprobs":null,"finish_reason":"length","stop_reason":null,"prompt_token_ids":null,"token_ids":null}],"usage":{"prompt_tokens":19,"total_tokens":21,"completion_tokens":2,"completion_tokens_details":null}}"#,
                r#"{"id":"cmpl-sim-7","object":"text_completion","created":1796059123,"model":"tiny-\"llama","choices":[],"usage":{"prompt_tokens":19,"total_tokens":21,"completion_tokens":2},"system_fingerprint":"underfire-sim-V"}"#,
                "[DONE]",
            ],
        );
    }
}
