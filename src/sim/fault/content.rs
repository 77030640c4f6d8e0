//! What a faulty answer says: choices as JSON, and errors in all their forms.
//!
//! Pure. Deliberately absent: when it is said, and the bytes around it.

use std::ops::Range;

use super::script::Script;
use super::{ErrorForm, ReasoningKey};
use crate::sim::chunk::{Finish, Plan};
use crate::sim::request::Api;

/// Instead of words, where characters are to be cut: two, three and four bytes.
const WIDE_WORDS: [&str; 3] = [" é", " 水", " 🦀"];
/// What the server says of an error on purpose.
const ERROR_WORDS: &str = "the engine died on purpose";

/// A word of another width.
pub(super) fn wide(index: u64) -> &'static str {
    WIDE_WORDS[(index % 3) as usize]
}

/// The choice with these tokens of the answer, whose words are `text`.
pub(super) fn choice(plan: &Plan, script: &Script, text: &str, tokens: Range<u64>) -> String {
    let is_last = tokens.end == plan.output_tok && !script.no_finish;
    let finish = match plan.finish {
        _ if !is_last => "null",
        _ if script.tools => r#""tool_calls""#,
        Finish::Length => r#""length""#,
        Finish::Stop => r#""stop""#,
    };
    if plan.ask.api == Api::Completions {
        return format!(
            r#"{{"index":0,"text":"{text}","logprobs":null,"finish_reason":{finish}}}"#
        );
    }
    let delta = match script.reasoning.filter(|(_, those)| tokens.start < *those) {
        Some((ReasoningKey::Reasoning, _)) => format!(r#""reasoning":"{text}""#),
        Some((ReasoningKey::ReasoningContent, _)) => {
            format!(r#""reasoning_content":"{text}""#)
        }
        None if script.tools && tokens.start == 0 => r#""tool_calls":[{"index":0,"id":"call_sim","type":"function","function":{"name":"look_up","arguments":""}}]"#.to_owned(),
        None if script.tools => format!(
            r#""tool_calls":[{{"index":0,"function":{{"arguments":"{text}"}}}}]"#
        ),
        None => format!(r#""content":"{text}""#),
    };
    format!(r#"{{"index":0,"delta":{{{delta}}},"logprobs":null,"finish_reason":{finish}}}"#)
}

/// The event that tells of an error.
pub(super) fn error_event(form: ErrorForm) -> String {
    match form {
        ErrorForm::Object => format!(
            "data: {{\"error\":{{\"message\":\"{ERROR_WORDS}\",\"type\":\"InternalServerError\",\
             \"param\":null,\"code\":500}}}}\n\n"
        ),
        ErrorForm::String => format!("data: {{\"error\":\"{ERROR_WORDS}\"}}\n\n"),
        ErrorForm::Event => format!("event: error\ndata: {ERROR_WORDS}\n\n"),
        ErrorForm::Field => format!(
            "error: {{\"code\":500,\"message\":\"{ERROR_WORDS}\",\"type\":\"server_error\"}}\n\n"
        ),
        ErrorForm::Bare => format!("{{\"error\":{{\"message\":\"{ERROR_WORDS}\"}}}}\n"),
    }
}
