//! Which load a calibration is made under: that of a plan, or that of a rate and streams.

use crate::lab::Load;
use crate::schedule::PlanFacts;
use crate::units::{NS_PER_S, Nanos};

/// The short form before a run: a token every so often, so many streams and arrivals a second at the
/// bounds, for so long.
const PLAN_GAP: Nanos = Nanos::from_millis(50);
const PLAN_MOST_STREAMS: f64 = 4_000.0;
const PLAN_LEAST_RATE: f64 = 2.0;
const PLAN_SPAN: Nanos = Nanos::from_secs(3);
/// What an answer is taken to have where no row asks for a length; about a chat's.
pub const UNKNOWN_ANSWER_TOK: f64 = 250.0;

/// A plan's own load, as far as it is known before it is sent: streams are taken to last as long as
/// their mean answer at 20 tok/s, and no more of them are opened than the built-in server carries.
#[must_use]
pub fn of_plan(facts: &PlanFacts, slots: Option<usize>) -> Load {
    let answer_tok = mean_answer_tok(facts).unwrap_or(UNKNOWN_ANSWER_TOK);
    let life_s = (answer_tok * PLAN_GAP.as_secs_f64()).max(PLAN_GAP.as_secs_f64());
    let paced = |span: Nanos| facts.rows as f64 / span.as_secs_f64();
    let (rate, streams) = match (slots, facts.last_due.filter(|last| *last > Nanos::ZERO)) {
        (Some(slots), _) => (slots as f64 / life_s, slots as f64),
        (None, Some(span)) => (paced(span), paced(span) * life_s),
        // All at once.
        (None, None) => (facts.rows as f64 / life_s, facts.rows as f64),
    };
    let streams = streams.min(facts.rows as f64).min(PLAN_MOST_STREAMS);
    let streams = streams_of(streams, Nanos::from_secs(1));
    Load { interval: interval(rate.max(PLAN_LEAST_RATE)), streams, gap: PLAN_GAP, span: PLAN_SPAN }
}

/// The mean answer of the rows that ask for a length; `None` where none does.
#[must_use]
pub fn mean_answer_tok(facts: &PlanFacts) -> Option<f64> {
    let limited_rows = facts.rows.saturating_sub(facts.output.natural_rows);
    (limited_rows > 0).then(|| facts.output.limited_tok as f64 / limited_rows as f64)
}

/// Streams that `rate` arrivals a second keep open.
#[must_use]
pub fn streams_of(rate: f64, life: Nanos) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to fit")]
    let streams = (rate * life.as_secs_f64()).ceil().clamp(1.0, 1e6) as u32;
    streams
}

/// Between two of `rate` arrivals a second.
#[must_use]
pub fn interval(rate: f64) -> Nanos {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to fit")]
    let ns = (NS_PER_S as f64 / rate).round().clamp(1.0, 1e18) as u64;
    Nanos(ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::OutputSum;

    #[test]
    fn a_plan_s_load_is_its_rate_and_the_streams_that_its_answers_keep_open() {
        // 10 requests a second of 100 tokens, 5 s each at 20 tok/s.
        let facts = PlanFacts {
            rows: 600,
            output: OutputSum::of(60_000),
            last_due: Some(Nanos::from_secs(60)),
            ..PlanFacts::default()
        };
        let load = of_plan(&facts, None);
        assert_eq!((load.interval, load.streams), (Nanos::from_millis(100), 50));
        // In the closed loop 20 slots send 4 a second.
        let load = of_plan(&facts, Some(20));
        assert_eq!((load.interval, load.streams), (Nanos::from_millis(250), 20));
        // Answers of no length asked for count for no tokens, and not as empty ones either.
        let output = OutputSum { limited_tok: 30_000, natural_rows: 300 };
        assert_eq!(mean_answer_tok(&PlanFacts { output, ..facts.clone() }), Some(100.0));
        let output = OutputSum { limited_tok: 0, natural_rows: 600 };
        let natural = PlanFacts { output, ..facts.clone() };
        assert_eq!((mean_answer_tok(&natural), of_plan(&natural, None).streams), (None, 125));
        // Once an hour is not calibrated at once an hour, and no plan opens more streams than it has rows.
        let rare = PlanFacts { rows: 3, last_due: Some(Nanos::from_secs(7_200)), ..facts.clone() };
        assert_eq!(of_plan(&rare, None).check(), Ok(()));
        let burst = PlanFacts { rows: 7, last_due: Some(Nanos::ZERO), ..facts };
        assert_eq!(of_plan(&burst, None).streams, 7);
    }
}
