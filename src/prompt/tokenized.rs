//! Which words are one token each, seen from how a server cuts one long text.
//!
//! Between any two words of the text stands a marker, whose token shows where each word's own begin:
//! so one question tells of all words. Deliberately absent: asking it.

use super::vocabulary::CANDIDATES;

/// Common enough to be one token wherever any word is. No candidate.
const MARKER: &str = " the";

/// What stands in front of each word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// A space, as in the middle of a prompt.
    Space,
    /// A line break, which a chat template often puts before a prompt: so no space.
    Break,
}

/// The text to be cut.
#[must_use]
pub fn question(before: Before) -> String {
    let between = if before == Before::Space { ' ' } else { '\n' };
    let mut text = String::new();
    for word in CANDIDATES {
        text.push_str(MARKER);
        text.push(between);
        text.push_str(word);
    }
    text.push_str(MARKER);
    text
}

/// The words that are one token there, each with its id, from the tokens of [`question`]'s text. None
/// where the markers are not found, which a vocabulary without such words has.
#[must_use]
pub fn single_words(tokens: &[u32], before: Before) -> Vec<(&'static str, u32)> {
    let Some(marker) = tokens.last() else { return Vec::new() };
    let cut: Vec<&[u32]> = tokens.split(|id| id == marker).collect();
    // One part before the first marker, where a start token may stand, and an empty one at the end.
    if cut.len() != CANDIDATES.len() + 2 {
        return Vec::new();
    }
    let extra = usize::from(before == Before::Break);
    let words = CANDIDATES.iter().zip(&cut[1..]);
    words
        .filter(|(_, tokens)| tokens.len() == 1 + extra)
        .map(|(word, tokens)| (*word, tokens[extra]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tokenizer with one token a word of `whole`, two for any other, one for a line break.
    fn cut(text: &str, whole: impl Fn(&str) -> bool) -> Vec<u32> {
        let mut tokens = Vec::new();
        let spaced = text.replace('\n', " \n ");
        for word in spaced.split(' ').filter(|word| !word.is_empty()) {
            let id = CANDIDATES.iter().position(|candidate| *candidate == word);
            match (word, id) {
                ("the", _) => tokens.push(1),
                ("\n", _) => tokens.push(2),
                (_, Some(id)) if whole(word) => tokens.push(10 + u32::try_from(id).expect("few")),
                _ => tokens.extend([3, 4]),
            }
        }
        tokens
    }

    #[test]
    fn words_of_one_token_are_found_with_their_ids() {
        for before in [Before::Space, Before::Break] {
            let text = question(before);
            let all = single_words(&cut(&text, |_| true), before);
            assert_eq!(all.len(), CANDIDATES.len());
            assert_eq!(all[3], (CANDIDATES[3], 13));
            let short = single_words(&cut(&text, |word| word.len() < 5), before);
            assert!(short.iter().all(|(word, _)| word.len() < 5) && short.len() > 50);
            // A start token in front is no word.
            let started = [&[9], &cut(&text, |_| true)[..]].concat();
            assert_eq!(single_words(&started, before).len(), CANDIDATES.len());
        }
    }

    #[test]
    fn a_strange_vocabulary_has_none() {
        for tokens in [&[][..], &[1], &[1, 2, 3], &[7; 1000]] {
            assert!(single_words(tokens, Before::Space).is_empty());
        }
        let bytes: Vec<u32> = question(Before::Space).bytes().map(u32::from).collect();
        assert!(single_words(&bytes, Before::Space).is_empty());
    }

    #[test]
    fn the_marker_is_no_candidate() {
        assert!(!CANDIDATES.contains(&MARKER.trim()));
        let mut sorted = CANDIDATES.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), CANDIDATES.len(), "no word stands twice");
    }
}
