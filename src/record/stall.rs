//! What a reader waits for: somebody who reads at an even pace from the first token on, and has to stop
//! where the next text is not there yet.
//!
//! A stream that is late in one place and early in another may never stop such a reader; one whose mean
//! rate is fine may stop him often. Absent: the wait for the first token, which is the TTFT, and a wait
//! that nothing ended.

use super::TokenTimes;
use crate::units::{NS_PER_S, Nanos, Speed, UnitError};

/// How fast text is read, in tokens per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ReaderPace(Speed);

impl Default for ReaderPace {
    /// 20 tok/s, about three times as fast as people read: what is fluent at it is fluent.
    fn default() -> Self {
        Self(Speed::ONE.times(20))
    }
}

impl ReaderPace {
    /// Parses tokens per second (`20`, `4.5`).
    pub fn parse(text: &str) -> Result<Self, UnitError> {
        Speed::parse(text).map(Self)
    }

    /// Time to read so many tokens.
    fn read(self, tok: u64) -> Nanos {
        self.0.shorten(Nanos(tok.saturating_mul(NS_PER_S)))
    }

    /// How long and how often the reader of a stream waits after its first token; `output_tok` is what is
    /// known of all its tokens. `None` without a token, and where arrivals were not kept apart.
    #[must_use]
    pub fn stalls(self, tokens: &TokenTimes, output_tok: Option<u64>) -> Option<Stalls> {
        let events = tokens.count();
        if events == 0 || !tokens.is_exact() {
            return None;
        }
        let arrivals = tokens.arrivals();
        if let Some(steps) = tokens.running_steps() {
            return Some(follow(arrivals.zip(steps.map(|tok| self.read(u64::from(tok))))));
        }
        // All tokens are known, not which event bore how many: each bears its share.
        let all = self.read(output_tok.unwrap_or(events).max(events));
        Some(follow(arrivals.map(|at| (at, Nanos(all.0 / events)))))
    }
}

/// Waits of one reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalls {
    /// All of them together.
    pub time: Nanos,
    /// How many there were.
    pub count: u64,
}

/// Reads events as `(arrival, time to read it)` one after the other.
fn follow(events: impl Iterator<Item = (Nanos, Nanos)>) -> Stalls {
    let mut stalls = Stalls::default();
    // What has come is read up to here.
    let mut read_until: Option<Nanos> = None;
    for (at, reading) in events {
        let from = match read_until {
            Some(until) if at > until => {
                // An event without a token ends no wait.
                if reading == Nanos::ZERO {
                    continue;
                }
                stalls.time += at.since(until);
                stalls.count += 1;
                at
            }
            Some(until) => until,
            None => at,
        };
        read_until = Some(from + reading);
    }
    stalls
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Kind;
    use super::*;

    /// `(arrival in ms, running count)` of each event.
    fn tokens(events: &[(u64, Option<u64>)]) -> TokenTimes {
        let mut tokens = TokenTimes::default();
        for (ms, running) in events {
            tokens.push(Nanos::from_millis(*ms), Kind::Content, *running);
        }
        tokens
    }

    fn check(
        pace: &str,
        events: &[(u64, Option<u64>)],
        output_tok: Option<u64>,
        expect: (u64, u64),
    ) {
        let pace = ReaderPace::parse(pace).expect("a pace");
        let stalls = pace.stalls(&tokens(events), output_tok).expect("tokens");
        let expect = Stalls { time: Nanos::from_millis(expect.0), count: expect.1 };
        assert_eq!(stalls, expect, "{events:?} at {pace:?}");
    }

    #[test]
    fn a_reader_waits_only_where_the_text_is_not_there() {
        let at = |times: &[u64]| times.iter().map(|at| (*at, None)).collect::<Vec<_>>();
        // At 20 tok/s a token is read in 50 ms.
        check("20", &at(&[200]), None, (0, 0));
        check("20", &at(&[200, 250, 300]), None, (0, 0));
        check("20", &at(&[200, 210, 220, 230]), None, (0, 0));
        check("20", &at(&[200, 260, 320]), None, (20, 2));
        // Three tokens at once last until 350; then nothing for 2 s.
        check("20", &at(&[200, 200, 200, 2_350]), None, (2_000, 1));
        // The pause is hidden by what came early.
        check("20", &at(&[0, 0, 0, 0, 200]), None, (0, 0));
        check("10", &at(&[200, 260, 320]), None, (0, 0));
        check("2000", &at(&[0, 1, 2]), None, (1, 2));
    }

    #[test]
    fn tokens_count_and_not_chunks() {
        let two = |first: Option<u64>, second: Option<u64>| [(0, first), (200, second)];
        // Four tokens, then two: 200 ms of reading.
        check("20", &two(Some(4), Some(6)), Some(6), (0, 0));
        check("20", &two(Some(1), Some(6)), Some(6), (150, 1));
        // Known in all only: three each.
        check("20", &two(None, None), Some(6), (50, 1));
        check("20", &two(None, None), None, (150, 1));
        // An event that added no token ends no wait.
        check("20", &[(0, Some(1)), (100, Some(1)), (300, Some(2))], Some(2), (250, 1));
    }

    #[test]
    fn without_tokens_nothing_is_claimed() {
        assert_eq!(ReaderPace::default().stalls(&TokenTimes::default(), Some(3)), None);
        assert_eq!(ReaderPace::default(), ReaderPace::parse("20").expect("a pace"));
        assert!(ReaderPace::parse("0").is_err() && ReaderPace::parse("-1").is_err());
    }

    proptest! {
        /// Reading and waiting fill the time from the first arrival to the end of reading; a faster
        /// reader never waits less.
        #[test]
        fn waits_are_what_reading_does_not_fill(gaps in proptest::collection::vec(0u64..500, 0..50)) {
            let mut at = 0;
            let events: Vec<(u64, Option<u64>)> = std::iter::once(0)
                .chain(gaps)
                .map(|gap| {
                    at += gap;
                    (at, None)
                })
                .collect();
            let tokens = tokens(&events);
            let time = |pace: &str| {
                let pace = ReaderPace::parse(pace).expect("a pace");
                pace.stalls(&tokens, None).expect("tokens").time
            };
            prop_assert!(time("5") <= time("20") && time("20") <= time("100"));
            // Obvious reckoning: the reader ends when the slowest way through the events does.
            let n = events.len() as u64;
            let ends = events.iter().zip(0..).map(|((at, _), i)| at + (n - i) * 50).max();
            prop_assert_eq!(Some(time("20") + Nanos::from_millis(n * 50)), ends.map(Nanos::from_millis));
        }
    }
}
