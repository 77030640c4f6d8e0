//! Chance, as a function of (seed, request number, token number) and of nothing else.
//!
//! The order in which requests are served, the number of connections and the moment of asking change
//! no draw: the same request of the same seed has the same length, the same jitter and the same words
//! in every run. Absent: any shared generator that one request could take draws from another by.

use crate::random::{Random, STEP, mix};
use crate::units::Nanos;

/// Which of a request's two generators: the length must not move when the jitter is turned off.
#[derive(Clone, Copy)]
enum Purpose {
    Jitter = 0,
    Length = 1,
}

/// Keyed by the seed; the request and the purpose choose the stream.
fn generator(seed: u64, request: u64, purpose: Purpose) -> Random {
    let mut random = Random::keyed([seed, 0, 0, 0]);
    random.seek(request.wrapping_mul(2).wrapping_add(purpose as u64), 0);
    random
}

/// Uniform in [0, 1): whether fault rule `rule` falls on request `number`. Each rule has a key of its own.
pub(super) fn share(seed: u64, rule: u64, number: u64) -> f64 {
    let mut random = Random::keyed([seed, rule.wrapping_add(1), 0, 0]);
    random.seek(number, 0);
    random.uniform()
}

/// The jitter of one request: draw 0 for its prefill, draw n for the step to its token n.
///
/// Draws are taken in the order of the tokens, so the position in the stream is the token's number.
pub(super) struct Jitter {
    width: f64,
    random: Random,
}

impl Jitter {
    /// `None` where there is no jitter: times then are exact, and 300 bytes a stream are saved.
    pub(super) fn new(seed: u64, request: u64, width: f64) -> Option<Self> {
        (width > 0.0).then(|| Self { width, random: generator(seed, request, Purpose::Jitter) })
    }

    /// `span` times the next factor, uniform in 1 ± width.
    pub(super) fn apply(&mut self, span: Nanos) -> Nanos {
        let factor = 1.0 + self.width * (2.0 * self.random.uniform() - 1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the factor is within (0, 2), and `as` saturates"
        )]
        Nanos((span.0 as f64 * factor).round() as u64)
    }
}

/// At which token an answer ends by itself: geometric on 1, 2, 3, … with the given mean.
pub(super) fn natural_tok(seed: u64, request: u64, mean_tok: f64) -> u64 {
    if mean_tok <= 1.0 {
        return 1;
    }
    // Inversion: the chance to go on after each token is 1 − 1/mean. 1 − u is never zero.
    let u = generator(seed, request, Purpose::Length).uniform();
    let more = libm::log(1.0 - u) / libm::log1p(-1.0 / mean_tok);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative, and `as` saturates"
    )]
    (more as u64).saturating_add(1)
}

/// The words of all answers: each has a leading space, so that an answer read back as a prompt has as
/// many words as it had tokens.
const WORDS: [&str; 32] = [
    " the", " of", " and", " to", " in", " is", " was", " for", " on", " are", " with", " they",
    " be", " at", " one", " have", " this", " from", " by", " hot", " word", " but", " what",
    " some", " we", " can", " out", " other", " were", " all", " there", " when",
];

/// The text of one token. Nothing but variety hangs on it, so one round of mixing is enough.
pub(super) fn word(seed: u64, request: u64, index: u64) -> &'static str {
    let z = seed
        .wrapping_add(request.wrapping_mul(STEP))
        .wrapping_add(index.wrapping_mul(0xD1B5_4A32_D192_ED03));
    // The upper five bits: one of 32.
    WORDS[(mix(z) >> 59) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_uniform_about_one() {
        let mut jitter = Jitter::new(7, 1, 0.2).expect("a width");
        let spans: Vec<u64> = (0..20_000).map(|_| jitter.apply(Nanos(1_000_000)).0).collect();
        let mean = spans.iter().sum::<u64>() as f64 / spans.len() as f64;
        assert!((mean - 1e6).abs() < 3_000.0, "{mean}");
        assert!(spans.iter().all(|span| (800_000..=1_200_000).contains(span)));
        assert!(spans.iter().any(|span| *span < 802_000));
        assert!(spans.iter().any(|span| *span > 1_198_000));
        assert!(Jitter::new(7, 1, 0.0).is_none());
    }

    #[test]
    fn lengths_are_geometric() {
        let mean = |mean_tok: f64| {
            let n = 20_000;
            (0..n).map(|request| natural_tok(3, request, mean_tok)).sum::<u64>() as f64 / n as f64
        };
        assert!((mean(211.0) / 211.0 - 1.0).abs() < 0.02, "{}", mean(211.0));
        assert!((mean(2.0) / 2.0 - 1.0).abs() < 0.02);
        assert!((mean(1.0) - 1.0).abs() < 1e-9);
        // A geometric length is 1 with chance 1/mean.
        let ones = (0..20_000).filter(|request| natural_tok(3, *request, 4.0) == 1).count();
        assert!((4_800..5_200).contains(&ones), "{ones}");
    }

    #[test]
    fn draws_hang_on_their_numbers_only() {
        assert_eq!(natural_tok(1, 5, 100.0), natural_tok(1, 5, 100.0));
        assert_ne!(natural_tok(1, 5, 1e6), natural_tok(2, 5, 1e6));
        assert_ne!(natural_tok(1, 5, 1e6), natural_tok(1, 6, 1e6));
        assert_eq!(word(1, 2, 3), word(1, 2, 3));
        let used: std::collections::BTreeSet<_> = (0..500).map(|i| word(0, 0, i)).collect();
        assert_eq!(used.len(), WORDS.len());
    }
}
