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
use crate::record::Usage;

/// Reads a chunk of the usual form; `None` asks for the next reading.
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
                usage.input_tok = Some(scan.count()?);
            }
            b"completion_tokens" => {
                seen.once(1)?;
                usage.output_tok = Some(scan.count()?);
            }
            b"total_tokens" => {
                scan.count()?;
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

    /// One byte, after any space.
    fn take(&mut self, byte: u8) -> Option<()> {
        self.space();
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        (*first == byte).then_some(())
    }

    /// An object, member by member; a member's value is the callback's to read.
    fn object(&mut self, mut member: impl FnMut(&mut Self, &'a [u8]) -> Option<()>) -> Option<()> {
        self.take(b'{')?;
        self.space();
        if let [b'}', rest @ ..] = self.rest {
            self.rest = rest;
            return Some(());
        }
        loop {
            self.space();
            let key = self.plain_string()?;
            self.take(b':')?;
            self.space();
            member(self, key)?;
            self.space();
            let (next, rest) = self.rest.split_first()?;
            self.rest = rest;
            match next {
                b',' => {}
                b'}' => return Some(()),
                _ => return None,
            }
        }
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
        if self.null() {
            return Some(None);
        }
        let text = std::str::from_utf8(self.plain_string()?).ok()?;
        Some((!text.is_empty()).then_some(Cow::Borrowed(text)))
    }

    /// Whether a string has anything in it; null has not.
    fn filled(&mut self) -> Option<bool> {
        if self.null() {
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

    fn null(&mut self) -> bool {
        let rest = self.rest.strip_prefix(b"null");
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// A value that says nothing here and holds no other.
    fn scalar(&mut self) -> Option<()> {
        match self.rest.first()? {
            b'"' => self.string(),
            b'0'..=b'9' => self.digits().map(drop),
            _ => {
                let words: [&[u8]; 3] = [b"null", b"true", b"false"];
                self.rest = words.into_iter().find_map(|word| self.rest.strip_prefix(word))?;
                Some(())
            }
        }
    }

    /// A whole number that is no longer than any count.
    fn digits(&mut self) -> Option<u64> {
        let len = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at(len);
        let leads_with_zero = len > 1 && digits[0] == b'0';
        let goes_on = matches!(rest.first(), Some(b'.' | b'e' | b'E'));
        if len == 0 || len > 18 || leads_with_zero || goes_on {
            return None;
        }
        self.rest = rest;
        Some(digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
    }

    /// A count of tokens.
    fn count(&mut self) -> Option<u64> {
        self.digits().filter(|count| *count <= super::openai::ABSURD_TOK)
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
