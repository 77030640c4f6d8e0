//! A load of known size on the simulated server: so many streams open at a time, so many arrivals a
//! second, a token every so often in each.
//!
//! The load is in its steady state from the end of a short ramp on: the streams that are opened in the
//! ramp end one after the other as those of a load that has long been running would. An answer lasts
//! `streams ÷ rate` (Little's law), and none lasts longer than the load, so that nothing is waited for
//! at its end. Deliberately absent: processes, sockets, and what comes of it.

use crate::schedule::Planned;
use crate::sim;
use crate::trace::Request;
use crate::units::{NS_PER_S, Nanos};

/// A load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Between two arrivals.
    pub interval: Nanos,
    /// Streams open at a time.
    pub streams: u32,
    /// Between two tokens of a stream.
    pub gap: Nanos,
    /// How long the load is measured.
    pub span: Nanos,
}

/// Streams opened a second in the ramp.
const RAMP_S: u64 = 2_000;
/// Time to first token.
const PREFILL: Nanos = Nanos::from_millis(20);
/// Tokens of each prompt.
const INPUT_TOK: u32 = 16;
/// Tokens of the longest answer: each is remembered until the answer ends, by client and server.
pub const LONGEST_TOK: u64 = 200_000;

/// A load that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// Answers would be too long.
    #[error(
        "an answer would have {0} tokens and the limit is {LONGEST_TOK}\nhint: a higher --rate makes \
         answers shorter, as does a longer --gap"
    )]
    TooLong(u64),
    /// Nothing would arrive in time.
    #[error(
        "no request would arrive within --duration\nhint: a higher --rate, or a longer --duration"
    )]
    NothingArrives,
}

impl Load {
    /// Says what is wrong, if anything.
    pub fn check(&self) -> Result<(), LoadError> {
        let longest = self.life().min(self.ramp() + self.span).0 / self.gap.0.max(1);
        if longest > LONGEST_TOK {
            return Err(LoadError::TooLong(longest));
        }
        if self.interval >= self.span {
            return Err(LoadError::NothingArrives);
        }
        Ok(())
    }

    /// Arrivals a second.
    #[must_use]
    pub fn rate_s(&self) -> f64 {
        NS_PER_S as f64 / self.interval.0 as f64
    }

    /// Token events a second, once all streams are open.
    #[must_use]
    pub fn event_s(&self) -> f64 {
        f64::from(self.streams) / self.gap.as_secs_f64()
    }

    /// How long an answer lasts.
    #[must_use]
    pub fn life(&self) -> Nanos {
        Nanos(self.interval.0.saturating_mul(u64::from(self.streams)))
    }

    /// From `t0` to the first arrival that counts; the streams are opened before.
    #[must_use]
    pub fn ramp(&self) -> Nanos {
        Nanos((u64::from(self.streams) * NS_PER_S / RAMP_S).max(NS_PER_S))
    }

    /// How many requests it is.
    #[must_use]
    pub fn rows(&self) -> u64 {
        u64::from(self.streams) + self.span.0.div_ceil(self.interval.0.max(1))
    }

    /// The requests in order of their due times.
    pub fn plan(self) -> impl Iterator<Item = Planned> + Send + 'static {
        let (ramp, life, streams) = (self.ramp(), self.life(), u64::from(self.streams));
        let end = ramp + self.span;
        let share = move |of: Nanos, i: u64| Nanos(part(of.0, 2 * i + 1, 2 * streams.max(1)));
        let open = (0..streams).map(move |i| {
            let due = share(ramp, i);
            // In another order than they were opened, as streams of different lengths would end.
            let left = share(life, i.wrapping_mul(7_919) % streams.max(1));
            (due, (ramp + left).min(end).since(due))
        });
        let arrivals = (0..self.rows() - streams).map(move |i| {
            let due = ramp + Nanos(self.interval.0.saturating_mul(i));
            (due, life.min(end.since(due)))
        });
        open.chain(arrivals).zip(0..).map(move |((due, lasts), row)| {
            let output_tok = self.tokens(lasts);
            let request = Request {
                row,
                at: due,
                input_tok: INPUT_TOK,
                output_tok: Some(output_tok),
                ..Request::default()
            };
            Planned { index: row, due: Some(due), request }
        })
    }

    /// A server that gives this load its times: nothing queues, however many streams there are.
    #[must_use]
    pub fn server(&self) -> sim::Settings {
        sim::Settings {
            prefill_base: PREFILL,
            prefill_per_tok: Nanos::ZERO,
            step_base: self.gap,
            step_per_stream: Nanos::ZERO,
            max_running: usize::MAX,
            max_model_len_tok: LONGEST_TOK + u64::from(INPUT_TOK),
            ..sim::Settings::default()
        }
    }

    /// Tokens of an answer that lasts so long.
    fn tokens(&self, lasts: Nanos) -> u32 {
        let steps = lasts.since(PREFILL).0 / self.gap.0.max(1);
        u32::try_from(steps.saturating_add(1)).unwrap_or(u32::MAX)
    }
}

/// `whole × numerator ÷ denominator`.
fn part(whole: u64, numerator: u64, denominator: u64) -> u64 {
    let part = u128::from(whole) * u128::from(numerator) / u128::from(denominator);
    u64::try_from(part).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::{self, Setup};
    use crate::record::{Outcome, Row};

    const LOAD: Load = Load {
        interval: Nanos::from_millis(10),
        streams: 100,
        gap: Nanos::from_millis(50),
        span: Nanos::from_secs(3),
    };

    /// Streams of `rows` open at `at`.
    fn open_at(rows: &[Row], at: Nanos) -> usize {
        let is_open = |row: &&Row| {
            let due = row.scheduled.expect("due");
            due <= at && at < due + row.close.expect("closed")
        };
        rows.iter().filter(is_open).count()
    }

    #[test]
    fn as_many_streams_are_open_as_asked_for_from_the_ramp_to_the_end() {
        let setup = Setup::chat(LOAD.server());
        let outcome = lab::replay(LOAD.plan(), &setup).expect("it ends");
        assert_eq!(outcome.rows.len() as u64, LOAD.rows());
        assert!(outcome.rows.iter().all(|row| row.outcome == Outcome::Ok));
        for ms in (1_050..3_900).step_by(150) {
            let open = open_at(&outcome.rows, Nanos::from_millis(ms));
            assert!((85..=115).contains(&open), "{open} at {ms} ms");
        }
        let end = outcome.summary.end.expect("an end");
        assert!(end < Nanos::from_millis(4_400), "nothing is waited for: {end}");
        let check = lab::check(&outcome.rows, Nanos::ZERO, &outcome.truth);
        assert_eq!((check.missing, check.miscounted), (0, 0));
        assert_eq!(check.e2e.percentile(100), Some(Nanos::ZERO));
    }

    #[test]
    fn a_plan_is_in_order_and_has_its_rate() {
        let dues: Vec<Nanos> = LOAD.plan().map(|row| row.due.expect("a time")).collect();
        assert!(dues.is_sorted());
        let counted = dues.iter().filter(|due| **due >= LOAD.ramp()).count();
        assert_eq!(counted, 300, "100 a second for 3 s");
    }

    #[test]
    fn loads_that_nobody_could_make_are_refused() {
        assert_eq!(LOAD.check(), Ok(()));
        let endless =
            Load { interval: Nanos::from_secs(200), span: Nanos::from_secs(100_000), ..LOAD };
        assert!(matches!(endless.check(), Err(LoadError::TooLong(_))));
        let empty = Load { interval: Nanos::from_secs(3), ..LOAD };
        assert_eq!(empty.check(), Err(LoadError::NothingArrives));
    }
}
