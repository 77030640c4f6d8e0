//! The words of a chunk, for whoever wants to read an answer: slow and patient, and only on demand.
//!
//! The quick reading of a chunk never unescapes a text; this one reads the same event again and keeps
//! what it says. Deliberately absent: timing, and any judgement of the words.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::raw::{elements, last, members, members_or_none, text_of};
use crate::record::SavedText;

/// Adds what the data of one event says to `saved`. With several choices, theirs follow one another.
pub fn append_text(data: &[u8], saved: &mut SavedText) {
    let text = String::from_utf8_lossy(data.trim_ascii());
    let Ok(event) = members(&text) else { return };
    for choice in last(&event, "choices").map(elements).unwrap_or_default() {
        for (key, value) in members_or_none(choice) {
            match key.as_ref() {
                "text" => add(&mut saved.text, value),
                "delta" => delta(value, saved),
                _ => {}
            }
        }
    }
    saved.clip();
}

fn delta(delta: &RawValue, saved: &mut SavedText) {
    for (key, value) in members_or_none(delta) {
        match key.as_ref() {
            "content" => {
                add(&mut saved.text, value);
                for part in elements(value) {
                    parts(part, saved);
                }
            }
            "text" | "refusal" => add(&mut saved.text, value),
            "reasoning" | "reasoning_content" => add(&mut saved.reasoning, value),
            "tool_calls" => {
                for call in elements(value) {
                    if let Some(function) = last(&members_or_none(call), "function") {
                        tool(function, saved);
                    }
                }
            }
            "function_call" => tool(value, saved),
            _ => {}
        }
    }
}

/// A typed part of a content: `text`, or `thinking` with parts of its own.
fn parts(part: &RawValue, saved: &mut SavedText) {
    add(&mut saved.text, part);
    for (key, value) in members_or_none(part) {
        match key.as_ref() {
            "text" | "refusal" | "content" => add(&mut saved.text, value),
            "thinking" | "reasoning" => {
                add(&mut saved.reasoning, value);
                for inner in elements(value) {
                    if let Some(text) = last(&members_or_none(inner), "text") {
                        add(&mut saved.reasoning, text);
                    }
                }
            }
            _ => {}
        }
    }
}

fn tool(function: &RawValue, saved: &mut SavedText) {
    let members = members_or_none(function);
    if let Some(name) = last(&members, "name").and_then(text_of) {
        if !saved.tool.is_empty() {
            saved.tool.push('\n');
        }
        saved.tool.push_str(&name);
        saved.tool.push(' ');
    }
    if let Some(arguments) = last(&members, "arguments") {
        let said = text_of(arguments);
        let is_object = arguments.get().starts_with('{').then(|| Cow::Borrowed(arguments.get()));
        saved.tool.push_str(&said.or(is_object).unwrap_or_default());
    }
}

fn add(to: &mut String, value: &RawValue) {
    to.push_str(&text_of(value).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_an_answer_are_put_together() {
        let mut saved = SavedText::default();
        for event in [
            r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#,
            r#"{"choices":[{"delta":{"reasoning_content":"hm\n"}}]}"#,
            r#"{"choices":[{"delta":{"reasoning":"so"}}]}"#,
            r#"{"choices":[{"delta":{"content":"a \"é"}}]}"#,
            r#"{"choices":[{"delta":{"content":[{"type":"text","text":"b"},{"type":"thinking","thinking":[{"text":"!"}]}]}}]}"#,
            r#"{"choices":[{"text":"c"}]}"#,
            r#"{"choices":[{"delta":{"refusal":"no"}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":"{\"x"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"\":1}"}}]}}]}"#,
            r#"{"choices":[]}"#,
            "[DONE]",
            "broken",
        ] {
            append_text(event.as_bytes(), &mut saved);
        }
        assert_eq!(saved.text, "a \"ébcno");
        assert_eq!(saved.reasoning, "hm\nso!");
        assert_eq!(saved.tool, "f {\"x\":1}");
        assert!(!saved.is_cut);
    }
}
