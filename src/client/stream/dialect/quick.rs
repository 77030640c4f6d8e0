//! The quick reading of a chunk: one scan for the forms that servers send, which copies nothing.
//!
//! It knows just enough JSON to be sure of what it read, and in any doubt (escapes where a word is
//! wanted, repeated keys, content in parts, errors, odd types) leaves the chunk to [`super::lenient`],
//! whose answer is the same for everything that is read here. UTF-8 is checked only where a text is
//! handed on.

#![expect(
    clippy::option_option,
    reason = "outside: whether it was read; inside: whether anything is there"
)]

use std::borrow::Cow;

use super::chunk::{ABSURD_TOK, Chunk, Text, counted};
use crate::json_scan::Scan;
use crate::record::Usage;

/// How deep a value may nest that says nothing here.
const DEPTH: u8 = 16;

/// Reads a chunk of a usual form; `None` asks for the lenient reading.
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
                let mut text = Text::default();
                scan.array(|scan| {
                    let reason = choice(scan, &mut text)?;
                    chunk.finish_reason = chunk.finish_reason.take().or(reason);
                    Some(())
                })?;
                chunk.kind = text.kind();
            }
            b"usage" => {
                seen.once(2)?;
                chunk.usage = usage(scan)?;
            }
            b"error" | b"message" | b"detail" => return None,
            _ => scan.value(DEPTH)?,
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
                delta(scan, text)?;
            }
            b"text" => {
                seen.once(1)?;
                text.content |= scan.filled()?;
            }
            b"finish_reason" => {
                seen.once(2)?;
                finish_reason = scan.word()?;
            }
            _ => scan.value(DEPTH)?,
        }
        Some(())
    })?;
    Some(finish_reason)
}

fn delta(scan: &mut Scan<'_>, text: &mut Text) -> Option<()> {
    let mut seen = Seen::default();
    scan.object_or_null(|scan, key| {
        let (nth, says) = match key {
            b"content" => (0, &mut text.content),
            b"text" => (1, &mut text.content),
            b"refusal" => (2, &mut text.content),
            b"reasoning" => (3, &mut text.reasoning),
            b"reasoning_content" => (4, &mut text.reasoning),
            b"tool_calls" => {
                seen.once(5)?;
                return tool_calls(scan, &mut text.tool);
            }
            b"function_call" => {
                seen.once(6)?;
                return function(scan, &mut text.tool);
            }
            _ => return scan.value(DEPTH),
        };
        seen.once(nth)?;
        *says |= scan.filled()?;
        Some(())
    })
}

fn tool_calls(scan: &mut Scan<'_>, tool: &mut bool) -> Option<()> {
    if scan.skip(b"null") {
        return Some(());
    }
    scan.array(|scan| {
        let mut seen = Seen::default();
        scan.object(|scan, key| match key {
            b"function" => {
                seen.once(0)?;
                function(scan, tool)
            }
            _ => scan.value(DEPTH),
        })
    })
}

/// Reads whether a function has a name or arguments.
fn function(scan: &mut Scan<'_>, tool: &mut bool) -> Option<()> {
    scan.object_or_null(|scan, key| {
        match key {
            b"name" | b"arguments" => *tool |= scan.filled()?,
            _ => scan.value(DEPTH)?,
        }
        Some(())
    })
}

/// Counts, under all the names that servers give them.
fn usage(scan: &mut Scan<'_>) -> Option<Option<Usage>> {
    let (mut usage, mut detailed) = (Usage::default(), Usage::default());
    let mut seen = Seen::default();
    scan.object_or_null(|scan, key| {
        let (nth, count) = match key {
            b"prompt_tokens" => (0, &mut usage.input_tok),
            b"completion_tokens" => (1, &mut usage.output_tok),
            b"prompt_cache_hit_tokens" => (2, &mut usage.cached_tok),
            b"reasoning_tokens" => (3, &mut usage.reasoning_tok),
            b"prompt_tokens_details" => {
                seen.once(4)?;
                return detail(scan, b"cached_tokens", &mut detailed.cached_tok);
            }
            b"completion_tokens_details" => {
                seen.once(5)?;
                return detail(scan, b"reasoning_tokens", &mut detailed.reasoning_tok);
            }
            _ => return scan.value(DEPTH),
        };
        seen.once(nth)?;
        *count = token_count(scan)?;
        Some(())
    })?;
    usage.cached_tok = detailed.cached_tok.or(usage.cached_tok);
    usage.reasoning_tok = detailed.reasoning_tok.or(usage.reasoning_tok);
    Some(counted(usage))
}

/// One count of an object of them.
fn detail(scan: &mut Scan<'_>, wanted: &[u8], count: &mut Option<u64>) -> Option<()> {
    let mut seen = Seen::default();
    scan.object_or_null(|scan, key| {
        if key != wanted {
            return scan.value(DEPTH);
        }
        seen.once(0)?;
        *count = token_count(scan)?;
        Some(())
    })
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

/// A count of tokens, or null.
fn token_count(scan: &mut Scan<'_>) -> Option<Option<u64>> {
    if scan.skip(b"null") {
        return Some(None);
    }
    scan.integer().filter(|count| *count <= ABSURD_TOK).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_doubt_is_left_to_others() {
        let deep = format!(
            r#"{{"choices":[],"x":{}1{}}}"#,
            "[".repeat(usize::from(DEPTH) + 1),
            "]".repeat(usize::from(DEPTH) + 1)
        );
        for line in [
            r#"{"choices":[{"delta":{"content":"a"}}],"error":null}"#,
            r#"{"choices":[{"delta":{"content":"a"}}]} x"#,
            r#"{"choices":[{"delta":{"content":"a","content":""}}]}"#,
            r#"{"choices":[{"delta":{"content":"\x"}}]}"#,
            r#"{"choices":[{"delta":{"content":"\u12"}}]}"#,
            r#"{"choices":[{"delta":{"content":7}}]}"#,
            r#"{"choices":[{"delta":{"c\u006fntent":"a"}}]}"#,
            r#"{"choices":[{"delta":{"content":"a"},"index":01}]}"#,
            r#"{"choices":[{"delta":{"content":"a"},"index":1.}]}"#,
            r#"{"choices":[{"delta":{"content":"a"},}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":1.0}}"#,
            r#"{"id":"x"}"#,
            "{\"choices\":[{\"delta\":{\"content\":\"\t\"}}]}",
            "",
            &deep,
        ] {
            assert_eq!(read(line.as_bytes()), None, "{line}");
        }
    }
}
