//! A server's error body as one readable line.
//!
//! JSON in the forms that servers use, HTML of proxies, plain text, and bytes that are neither. What
//! is not understood is quoted rather than dropped. The result has no control characters and at most
//! [`MESSAGE_CHARS`] characters, so that it fits a cell of a CSV file.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::raw::{Member, elements, last, members_or_none, text_of};

/// The longest message, in characters.
pub(super) const MESSAGE_CHARS: usize = 500;

/// What is looked at of a body; an error page is never longer for a good reason.
const BODY_BYTES: usize = 64 << 10;

/// How deep errors within errors are followed.
const DEPTH: usize = 4;

/// One line from any error body, in the server's words.
#[must_use]
pub fn error_message(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(BODY_BYTES)]);
    let text = text.trim();
    // Some servers answer a streaming request with an error that is framed as an event.
    let text = text.strip_prefix("data:").unwrap_or(text).trim();
    let line = match serde_json::from_str::<&RawValue>(text) {
        Ok(json) => message_of(json),
        Err(_) if text.starts_with('<') => one_line(&without_tags(text), MESSAGE_CHARS),
        Err(_) => String::new(),
    };
    let line = if line.is_empty() { one_line(text, MESSAGE_CHARS) } else { line };
    if line.is_empty() { "empty body".to_owned() } else { line }
}

/// One line from a JSON value.
pub(super) fn message_of(json: &RawValue) -> String {
    one_line(&find(json, DEPTH).unwrap_or_else(|| json.get().to_owned()), MESSAGE_CHARS)
}

/// The words in a value: itself a string, or where such objects keep them.
fn find(json: &RawValue, depth: usize) -> Option<String> {
    if depth == 0 {
        return None;
    }
    if let Some(words) = text_of(json) {
        return Some(words.into_owned());
    }
    let elements = elements(json);
    if !elements.is_empty() {
        let found: Vec<String> =
            elements.iter().filter_map(|element| find(element, depth - 1)).collect();
        return (!found.is_empty()).then(|| found.join("; "));
    }
    let members = members_or_none(json);
    let at = |key| last(&members, key).and_then(|value| find(value, depth - 1));
    // Beside a `message` an `error` that is only a string is a title, such as "Not Found".
    let error = last(&members, "error");
    if error.is_some_and(|error| !error.get().starts_with('"'))
        && let Some(words) = at("error")
    {
        return Some(words);
    }
    if let Some(words) = at("msg") {
        return Some(located(&members, words));
    }
    ["message", "error", "detail", "errors", "error_message"].iter().find_map(|key| at(key))
}

/// A validation error with the place that it is about: `body.messages: Field required`.
fn located(members: &[Member<'_>], words_said: String) -> String {
    let path: Vec<String> = last(members, "loc")
        .map(elements)
        .unwrap_or_default()
        .iter()
        .map(|step| text_of(step).map_or_else(|| step.get().to_owned(), Cow::into_owned))
        .collect();
    if path.is_empty() { words_said } else { format!("{}: {words_said}", path.join(".")) }
}

/// The text of an HTML page: its body without tags, or its title when the body has no text.
fn without_tags(html: &str) -> String {
    let (mut text, mut title) = (String::new(), String::new());
    let mut inside = "";
    let mut rest = html;
    while let Some(open) = rest.find('<') {
        let (before, tag) = rest.split_at(open);
        match inside {
            "" => text.push_str(before),
            "title" => title.push_str(before),
            _ => {}
        }
        let name = tag[1..].trim_start_matches('/');
        let is = |word: &str| name.get(..word.len()).is_some_and(|n| n.eq_ignore_ascii_case(word));
        inside = match ["title", "style", "script"].into_iter().find(|word| is(word)) {
            Some(word) if !tag.starts_with("</") => word,
            Some(_) => "",
            None => inside,
        };
        text.push(' ');
        rest = tag.split_once('>').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    let text = if text.trim().is_empty() { title } else { text };
    [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&nbsp;", " "),
        ("&amp;", "&"),
    ]
    .into_iter()
    .fold(text, |text, (entity, character)| text.replace(entity, character))
}

/// Text without control characters and with single spaces, cut to a number of characters.
pub(super) fn one_line(text: &str, limit: usize) -> String {
    let mut line = String::new();
    let gap = |c: char| c.is_whitespace() || c.is_control();
    for word in text.split(gap).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        // A character has at most four bytes, so by now it is too long for certain.
        if line.len() > 4 * limit {
            break;
        }
    }
    if line.chars().nth(limit).is_some() {
        // The mark takes the place of the last character.
        line = line.chars().take(limit.saturating_sub(1)).chain(['…']).collect();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_body_is_one_line() {
        let check = |body: &str, expect: &str| assert_eq!(error_message(body.as_bytes()), expect);
        check(r#"{"error":{"message":"a","type":"b"}}"#, "a");
        check(r#"{"error":"a"}"#, "a");
        check(r#"{"message":"a","type":"b","code":404}"#, "a");
        check(r#"{"detail":"a"}"#, "a");
        check(
            r#"{"detail":[{"loc":["body","messages",0],"msg":"Field required"},{"loc":[],"msg":"b"}]}"#,
            "body.messages.0: Field required; b",
        );
        check(r#"{"status":404,"error":"Not Found","message":"No route"}"#, "No route");
        check(r#"{"status":404,"error":"Not Found"}"#, "Not Found");
        check(r#"{"errors":[{"message":"a"},{"message":"b"}]}"#, "a; b");
        check(r#"[{"error":{"message":"a"}}]"#, "a");
        check(r#"{"error":{"message":""}}"#, r#"{"error":{"message":""}}"#);
        check(r#"{"code":7}"#, r#"{"code":7}"#);
        check("data: {\"error\":\"a\"}\n\n", "a");
        check("\"a\"", "a");
        check("Internal Server Error\r\n", "Internal Server Error");
        check("a\u{1b}[31m\tb\u{2028}c", "a [31m b c");
        check("", "empty body");
        check(" \n", "empty body");
        check(
            "<html><head><title>T</title><style>x</style></head><body>a &amp; b<br>c</body>",
            "a & b c",
        );
        check("<html><head><title>T</title></head><body></body></html>", "T");
        check("<broken", "<broken");
        assert_eq!(error_message(b"\xff\xfe"), "\u{fffd}\u{fffd}");
        let long = error_message("wörd ".repeat(100_000).as_bytes());
        assert_eq!(long.chars().count(), MESSAGE_CHARS);
        assert!(long.ends_with('…'));
        let exact = "x".repeat(500);
        assert_eq!(error_message(exact.as_bytes()), exact);
    }
}
