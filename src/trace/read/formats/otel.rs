//! OpenTelemetry spans of generative AI: OTLP's JSON, one document or many lines, or flat spans.
//!
//! A span that generates text is a row; agents, tools and embeddings are passed over and counted. Old and
//! new names of the conventions are held. Where a span holds no token counts but the words themselves,
//! those are sent, and lengths are estimated at 4 bytes a token, which is answer. Nothing is taken from a
//! span's events.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::date::DateReader;
use super::super::error::Fault;
use super::super::held::Held;
use super::super::json::json_fault;
use super::super::reader::{Definition, ReadDocument, Reader};
use super::super::row::Interner;
use crate::trace::{Content, Request};

const INPUT: [&str; 3] =
    ["gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.usage.prompt_tokens"];
const OUTPUT: [&str; 3] =
    ["gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.usage.completion_tokens"];
const MODEL: [&str; 2] = ["gen_ai.request.model", "gen_ai.response.model"];
const SESSION: [&str; 3] = ["gen_ai.conversation.id", "session.id", "exgentic.session.id"];
/// Operations that generate text.
const OPERATIONS: [&str; 3] = ["chat", "text_completion", "generate_content"];
const BYTES_PER_TOK: usize = 4;

pub(super) const FORMAT: Definition = Definition {
    name: "otel",
    signs: &[&["spans"], &["resourceSpans"], &["attributes"]],
    unit: None,
    wants_turns: true,
    has_blocks: false,
    ..Definition::new(Reader::Documents {
        signs: &[&["resourceSpans"], &["spans"], &["gen_ai.operation.name"]],
        new: |_, _| Box::new(Otel::default()),
    })
};

/// Reads spans.
#[derive(Default)]
struct Otel {
    dates: DateReader,
    models: Interner,
    /// Rows whose lengths are estimates.
    estimates: u64,
    /// Spans that generate text and say nothing of how much.
    unsized_spans: u64,
}

impl Otel {
    fn walk(&mut self, value: &Value, held: &mut Held) -> Result<(), Fault> {
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.walk(item, held)),
            Value::Object(object) => {
                let inner = ["resourceSpans", "scopeSpans", "spans"];
                let mut found = inner.iter().filter_map(|key| object.get(*key)).peekable();
                if found.peek().is_some() {
                    return found.try_for_each(|item| self.walk(item, held));
                }
                self.span(object, held)
            }
            _ => Err(Fault::row("is neither a span nor a list of spans")),
        }
    }

    fn span(&mut self, span: &Map<String, Value>, held: &mut Held) -> Result<(), Fault> {
        let attributes = attributes(span.get("attributes"));
        let word = |keys: &[&str]| {
            keys.iter()
                .find_map(|key| attributes.get(*key)?.as_str())
                .filter(|word| !word.is_empty())
        };
        let operation = word(&["gen_ai.operation.name"]);
        let counts = [&INPUT, &OUTPUT]
            .map(|keys| keys.iter().find_map(|key| attributes.get(*key)).and_then(count));
        let is_row = operation.map_or(counts[0].is_some(), |name| OPERATIONS.contains(&name));
        if !is_row {
            held.skip();
            return Ok(());
        }
        let messages = word(&["gen_ai.input.messages"]).filter(|text| is_chat(text));
        let failed = has_failed(span.get("status"));
        let estimate =
            |text: &str| u32::try_from(text.len() / BYTES_PER_TOK).unwrap_or(u32::MAX).max(1);
        let input_tok = counts[0].or_else(|| messages.map(estimate));
        let answer = word(&["gen_ai.output.text", "gen_ai.output.messages"]);
        let output_tok = counts[1]
            .or_else(|| answer.map(estimate))
            .or_else(|| attributes.get("gen_ai.request.max_tokens").and_then(count))
            .or(failed.then_some(0));
        let (Some(input_tok), Some(output_tok)) = (input_tok, output_tok) else {
            self.unsized_spans += 1;
            held.skip();
            return Ok(());
        };
        self.estimates += u64::from(counts.iter().any(Option::is_none) && !failed);
        let content =
            messages.and_then(|text| RawValue::from_string(text.replace(['\r', '\n'], " ")).ok());
        let content = content
            .map(|messages| Box::new(Content { messages: Some(messages), ..Content::default() }));
        let trace_id = ["trace_id", "traceId"].iter().find_map(|key| span.get(*key)?.as_str());
        let request = Request {
            input_tok,
            output_tok: Some(if failed { 0 } else { output_tok }),
            session: word(&SESSION).or(trace_id).map(Into::into),
            class: word(&MODEL).map(|name| self.models.shared(name)),
            content,
            ..Request::default()
        };
        let at_ns = self.start_ns(span)?;
        held.push(at_ns, request)
    }

    fn start_ns(&mut self, span: &Map<String, Value>) -> Result<i64, Fault> {
        const KEYS: [&str; 4] =
            ["startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime"];
        let Some((key, value)) = KEYS.iter().find_map(|key| Some((*key, span.get(*key)?))) else {
            return Err(Fault::at(KEYS[2], "the key is missing; every span needs its start"));
        };
        let fault = |what: String| Fault::at(key, what);
        let ns = |text: &str| text.parse::<i64>().ok();
        match value {
            Value::Number(number) => ns(&number.to_string())
                .ok_or_else(|| fault(format!("`{number}` is no whole number of nanoseconds"))),
            Value::String(text) => match ns(text) {
                Some(ns) => Ok(ns),
                None => self.dates.read_alike(text.as_bytes()).map_err(fault),
            },
            _ => Err(fault("is neither a number nor a time stamp".to_owned())),
        }
    }
}

impl ReadDocument for Otel {
    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.estimates > 0 {
            remarks.push(format!(
                "{} spans hold words and no token counts; their lengths are taken as 4 bytes a token",
                self.estimates
            ));
        }
        if self.unsized_spans > 0 {
            remarks.push(format!(
                "{} spans hold neither token counts nor words and are left out",
                self.unsized_spans
            ));
        }
        remarks
    }

    /// Reads a document: a span, a list of spans, or something that holds them.
    fn read(&mut self, raw: &RawValue, held: &mut Held) -> Result<(), Fault> {
        let value: Value =
            serde_json::from_str(raw.get()).map_err(|error| Fault::row(json_fault(&error)))?;
        self.walk(&value, held)
    }
}

/// Attributes by key, from a plain object or from OTLP's list of typed values.
fn attributes(value: Option<&Value>) -> Map<String, Value> {
    match value {
        Some(Value::Object(object)) => object.clone(),
        Some(Value::Array(list)) => {
            let pairs = list.iter().filter_map(|pair| {
                let typed = pair.get("value")?.as_object()?;
                Some((pair.get("key")?.as_str()?.to_owned(), typed.values().next()?.clone()))
            });
            pairs.collect()
        }
        _ => Map::new(),
    }
}

/// A count, which OTLP writes as text.
fn count(value: &Value) -> Option<u32> {
    match value {
        Value::Number(number) => u32::try_from(number.as_u64()?).ok(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

fn has_failed(status: Option<&Value>) -> bool {
    let code = status.and_then(|status| status.get("code"));
    code.is_some_and(|code| {
        code.as_u64() == Some(2)
            || code.as_str().is_some_and(|word| word == "STATUS_CODE_ERROR" || word == "ERROR")
    })
}

/// Whether messages are such as a chat API takes; the conventions' own form, in parts, is not.
fn is_chat(text: &str) -> bool {
    let Ok(Value::Array(messages)) = serde_json::from_str::<Value>(text) else { return false };
    let is_message =
        |message: &Value| message.get("role").is_some() && message.get("content").is_some();
    !messages.is_empty() && messages.iter().all(is_message)
}
