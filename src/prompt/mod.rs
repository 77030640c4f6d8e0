//! Prompts of a wanted length, the same for the same seed and row on every machine.
//!
//! A prompt is words that are one token each in common vocabularies: `n` tokens are `n` words. The
//! words of a shared prefix come from the block's id, so equal ids give equal bytes; the rest comes
//! from the row. The salt goes into both, so that no run hits the prefix cache another one filled.
//! Deliberately absent: a tokenizer, and counts adjusted to one server.

use std::borrow::Cow;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use serde_json::value::RawValue;

use crate::trace::{Content, Request};

/// Common words with one token each (leading space included) in the vocabularies of the GPT, Llama
/// and Qwen families. 64 of them, so that six random bits choose one.
const WORDS: [&str; 64] = [
    "time",
    "people",
    "water",
    "year",
    "way",
    "day",
    "man",
    "world",
    "life",
    "hand",
    "part",
    "child",
    "eye",
    "woman",
    "place",
    "work",
    "week",
    "case",
    "point",
    "government",
    "company",
    "number",
    "group",
    "problem",
    "fact",
    "night",
    "house",
    "book",
    "story",
    "job",
    "word",
    "business",
    "issue",
    "side",
    "kind",
    "head",
    "service",
    "friend",
    "father",
    "power",
    "hour",
    "game",
    "line",
    "end",
    "member",
    "law",
    "car",
    "city",
    "community",
    "name",
    "president",
    "team",
    "minute",
    "idea",
    "body",
    "information",
    "back",
    "parent",
    "face",
    "others",
    "level",
    "office",
    "door",
    "health",
];

/// What is asked.
#[derive(Clone, Debug)]
pub enum Words<'a> {
    /// One text: the prompt, or the one message of a chat.
    Text(Cow<'a, str>),
    /// The messages of a chat, as JSON.
    Messages(&'a RawValue),
}

/// The JSON object that a row wants merged into its request, when it has one.
#[must_use]
pub fn own_body(request: &Request) -> Option<&RawValue> {
    request.content.as_deref()?.body.as_deref()
}

/// What a text's words are drawn from.
#[derive(Clone, Copy)]
enum Origin {
    Row = 1,
    Block = 2,
}

/// Makes the prompts of one run.
#[derive(Clone, Debug)]
pub struct Prompter {
    seed: u64,
    salt: u64,
}

impl Prompter {
    /// Prompts for `seed`; another `salt` gives other words from the first one on.
    #[must_use]
    pub fn new(seed: u64, salt: &str) -> Self {
        // FNV-1a: a name for the salt, not a secret.
        let salt = salt.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self { seed, salt }
    }

    /// What a row asks, in words: those the trace gives, as they are, else as many as it counts.
    #[must_use]
    pub fn words<'a>(&self, request: &'a Request) -> Words<'a> {
        match request.content.as_deref() {
            Some(Content { messages: Some(messages), .. }) => Words::Messages(messages),
            Some(Content { prompt: Some(prompt), .. }) => Words::Text(Cow::Borrowed(prompt)),
            _ => Words::Text(Cow::Owned(self.text(request))),
        }
    }

    /// A prompt of `request.input_tok` words.
    #[must_use]
    pub fn text(&self, request: &Request) -> String {
        let mut text = String::with_capacity(request.input_tok as usize * 6);
        let mut left = request.input_tok;
        if let Some(prefix) = &request.prefix {
            for block in &prefix.blocks {
                let words = left.min(prefix.block_tok);
                self.draw(Origin::Block, *block, words, &mut text);
                left -= words;
            }
        }
        self.draw(Origin::Row, request.row, left, &mut text);
        text
    }

    fn draw(&self, origin: Origin, id: u64, count: u32, text: &mut String) {
        let mut key = [0; 32];
        for (place, part) in key.chunks_exact_mut(8).zip([self.seed, self.salt, origin as u64, id])
        {
            place.copy_from_slice(&part.to_le_bytes());
        }
        let mut random = ChaCha8Rng::from_seed(key);
        let mut left = count;
        while left > 0 {
            let mut bits = random.next_u64();
            for _ in 0..left.min(10) {
                if !text.is_empty() {
                    text.push(' ');
                }
                text.push_str(WORDS[(bits & 63) as usize]);
                bits >>= 6;
            }
            left -= left.min(10);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Prefix;

    fn request(row: u64, input_tok: u32, blocks: &[u64]) -> Request {
        let prefix =
            (!blocks.is_empty()).then(|| Box::new(Prefix { blocks: blocks.into(), block_tok: 16 }));
        Request { row, input_tok, prefix, ..Request::default() }
    }

    #[test]
    fn a_prompt_has_as_many_words_as_asked() {
        let prompter = Prompter::new(0, "");
        for n in [1, 9, 10, 11, 37, 512, 1900] {
            assert_eq!(prompter.text(&request(3, n, &[])).split(' ').count(), n as usize);
            assert_eq!(prompter.text(&request(3, n, &[4, 5])).split(' ').count(), n as usize);
        }
    }

    #[test]
    fn equal_blocks_are_equal_bytes_and_the_rest_is_the_rows_own() {
        let prompter = Prompter::new(7, "salt");
        let (a, b) =
            (prompter.text(&request(1, 40, &[8, 9])), prompter.text(&request(2, 40, &[8, 9])));
        let head = |text: &str| text.split(' ').take(32).collect::<Vec<_>>().join(" ");
        assert_eq!(head(&a), head(&b));
        assert_ne!(a, b);
        assert_eq!(a, prompter.text(&request(1, 40, &[8, 9])));
    }

    #[test]
    fn a_salt_changes_the_text_from_the_first_words_on() {
        let text = |salt| Prompter::new(7, salt).text(&request(1, 40, &[8]));
        assert_ne!(&text("a")[..12], &text("b")[..12]);
        // The words themselves: they must be the same on every machine and with every version.
        assert!(text("").starts_with("kind case year eye eye number water government fact work"));
    }
}
