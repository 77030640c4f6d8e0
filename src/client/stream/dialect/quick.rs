//! The quickest reading of a chunk: a scan for the form that servers send for every token, a single
//! choice and scalars around it.
//!
//! It knows just enough JSON to be sure of what it read, and in any doubt (escapes where a word is
//! wanted, repeated keys, nested values, errors, odd types) leaves the chunk to [`super::openai`], whose
//! answer is the same for everything that is read here. Nothing is copied, and UTF-8 is checked only
//! where a text is handed on.

#![expect(
    clippy::option_option,
    reason = "outside: whether it was read; inside: whether anything is there"
)]

use std::borrow::Cow;

use super::chunk::{Chunk, Text};
use crate::json_scan::Scan;
use crate::record::Usage;

/// Reads a chunk of the usual form; `None` asks for the next reading.
pub(super) fn read(data: &[u8]) -> Option<Chunk<'_>> {
    let mut scan = Scan::new(data);
    let mut chunk = Chunk::default();
    let mut seen = Seen::default();
    let mut has_choices = false;
    scan.object(|scan, key| {
        match key {
            b"id" => {
                seen.once(0)?;
                chunk.id = scan.word()?;
            }
            b"choices" => {
                seen.once(1)?;
                has_choices = true;
                scan.take(b'[')?;
                let mut text = Text::default();
                chunk.finish_reason = choice(scan, &mut text)?;
                chunk.kind = text.kind();
                scan.take(b']')?;
            }
            b"usage" => {
                seen.once(2)?;
                chunk.usage = usage(scan)?;
            }
            b"error" | b"message" | b"detail" => return None,
            _ => scan.scalar()?,
        }
        Some(())
    })?;
    (has_choices && scan.is_at_end()).then_some(chunk)
}

/// Reads a choice: what it carries, and why it ended.
fn choice<'a>(scan: &mut Scan<'a>, text: &mut Text) -> Option<Option<Cow<'a, str>>> {
    let mut finish_reason = None;
    let mut seen = Seen::default();
    scan.object(|scan, key| {
        match key {
            b"delta" => {
                seen.once(0)?;
                if !scan.null() {
                    delta(scan, text)?;
                }
            }
            b"text" => {
                seen.once(1)?;
                text.content |= scan.filled()?;
            }
            b"finish_reason" => {
                seen.once(2)?;
                finish_reason = scan.word()?;
            }
            _ => scan.scalar()?,
        }
        Some(())
    })?;
    Some(finish_reason)
}

fn delta(scan: &mut Scan<'_>, text: &mut Text) -> Option<()> {
    let mut seen = Seen::default();
    scan.object(|scan, key| {
        match key {
            b"content" => {
                seen.once(0)?;
                text.content |= scan.filled()?;
            }
            b"text" => {
                seen.once(1)?;
                text.content |= scan.filled()?;
            }
            b"refusal" => {
                seen.once(2)?;
                text.content |= scan.filled()?;
            }
            b"reasoning" => {
                seen.once(3)?;
                text.reasoning |= scan.filled()?;
            }
            b"reasoning_content" => {
                seen.once(4)?;
                text.reasoning |= scan.filled()?;
            }
            b"tool_calls" | b"function_call" => {
                seen.once(if key[0] == b't' { 5 } else { 6 })?;
                return scan.null().then_some(());
            }
            _ => scan.scalar()?,
        }
        Some(())
    })
}

/// Counts without their details.
fn usage(scan: &mut Scan<'_>) -> Option<Option<Usage>> {
    if scan.null() {
        return Some(None);
    }
    let mut usage = Usage::default();
    let mut seen = Seen::default();
    scan.object(|scan, key| {
        match key {
            b"prompt_tokens" => {
                seen.once(0)?;
                usage.input_tok = Some(count(scan)?);
            }
            b"completion_tokens" => {
                seen.once(1)?;
                usage.output_tok = Some(count(scan)?);
            }
            b"total_tokens" => {
                count(scan)?;
            }
            b"prompt_tokens_details" => {
                seen.once(2)?;
                return scan.null().then_some(());
            }
            b"completion_tokens_details" => {
                seen.once(3)?;
                return scan.null().then_some(());
            }
            _ => return None,
        }
        Some(())
    })?;
    Some(super::openai::usage(usage))
}

/// Which keys of an object were there.
#[derive(Default)]
struct Seen(u8);

impl Seen {
    fn once(&mut self, key: u8) -> Option<()> {
        let bit = 1 << key;
        let is_first = self.0 & bit == 0;
        self.0 |= bit;
        is_first.then_some(())
    }
}

/// A count of tokens.
fn count(scan: &mut Scan<'_>) -> Option<u64> {
    scan.digits().filter(|count| *count <= super::openai::ABSURD_TOK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_the_common_servers_are_read() {
        let lines = [
            r#"{"id":"c-1","object":"chat.completion.chunk","created":17,"model":"m","choices":[{"index":0,"delta":{"content":" a\n\u00e9"},"logprobs":null,"finish_reason":null}]}"#,
            r#"{"id":"c-1","choices":[{"index":0,"delta":{"content":"a","reasoning_content":null,"tool_calls":null},"finish_reason":"stop","stop_reason":null}],"usage":null}"#,
            r#"{"choices":[{"finish_reason":null,"index":0,"delta":{"content":"a"}}],"created":17,"id":"c-1","model":"m","system_fingerprint":"b","object":"chat.completion.chunk"}"#,
            r#"{"id": "c-1", "choices": [{"index": 0, "text": "a", "logprobs": null, "finish_reason": null}], "usage": {"prompt_tokens": 3, "total_tokens": 4, "completion_tokens": 1}}"#,
        ];
        for line in lines {
            let quick = read(line.as_bytes()).expect(line);
            assert_eq!(Some(&quick), super::super::openai::read(line).as_ref(), "{line}");
            assert!(quick.kind.is_some() && quick.id.is_some(), "{line}");
        }
    }

    #[test]
    fn any_doubt_is_left_to_others() {
        for line in [
            r#"{"choices":[{"delta":{"content":"a"}}],"error":null}"#,
            r#"{"choices":[{"delta":{"content":"a"}}]} x"#,
            r#"{"choices":[{"delta":{"content":"a"}},{}]}"#,
            r#"{"choices":[{"delta":{"content":"a","content":""}}]}"#,
            r#"{"choices":[{"delta":{"content":"\x"}}]}"#,
            r#"{"choices":[{"delta":{"content":"\u12"}}]}"#,
            r#"{"choices":[{"delta":{"content":7}}]}"#,
            r#"{"choices":[{"delta":{"c\u006fntent":"a"}}]}"#,
            r#"{"choices":[{"delta":{"content":"a"},"index":01}]}"#,
            r#"{"choices":[{"delta":{"content":"a"},}]}"#,
            r#"{"choices":[]}"#,
            r#"{"id":"x"}"#,
            "{\"choices\":[{\"delta\":{\"content\":\"\t\"}}]}",
            "",
        ] {
            assert_eq!(read(line.as_bytes()), None, "{line}");
        }
    }
}
