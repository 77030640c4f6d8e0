//! Questions about tokens, before `t0`: how does the server cut a text?
//!
//! vLLM, `SGLang` and llama.cpp answer `POST /tokenize`; their bodies differ in names, so one body has
//! both. A server that answers anything else has no such endpoint. Deliberately absent: what the
//! tokens are good for, and retries.

use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::units::Nanos;

/// A tokenizer answers within this time or is not used.
const LIMIT: Nanos = Nanos::from_secs(5);
/// More than the tokens of any question.
const BODY_LIMIT: usize = 1 << 20;

#[derive(Serialize)]
struct Question<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    /// vLLM and `SGLang`.
    prompt: &'a str,
    add_special_tokens: bool,
    /// llama.cpp.
    content: &'a str,
    add_special: bool,
}

#[derive(Deserialize)]
struct Answer {
    tokens: Vec<u32>,
}

/// The token ids of a text, nothing added, by `POST path`; `None` where the server does not say.
pub async fn tokenize(
    client: &Client,
    path: &str,
    model: Option<&str>,
    text: &str,
) -> Option<Vec<u32>> {
    let question = Question {
        model,
        prompt: text,
        add_special_tokens: false,
        content: text,
        add_special: false,
    };
    let body = serde_json::to_vec(&question).ok()?;
    let answer = client.post(path, body.into(), LIMIT, BODY_LIMIT).await?;
    serde_json::from_slice::<Answer>(&answer).ok().map(|answer| answer.tokens)
}
