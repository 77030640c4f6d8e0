//! Prompts of a wanted length, the same for the same seed and row on every machine.
//!
//! A prompt is pieces that are one token each on the server: words, or token ids where it takes them.
//! [`Vocabulary`] has the pieces and says how many make up a length. The pieces of a shared prefix come
//! from the block's id, so equal ids give equal bytes; the rest comes from the row. The salt goes into
//! both, so that no run hits the prefix cache another one filled. Prompts that a trace or a file of
//! prompts ([`corpus`]) gives are passed on as they are; a model's own [`tokenizer`] may say which words
//! are one token each. Deliberately absent: questions to a server.

pub mod corpus;
pub mod tokenized;
pub mod tokenizer;
mod vocabulary;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use serde_json::value::RawValue;

use self::corpus::Corpus;
use self::vocabulary::Pieces;
pub use self::vocabulary::{CANDIDATES, COMMON_IDS, Fit, SLOTS, Vocabulary};
use crate::random::Random;
use crate::schedule::Fnv;
use crate::trace::{Content, Request};

/// What is asked.
#[derive(Clone, Debug)]
pub enum PromptContent<'a> {
    /// One text: the prompt, or the one message of a chat.
    Text(Cow<'a, str>),
    /// The messages of a chat, as JSON.
    Messages(&'a RawValue),
    /// Token ids.
    Ids(Vec<u32>),
}

/// Everything that one row says.
#[derive(Clone, Debug)]
pub struct RowPrompt<'a> {
    /// The prompt.
    pub content: PromptContent<'a>,
    /// A JSON object that the file of prompts wants merged into the body.
    pub body: Option<&'a RawValue>,
    /// Tokens asked for; `None` where the prompt comes from a file, whose lengths nobody counted.
    pub input_tok: Option<u32>,
    /// The row asks for fewer tokens than the least prompt has on this server.
    pub is_below_least: bool,
}

/// The JSON object that a row wants merged into its request, when it has one.
#[must_use]
pub fn own_body(request: &Request) -> Option<&RawValue> {
    request.content.as_deref()?.body.as_deref()
}

/// What a text's pieces are drawn from.
#[derive(Clone, Copy)]
enum Origin {
    Row = 1,
    Block = 2,
    Probe = 3,
    Session = 4,
}

/// Makes the prompts of one run.
#[derive(Clone, Debug)]
pub struct Prompter {
    seed: u64,
    salt: u64,
    vocabulary: Vocabulary,
    corpus: Option<Arc<Corpus>>,
}

impl Prompter {
    /// Prompts for `seed`; another `salt` gives other words from the first one on.
    #[must_use]
    pub fn new(seed: u64, salt: &str) -> Self {
        let Fnv(salt) = Fnv::of(salt.as_bytes());
        Self { seed, salt, vocabulary: Vocabulary::default(), corpus: None }
    }

    /// The same prompts in the words of one server.
    #[must_use]
    pub fn with_vocabulary(self, vocabulary: Vocabulary) -> Self {
        Self { vocabulary, ..self }
    }

    /// Prompts from a file, for all rows that bring none of their own.
    #[must_use]
    pub fn with_corpus(self, corpus: Option<Arc<Corpus>>) -> Self {
        Self { corpus, ..self }
    }

    /// Tokens of the shortest prompt that can be made.
    #[must_use]
    pub fn least_tok(&self) -> u32 {
        self.vocabulary.fit.overhead_tok.saturating_add(1)
    }

    /// What a row asks: in the trace's words, else in the next ones of the file of prompts, else in as
    /// many as it counts.
    #[must_use]
    pub fn prompt_of<'a>(&'a self, request: &'a Request) -> RowPrompt<'a> {
        let literal = |content, body, input_tok| RowPrompt {
            content,
            body,
            input_tok,
            is_below_least: false,
        };
        let counted = Some(request.input_tok);
        match request.content.as_deref() {
            Some(Content { messages: Some(messages), .. }) => {
                return literal(PromptContent::Messages(messages), None, counted);
            }
            Some(Content { prompt: Some(prompt), .. }) => {
                return literal(PromptContent::Text(Cow::Borrowed(prompt)), None, counted);
            }
            _ => {}
        }
        if let Some(corpus) = &self.corpus {
            let entry = corpus.of_row(request.row);
            let content = match (&entry.messages, &entry.prompt) {
                (Some(messages), _) => PromptContent::Messages(messages),
                (None, prompt) => {
                    PromptContent::Text(Cow::Borrowed(prompt.as_deref().unwrap_or_default()))
                }
            };
            return literal(content, entry.body.as_deref(), None);
        }
        let is_below_least = self.vocabulary.fit.is_below_least(request.input_tok);
        RowPrompt {
            content: self.generate(request),
            body: None,
            input_tok: counted,
            is_below_least,
        }
    }

    /// A prompt that the server counts as `request.input_tok` tokens.
    fn generate(&self, request: &Request) -> PromptContent<'static> {
        let pieces = self.vocabulary.fit.pieces(request.input_tok);
        let mut left = pieces;
        let mut out = Out::new(&self.vocabulary.pieces, left);
        if let Some(prefix) = &request.prefix {
            for block in &prefix.blocks {
                let count = left.min(prefix.block_tok);
                self.draw(Origin::Block, *block, 0..count, &mut out);
                left -= count;
            }
        }
        match &request.session {
            // A session has one text, of which each turn says a longer part: so the history is the same
            // to the byte in every turn.
            Some(session) if request.turn.is_some() => {
                let Fnv(session) = Fnv::of(session.as_bytes());
                self.draw(Origin::Session, session, pieces - left..pieces, &mut out);
            }
            _ => self.draw(Origin::Row, request.row, 0..left, &mut out),
        }
        out.finish()
    }

    /// A prompt of exactly `pieces` pieces that no row gets, to ask a server how it counts them.
    #[must_use]
    pub fn probe(&self, id: u64, pieces: u32) -> PromptContent<'static> {
        let mut out = Out::new(&self.vocabulary.pieces, pieces);
        self.draw(Origin::Probe, id, 0..pieces, &mut out);
        out.finish()
    }

    /// The pieces at `places` of the text that `origin` and `id` stand for.
    fn draw(&self, origin: Origin, id: u64, places: Range<u32>, out: &mut Out<'_>) {
        let mut random = Random::keyed([self.seed, self.salt, origin as u64, id]);
        random.seek(0, u128::from(places.start / PIECES_PER_DRAW) * 2);
        let mut place = places.start;
        while place < places.end {
            let within = place % PIECES_PER_DRAW;
            let count = (PIECES_PER_DRAW - within).min(places.end - place);
            let mut bits = random.next_u64() >> (6 * within);
            for _ in 0..count {
                out.push((bits & 63) as usize);
                bits >>= 6;
            }
            place += count;
        }
    }
}

/// Six bits choose a piece.
const PIECES_PER_DRAW: u32 = 10;

/// A prompt in the making.
enum Out<'a> {
    Text { text: String, first: &'a [&'static str; SLOTS], later: &'a [&'static str; SLOTS] },
    Ids { ids: Vec<u32>, of: &'a [u32; SLOTS] },
}

impl<'a> Out<'a> {
    fn new(pieces: &'a Pieces, count: u32) -> Self {
        let count = count as usize;
        match pieces {
            Pieces::Words { first, later } => {
                Self::Text { text: String::with_capacity(count * 7), first, later }
            }
            Pieces::Ids(of) => Self::Ids { ids: Vec::with_capacity(count), of },
        }
    }

    fn push(&mut self, slot: usize) {
        match self {
            Self::Text { text, first, .. } if text.is_empty() => text.push_str(first[slot]),
            Self::Text { text, later, .. } => {
                text.push(' ');
                text.push_str(later[slot]);
            }
            Self::Ids { ids, of } => ids.push(of[slot]),
        }
    }

    fn finish(self) -> PromptContent<'static> {
        match self {
            Self::Text { text, .. } => PromptContent::Text(Cow::Owned(text)),
            Self::Ids { ids, .. } => PromptContent::Ids(ids),
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

    fn text(prompter: &Prompter, request: &Request) -> String {
        match prompter.prompt_of(request).content {
            PromptContent::Text(text) => text.into_owned(),
            other => panic!("no text: {other:?}"),
        }
    }

    fn ids(prompter: &Prompter, request: &Request) -> Vec<u32> {
        match prompter.prompt_of(request).content {
            PromptContent::Ids(ids) => ids,
            other => panic!("no ids: {other:?}"),
        }
    }

    #[test]
    fn a_prompt_has_as_many_words_as_asked() {
        let prompter = Prompter::new(0, "");
        let template = Fit { overhead_tok: 5, ..Fit::default() };
        let on_server = prompter.clone().with_vocabulary(Vocabulary::default().fitted(template));
        for n in [6, 9, 10, 11, 37, 512, 1900] {
            for blocks in [&[][..], &[4, 5]] {
                let count = |prompter| text(prompter, &request(3, n, blocks)).split(' ').count();
                assert_eq!((count(&prompter), count(&on_server)), (n as usize, n as usize - 5));
            }
        }
        let least = on_server.prompt_of(&request(3, 5, &[])).is_below_least;
        assert!(least && !on_server.prompt_of(&request(3, 6, &[])).is_below_least);
    }

    #[test]
    fn equal_blocks_are_equal_bytes_and_the_rest_is_the_rows_own() {
        let prompter = Prompter::new(7, "salt");
        let (a, b) =
            (text(&prompter, &request(1, 40, &[8, 9])), text(&prompter, &request(2, 40, &[8, 9])));
        let head = |text: &str| text.split(' ').take(32).collect::<Vec<_>>().join(" ");
        assert_eq!(head(&a), head(&b));
        assert_ne!(a, b);
        assert_eq!(a, text(&prompter, &request(1, 40, &[8, 9])));

        let all: Vec<u32> = COMMON_IDS.collect();
        let prompter = prompter.with_vocabulary(Vocabulary::ids(&all).expect("64 ids"));
        let (a, b) =
            (ids(&prompter, &request(1, 40, &[8, 9])), ids(&prompter, &request(2, 40, &[8, 9])));
        assert_eq!((a.len(), &a[..32]), (40, &b[..32]));
        assert_ne!(a, b);
        assert!(a.iter().all(|id| COMMON_IDS.contains(id)));
    }

    #[test]
    fn a_session_says_the_same_again_and_goes_on() {
        let prompter = Prompter::new(7, "salt");
        let turn = |row, input_tok, blocks: &[u64], session: &str| {
            let own = (Some(session.into()), Some(1));
            text(
                &prompter,
                &Request { session: own.0, turn: own.1, ..request(row, input_tok, blocks) },
            )
        };
        let (first, later) = (turn(1, 37, &[], "a"), turn(9, 412, &[], "a"));
        assert!(later.starts_with(&format!("{first} ")));
        assert_ne!(first, turn(1, 37, &[], "b"));
        // After a system prompt of two blocks, too.
        let (first, later) = (turn(1, 45, &[5, 6], "a"), turn(2, 333, &[5, 6], "a"));
        assert!(later.starts_with(&format!("{first} ")));
        assert_ne!(turn(2, 333, &[], "a"), later);
    }

    #[test]
    fn a_salt_changes_the_text_from_the_first_words_on() {
        let text = |salt| text(&Prompter::new(7, salt), &request(1, 40, &[8]));
        assert_ne!(&text("a")[..12], &text("b")[..12]);
        // The words themselves: they must be the same on every machine and with every version.
        assert!(text("").starts_with("kind case year eye eye number water government fact work"));
    }

    #[test]
    fn only_words_that_hold_without_a_space_come_first() {
        let vocabulary = Vocabulary::of_words(&CANDIDATES[..40], &CANDIDATES[3..5]).expect("words");
        let prompter = Prompter::new(7, "").with_vocabulary(vocabulary);
        for row in 0..50 {
            let text = text(&prompter, &request(row, 8, &[]));
            let first = text.split(' ').next().expect("a word");
            assert!(CANDIDATES[3..5].contains(&first), "{text}");
        }
    }

    #[test]
    fn words_that_are_given_are_passed_on_untouched() {
        let corpus = Corpus::of_text("from the file");
        let prompter = Prompter::new(7, "salt").with_corpus(Some(Arc::new(corpus)));
        let asked = |request: &Request| {
            let asked = prompter.prompt_of(request);
            (text(&prompter, request), asked.input_tok)
        };
        assert_eq!(asked(&request(1, 40, &[])), ("from the file".to_owned(), None));
        let own = Content { prompt: Some("from the trace".to_owned()), ..Content::default() };
        let own = Request { content: Some(Box::new(own)), ..request(1, 40, &[]) };
        assert_eq!(asked(&own), ("from the trace".to_owned(), Some(40)));
    }
}
