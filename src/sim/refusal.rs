//! Answers that are no generation: the error bodies, in the shapes that vLLM gives them.
//!
//! Absent: deciding when to refuse.

use super::engine::QueueFull;

/// An HTTP error and its JSON body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    /// The value of the `allow` header, for a 405.
    pub(super) allow: Option<&'static str>,
    /// The value of the `retry-after` header, in seconds.
    pub(super) retry_after_s: Option<u32>,
}

#[derive(serde::Serialize)]
struct Envelope<'a> {
    error: ErrorBody<'a>,
}

#[derive(serde::Serialize)]
struct ErrorBody<'a> {
    message: &'a str,
    r#type: &'a str,
    param: Option<&'a str>,
    code: u16,
}

impl Refusal {
    fn new(code: u16, r#type: &str, param: Option<&str>, message: &str) -> Self {
        let envelope = Envelope { error: ErrorBody { message, r#type, param, code } };
        let body = serde_json::to_vec(&envelope).expect("strings and a number are JSON");
        Self { status: code, body, allow: None, retry_after_s: None }
    }

    /// 400: a field that is there, and wrong.
    pub(super) fn parameter(param: &str, message: &str) -> Self {
        Self::new(400, "BadRequestError", Some(param), message)
    }

    /// 400: not JSON, or not of the right types.
    pub(super) fn bad_json(error: &serde_json::Error) -> Self {
        let kind = if error.is_data() { "type_error" } else { "json_invalid" };
        let message = format!(
            "1 validation error:\n  {{'type': '{kind}', 'loc': 'line {} column {}', 'msg': '{error}'}}",
            error.line(),
            error.column(),
        );
        Self::new(400, "Bad Request", Some("body"), &message)
    }

    /// 400: a field that must be there.
    pub(super) fn missing(key: &str) -> Self {
        let loc = format!("body.{key}");
        let message = format!(
            "1 validation error:\n  {{'type': 'missing', 'loc': '{loc}', 'msg': 'Field required'}}"
        );
        Self::new(400, "Bad Request", Some(&loc), &message)
    }

    /// 400: an answer of no tokens, or fewer.
    pub(super) fn too_few(key: &str, got: i64) -> Self {
        let message =
            format!("{key} must be at least 1, got {got}. (parameter={key}, value={got})");
        Self::parameter(key, &message)
    }

    /// 400: the prompt alone leaves no room.
    pub(super) fn too_long(prompt_tok: u64, len_tok: u64) -> Self {
        let message = format!(
            "This model's maximum context length is {len_tok} tokens. However, your prompt contains \
             at least {prompt_tok} input tokens, which exceeds this limit even without any output \
             tokens. Please reduce the length of the input prompt. (parameter=input_tokens, \
             value={prompt_tok})"
        );
        Self::parameter("input_tokens", &message)
    }

    /// 400: prompt and answer together leave no room.
    pub(super) fn too_much(prompt_tok: u64, output_tok: u64, len_tok: u64) -> Self {
        let total_tok = prompt_tok.saturating_add(output_tok);
        let message = format!(
            "This model's maximum context length is {len_tok} tokens. However, you requested \
             {output_tok} output tokens and your prompt contains at least {prompt_tok} input tokens, \
             for a total of at least {total_tok} tokens. Please reduce the length of the input \
             prompt or the number of requested output tokens. (parameter=input_tokens, \
             value={prompt_tok})"
        );
        Self::parameter("input_tokens", &message)
    }

    /// 404: another model's name.
    pub(super) fn unknown_model(asked: &str, model: &str) -> Self {
        let message = format!("The model `{asked}` does not exist. Valid aliases: {model}.");
        Self::new(404, "NotFoundError", Some("model"), &message)
    }

    /// 413: more bytes than are taken.
    pub(super) fn too_large(limit_bytes: usize) -> Self {
        let message = format!("the request body is longer than the limit of {limit_bytes} bytes");
        Self::new(413, "RequestEntityTooLarge", None, &message)
    }

    /// 503: the queue is full.
    pub(super) fn queue_full(full: QueueFull) -> Self {
        Self::new(503, "ServiceUnavailableError", None, &full.to_string())
    }

    /// Any status, on purpose.
    pub(super) fn on_purpose(status: u16) -> Self {
        let message = format!("refused on purpose with status {status}");
        let retry_after_s = matches!(status, 429 | 503).then_some(1);
        Self { retry_after_s, ..Self::new(status, "OnPurpose", None, &message) }
    }

    /// 404: no such path.
    pub(super) fn no_route() -> Self {
        Self {
            status: 404,
            body: br#"{"detail":"Not Found"}"#.to_vec(),
            allow: None,
            retry_after_s: None,
        }
    }

    /// 405: the path takes another method.
    pub(super) fn wrong_method(allow: &'static str) -> Self {
        let body = br#"{"detail":"Method Not Allowed"}"#.to_vec();
        Self { status: 405, body, allow: Some(allow), retry_after_s: None }
    }
}
