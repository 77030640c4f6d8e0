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
use crate::record::Usage;

/// How deep a value may nest that says nothing here.
const DEPTH: u8 = 16;

/// Reads a chunk of a usual form; `None` asks for the lenient reading.
pub(super) fn read(data: &[u8]) -> Option<Chunk<'_>> {
    let mut scan = Scan { rest: data };
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
    scan.space();
    (has_choices && scan.rest.is_empty()).then_some(chunk)
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
        *count = scan.count()?;
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
        *count = scan.count()?;
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

/// What is left to read. Every step is `None` where the bytes are not what it wants.
struct Scan<'a> {
    rest: &'a [u8],
}

impl<'a> Scan<'a> {
    fn space(&mut self) {
        while let [b' ' | b'\t' | b'\n' | b'\r', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    /// Whether `word` stands here; it is passed then. Of a known length, so that it is one comparison.
    fn skip<const N: usize>(&mut self, word: &[u8; N]) -> bool {
        let rest = self.rest.strip_prefix(word);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// One byte, after any space.
    fn take(&mut self, byte: u8) -> Option<()> {
        self.space();
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        (*first == byte).then_some(())
    }

    /// What stands between two brackets, item by item; an item is the callback's to read.
    #[inline]
    fn list(&mut self, ends: [u8; 2], mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.take(ends[0])?;
        self.space();
        if self.skip(&[ends[1]]) {
            return Some(());
        }
        loop {
            self.space();
            item(self)?;
            self.space();
            let (next, rest) = self.rest.split_first()?;
            self.rest = rest;
            if *next == ends[1] {
                return Some(());
            }
            if *next != b',' {
                return None;
            }
        }
    }

    fn array(&mut self, element: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.list(*b"[]", element)
    }

    /// A member's value is the callback's to read.
    #[inline]
    fn object(&mut self, mut member: impl FnMut(&mut Self, &'a [u8]) -> Option<()>) -> Option<()> {
        self.list(*b"{}", |scan| {
            let key = scan.plain_string()?;
            scan.take(b':')?;
            scan.space();
            member(scan, key)
        })
    }

    fn object_or_null(
        &mut self,
        member: impl FnMut(&mut Self, &'a [u8]) -> Option<()>,
    ) -> Option<()> {
        if self.skip(b"null") { Some(()) } else { self.object(member) }
    }

    /// A string without escapes.
    fn plain_string(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest.strip_prefix(b"\"")?;
        let end = plain_len(rest);
        if rest.get(end) != Some(&b'"') {
            return None;
        }
        self.rest = &rest[end + 1..];
        Some(&rest[..end])
    }

    /// A string that is handed on, or null; an empty one is nothing.
    fn word(&mut self) -> Option<Option<Cow<'a, str>>> {
        if self.skip(b"null") {
            return Some(None);
        }
        let text = std::str::from_utf8(self.plain_string()?).ok()?;
        Some((!text.is_empty()).then_some(Cow::Borrowed(text)))
    }

    /// Whether a string has anything in it; null has not.
    fn filled(&mut self) -> Option<bool> {
        if self.skip(b"null") {
            return Some(false);
        }
        let before = self.rest.len();
        self.string()?;
        Some(before - self.rest.len() > 2)
    }

    /// Any string.
    fn string(&mut self) -> Option<()> {
        let mut rest = self.rest.strip_prefix(b"\"")?;
        loop {
            rest = &rest[plain_len(rest)..];
            rest = match rest {
                [b'"', rest @ ..] => {
                    self.rest = rest;
                    return Some(());
                }
                [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', rest @ ..] => rest,
                [b'\\', b'u', a, b, c, d, rest @ ..]
                    if [a, b, c, d].into_iter().all(u8::is_ascii_hexdigit) =>
                {
                    rest
                }
                _ => return None,
            };
        }
    }

    /// A value that says nothing here, and nests no deeper than that.
    fn value(&mut self, depth: u8) -> Option<()> {
        match self.rest.first()? {
            b'"' => self.string(),
            b'-' | b'0'..=b'9' => self.number(),
            b'{' if depth > 0 => self.object(|scan, _| scan.value(depth - 1)),
            b'[' if depth > 0 => self.array(|scan| scan.value(depth - 1)),
            _ => (self.skip(b"null") || self.skip(b"true") || self.skip(b"false")).then_some(()),
        }
    }

    fn number(&mut self) -> Option<()> {
        self.skip(b"-");
        self.whole_number()?;
        if self.skip(b".") {
            self.digits()?;
        }
        if self.skip(b"e") || self.skip(b"E") {
            let _sign = self.skip(b"+") || self.skip(b"-");
            self.digits()?;
        }
        Some(())
    }

    /// Digits that no zero leads.
    fn whole_number(&mut self) -> Option<&'a [u8]> {
        self.digits().filter(|digits| digits.len() == 1 || digits[0] != b'0')
    }

    /// One digit or more.
    fn digits(&mut self) -> Option<&'a [u8]> {
        let len = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at(len);
        self.rest = rest;
        (len > 0).then_some(digits)
    }

    /// A count of tokens, or null.
    fn count(&mut self) -> Option<Option<u64>> {
        if self.skip(b"null") {
            return Some(None);
        }
        let digits = self.whole_number().filter(|digits| digits.len() <= 18)?;
        let count = digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
        let goes_on = matches!(self.rest.first(), Some(b'.' | b'e' | b'E'));
        (count <= ABSURD_TOK && !goes_on).then_some(Some(count))
    }
}

/// Bytes before the first quote, backslash or control character: eight at a time.
fn plain_len(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    let zero_bytes = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let mut at = 0;
    while let Some(eight) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*eight);
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        let found = zero_bytes(word ^ (ONES * u64::from(b'"')))
            | zero_bytes(word ^ (ONES * u64::from(b'\\')))
            | control;
        if found != 0 {
            // A borrow can only mark bytes above the first that is meant.
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    bytes[at..].iter().position(is_special).map_or(bytes.len(), |found| at + found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_special_byte_is_found(
            bytes in prop::collection::vec(
                prop_oneof![4 => 0x20u8..=0xff, 1 => prop::sample::select(&b"\"\\\x00\x1f \x7f\x80\xa2\xdc!#[]"[..])],
                0..40,
            ),
        ) {
            let slow = bytes.iter().take_while(|b| !matches!(b, b'"' | b'\\' | 0..0x20)).count();
            prop_assert_eq!(plain_len(&bytes), slow);
        }
    }

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
