//! What prompts are drawn from, and how many draws make a wanted number of tokens on one server.
//!
//! The server's count of a prompt of `n` pieces is `a + b·n`: `a` is what its chat template (or a
//! start token) adds, `b` is 1 where every piece is one token. [`Fit`] is that line; it is measured by
//! whoever may ask the server. Deliberately absent: asking, and a tokenizer.

/// Places in a vocabulary, so that six random bits choose one. Fewer pieces fill them in turn.
pub const SLOTS: usize = 64;

/// Fewer words than this make a text that a prefix cache or a human would take for a repetition.
const WORDS_LEAST: usize = 16;

/// Ids that stand for ordinary pieces in common vocabularies: above the bytes and the special
/// tokens at the start, and far below the end of all but toy ones.
pub const COMMON_IDS: std::ops::Range<u32> = 1_000..1_064;

/// Words that are likely to be one token each. The first [`SLOTS`] are one token each (with a
/// leading space, and without) in the vocabularies of the GPT, Llama and Qwen families; the others
/// stand in where some of those do not hold, as in small vocabularies.
#[rustfmt::skip]
pub const CANDIDATES: [&str; 195] = [
    "time", "people", "water", "year", "way", "day", "man", "world", "life", "hand", "part",
    "child", "eye", "woman", "place", "work", "week", "case", "point", "government", "company",
    "number", "group", "problem", "fact", "night", "house", "book", "story", "job", "word",
    "business", "issue", "side", "kind", "head", "service", "friend", "father", "power", "hour",
    "game", "line", "end", "member", "law", "car", "city", "community", "name", "president", "team",
    "minute", "idea", "body", "information", "back", "parent", "face", "others", "level", "office",
    "door", "health", "person", "art", "war", "history", "party", "result", "change", "morning",
    "reason", "research", "girl", "guy", "moment", "air", "teacher", "force", "education", "foot",
    "boy", "age", "policy", "music", "process", "sense", "nation", "plan", "college", "interest",
    "death", "experience", "effect", "use", "class", "control", "care", "field", "development",
    "role", "effort", "rate", "heart", "drug", "show", "leader", "light", "voice", "wife", "police",
    "mind", "price", "report", "decision", "son", "view", "relationship", "town", "road", "arm",
    "difference", "value", "building", "action", "season", "society", "tax", "director", "position",
    "player", "record", "paper", "space", "ground", "form", "event", "official", "matter", "center",
    "couple", "site", "project", "activity", "star", "table", "need", "court", "oil", "situation",
    "cost", "industry", "figure", "street", "image", "phone", "data", "picture", "practice",
    "piece", "land", "product", "doctor", "wall", "patient", "worker", "news", "test", "movie",
    "north", "love", "step", "sound", "type", "model", "source", "sign", "color", "order", "film",
    "state", "family", "student", "country", "system", "program", "question", "money", "lot",
    "right", "study", "room", "mother", "area",
];

/// The line through the server's counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fit {
    /// Tokens that a prompt has beside its pieces.
    pub overhead_tok: u32,
    /// Tokens of [`Self::run`] pieces; equal to it where each piece is one token.
    pub rise: u32,
    /// Pieces that [`Self::rise`] was measured over.
    pub run: u32,
}

impl Default for Fit {
    fn default() -> Self {
        Self { overhead_tok: 0, rise: 1, run: 1 }
    }
}

impl Fit {
    /// The line through (pieces, the server's count). Where each piece is one token every point gives
    /// the same overhead; else it is the line through the outer two, the best there is. `None`: these
    /// counts are on no rising line.
    #[must_use]
    pub fn through(points: &[(u32, u64)]) -> Option<Self> {
        let (first, last) = (points.first()?, points.last()?);
        let overhead = |(pieces, tok): &(u32, u64)| tok.checked_sub(u64::from(*pieces));
        if let Some(constant) = overhead(first)
            && points.iter().all(|point| overhead(point) == Some(constant))
        {
            return Some(Self { overhead_tok: u32::try_from(constant).ok()?, rise: 1, run: 1 });
        }
        let run = last.0.checked_sub(first.0).filter(|run| *run > 0)?;
        let rise = u32::try_from(last.1.checked_sub(first.1)?).ok().filter(|rise| *rise > 0)?;
        let below_first = u64::from(first.0) * u64::from(rise) / u64::from(run);
        let overhead_tok = u32::try_from(first.1.saturating_sub(below_first)).ok()?;
        Some(Self { overhead_tok, rise, run })
    }

    /// Whether each piece is one token, so that every length can be met.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.rise == self.run
    }

    /// Pieces that make up `tok` tokens, the overhead counted in; at least one.
    #[must_use]
    pub fn pieces(&self, tok: u32) -> u32 {
        let own = u64::from(tok.saturating_sub(self.overhead_tok));
        let pieces = (own * u64::from(self.run) + u64::from(self.rise) / 2) / u64::from(self.rise);
        u32::try_from(pieces).unwrap_or(u32::MAX).max(1)
    }

    /// Whether `tok` is less than the least prompt has.
    #[must_use]
    pub fn is_below_least(&self, tok: u32) -> bool {
        tok <= self.overhead_tok
    }
}

/// What prompts are drawn from.
#[derive(Clone, Debug)]
pub struct Vocabulary {
    pub(super) pieces: Pieces,
    /// How pieces become tokens.
    pub fit: Fit,
}

#[derive(Clone, Debug)]
pub(super) enum Pieces {
    /// Words with one space between them. The first has none before it, which makes it another token:
    /// so it is drawn from words that are known to hold that way.
    Words { first: Box<[&'static str; SLOTS]>, later: Box<[&'static str; SLOTS]> },
    /// Token ids, sent as they are.
    Ids(Box<[u32; SLOTS]>),
}

impl Default for Vocabulary {
    /// The common words, unchecked.
    fn default() -> Self {
        let common = &CANDIDATES[..SLOTS];
        Self::of_words(common, common).expect("the common words are enough")
    }
}

impl Vocabulary {
    /// Words that are one token each on a server, and of these the ones that are so without a space
    /// in front; where none is, the first word is always the same, and the overhead absorbs what it
    /// has too much. `None`: too few words.
    #[must_use]
    pub fn of_words(later: &[&'static str], first: &[&'static str]) -> Option<Self> {
        if later.len() < WORDS_LEAST {
            return None;
        }
        let first = if first.is_empty() { &later[..1] } else { first };
        let fill =
            |words: &[&'static str]| Box::new(std::array::from_fn(|at| words[at % words.len()]));
        let pieces = Pieces::Words { first: fill(first), later: fill(later) };
        Some(Self { pieces, fit: Fit::default() })
    }

    /// Ids that a server is known, or expected, to take. `None`: too few of them.
    #[must_use]
    pub fn ids(ids: &[u32]) -> Option<Self> {
        let fill = |at: usize| ids[at % ids.len()];
        (ids.len() >= WORDS_LEAST).then(|| Self {
            pieces: Pieces::Ids(Box::new(std::array::from_fn(fill))),
            fit: Fit::default(),
        })
    }

    /// The same pieces on a server that counts them so.
    #[must_use]
    pub fn fitted(self, fit: Fit) -> Self {
        Self { fit, ..self }
    }

    /// Whether prompts are token ids.
    #[must_use]
    pub fn is_ids(&self) -> bool {
        matches!(self.pieces, Pieces::Ids(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_counts_give_the_overhead_and_the_slope() {
        let check = |points: &[(u32, u64)], want: Option<(u32, u32, u32)>| {
            let fit = Fit::through(points).map(|fit| (fit.overhead_tok, fit.rise, fit.run));
            assert_eq!(fit, want, "{points:?}");
        };
        check(&[(4, 34), (16, 46), (64, 94)], Some((30, 1, 1)));
        check(&[(4, 4), (16, 16), (64, 64)], Some((0, 1, 1)));
        // Two tokens a word and ten around them.
        check(&[(4, 18), (16, 42), (64, 138)], Some((10, 120, 60)));
        // Fewer tokens than pieces: a vocabulary that joins words.
        check(&[(4, 3), (16, 9), (64, 33)], Some((1, 30, 60)));
        check(&[(4, 9), (16, 9), (64, 9)], None);
        check(&[(4, 9), (16, 9), (64, 3)], None);
        check(&[], None);
    }

    #[test]
    fn pieces_make_up_the_length_asked_for() {
        let exact = Fit { overhead_tok: 30, rise: 1, run: 1 };
        for (asked, pieces, below) in [(37, 7, false), (31, 1, false), (30, 1, true), (1, 1, true)]
        {
            assert_eq!(
                (exact.pieces(asked), exact.is_below_least(asked)),
                (pieces, below),
                "{asked}"
            );
        }
        let double = Fit { overhead_tok: 10, rise: 120, run: 60 };
        assert_eq!([20, 21, 511].map(|asked| double.pieces(asked)), [5, 6, 251]);
        assert_eq!(double.pieces(u32::MAX), (u32::MAX - 10).div_ceil(2));
    }

    #[test]
    fn too_few_pieces_are_no_vocabulary() {
        assert!(Vocabulary::of_words(&CANDIDATES[..15], &CANDIDATES[..15]).is_none());
        assert!(Vocabulary::of_words(&CANDIDATES[..16], &[]).is_some());
        assert!(Vocabulary::ids(&[7; 15]).is_none());
        let ids: Vec<u32> = COMMON_IDS.collect();
        assert!(Vocabulary::ids(&ids).is_some_and(|vocabulary| vocabulary.is_ids()));
    }
}
