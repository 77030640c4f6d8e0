//! A scanner for the plainest JSON: strings without escapes where a word is wanted, whole numbers, and lists
//! of them.
//!
//! A leaf that every room may use, several times faster than a general reader: benchmarks `chunk_json` (an
//! event of a stream) and `reading` (a row with hundreds of block ids) hold it to their budgets. Whatever it
//! does not take (`None`), valid or not, is left to `serde_json`, which alone reports faults. Nothing is
//! copied, and UTF-8 is checked only where a text is handed on.

#![expect(
    clippy::option_option,
    reason = "outside: whether it was read; inside: whether anything is there"
)]

use std::borrow::Cow;

/// What is left to read. Every step is `None` where the bytes are not what it wants.
#[derive(Debug)]
pub(crate) struct Scan<'a> {
    rest: &'a [u8],
}

impl<'a> Scan<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Whether nothing but space is left.
    pub(crate) fn is_at_end(&mut self) -> bool {
        self.space();
        self.rest.is_empty()
    }

    fn space(&mut self) {
        while let [b' ' | b'\t' | b'\n' | b'\r', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    /// Whether `word` stands here; it is passed then. Of a known length, so that it is one comparison.
    pub(crate) fn skip<const N: usize>(&mut self, word: &[u8; N]) -> bool {
        let rest = self.rest.strip_prefix(word);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// One byte, after any space.
    pub(crate) fn take(&mut self, byte: u8) -> Option<()> {
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

    pub(crate) fn array(&mut self, element: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.list(*b"[]", element)
    }

    /// A member's value is the callback's to read.
    #[inline]
    pub(crate) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, &'a [u8]) -> Option<()>,
    ) -> Option<()> {
        self.list(*b"{}", |scan| {
            let key = scan.plain_string()?;
            scan.take(b':')?;
            scan.space();
            member(scan, key)
        })
    }

    pub(crate) fn object_or_null(
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
    pub(crate) fn word(&mut self) -> Option<Option<Cow<'a, str>>> {
        if self.skip(b"null") {
            return Some(None);
        }
        let text = std::str::from_utf8(self.plain_string()?).ok()?;
        Some((!text.is_empty()).then_some(Cow::Borrowed(text)))
    }

    /// Whether a string has anything in it; null has not.
    pub(crate) fn filled(&mut self) -> Option<bool> {
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
    pub(crate) fn value(&mut self, depth: u8) -> Option<()> {
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

    /// A whole number as JSON writes it: no sign, no leading zero, at most 18 digits.
    pub(crate) fn integer(&mut self) -> Option<u64> {
        let digits = self.whole_number().filter(|digits| digits.len() <= 18)?;
        let number = digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
        let goes_on = matches!(self.rest.first(), Some(b'.' | b'e' | b'E'));
        (!goes_on).then_some(number)
    }

    /// The text of one.
    pub(crate) fn integer_text(&mut self) -> Option<&'a [u8]> {
        let before = self.rest;
        self.integer()?;
        Some(&before[..before.len() - self.rest.len()])
    }

    /// A list of whole numbers, with room made for as many as are expected.
    pub(crate) fn integers(&mut self, expected: usize) -> Option<Vec<u64>> {
        let mut numbers = Vec::with_capacity(expected);
        self.array(|scan| {
            numbers.push(scan.integer()?);
            Some(())
        })?;
        Some(numbers)
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

        /// Against serde_json: what the scanner takes, it takes alike; what is plain, it takes.
        #[test]
        fn lists_agree_with_the_general_reader(text in "\\[?[ ]?([0-9]{1,20}|-1|1\\.0|,|, | ,){0,6}[ ]?\\]?") {
            let mut scan = Scan::new(text.as_bytes());
            let plain = scan.integers(0).filter(|_| scan.is_at_end());
            let general = serde_json::from_str::<Vec<u64>>(&text).ok();
            match plain {
                Some(_) => prop_assert_eq!(plain, general),
                None => prop_assert!(
                    general.is_none_or(|ids| text.ends_with(' ') || text.starts_with(' ')
                        || ids.iter().any(|&id| id > 999_999_999_999_999_999)),
                    "{}", text
                ),
            }
        }
    }
}
