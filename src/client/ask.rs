//! Questions about tokens, before `t0`: how does the server cut a text?
//!
//! vLLM, `SGLang` and llama.cpp answer `POST /tokenize`; their bodies differ in names, so one body has
//! both. A server that answers anything else has no such endpoint. Deliberately absent: what the
//! tokens are good for, and retries.

use bytes::Bytes;
use hyper::StatusCode;
use serde::{Deserialize, Serialize};

use super::exchange::Exchange;
use super::{Client, Watch};
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

impl Client {
    /// The token ids of a text, nothing added, by `POST path`; `None` where the server does not say.
    pub async fn tokens(&self, path: &str, model: Option<&str>, text: &str) -> Option<Vec<u32>> {
        let question = Question {
            model,
            prompt: text,
            add_special_tokens: false,
            content: text,
            add_special: false,
        };
        let body = serde_json::to_vec(&question).ok()?;
        let deadline = Some(self.clock.now() + LIMIT);
        let post = self.post(path, body.into());
        let answer = Watch::default().guard(&self.clock, deadline, post).await.ok()??;
        serde_json::from_slice::<Answer>(&answer).ok().map(|answer| answer.tokens)
    }

    /// The body of a 200 to a POST; `None` for anything else.
    async fn post(&self, path: &str, body: Bytes) -> Option<Vec<u8>> {
        let request = self.settings.head.post_to(path, body).ok()?;
        let mut exchange = Exchange::start(self.pool.dial().await.ok()?);
        let head = exchange.send(request).await.ok()?;
        let mut answer = Vec::new();
        exchange.read_all(&mut answer, BODY_LIMIT).await.ok()?;
        (head.status == StatusCode::OK && answer.len() <= BODY_LIMIT).then_some(answer)
    }
}
