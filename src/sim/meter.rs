//! What the server counts of itself: the figures behind `/metrics`.
//!
//! It is fed with the model's own events, so it moves with each step, whether or not anybody reads the
//! tokens; a request that goes away stops counting and is no finished one. Absent: the names that an
//! engine gives these figures, and their text (see [`super::exposition`]).

use super::chunk::Finish;
use crate::units::{NS_PER_S, Nanos};

/// Upper limits of the buckets for the time to first token, in seconds, as vLLM has them.
const TTFT_LIMITS_S: &[f64] = &[
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
];
/// The same for the time between tokens.
const ITL_LIMITS_S: &[f64] = &[
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0,
    40.0, 80.0,
];
/// The same for what lasts as long as a request.
const REQUEST_LIMITS_S: &[f64] = &[
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0,
    480.0, 960.0, 1920.0, 7680.0,
];

/// Durations or lengths, counted by buckets.
pub(super) struct Histogram {
    /// Seconds, or tokens.
    pub(super) limits: Vec<f64>,
    /// One for each limit, and one for what is above all of them; not cumulative.
    pub(super) counts: Vec<u64>,
    /// Nanoseconds, or tokens: whole, so that it is exact.
    sum: u128,
    /// So many of the sum's are one of the limits'.
    per_unit: u64,
}

impl Histogram {
    fn of_times(limits_s: &[f64]) -> Self {
        let (limits, counts) = (limits_s.to_vec(), vec![0; limits_s.len() + 1]);
        Self { limits, counts, sum: 0, per_unit: NS_PER_S }
    }

    /// The limits are 1, 2 and 5, ten times each, and so on, up to the longest that the model can do.
    fn of_lengths(max_model_len_tok: u64) -> Self {
        let decades = (0..20).filter_map(|decade| 10_u64.checked_pow(decade));
        let limits = decades.flat_map(|decade| [1, 2, 5].map(|digit| decade.checked_mul(digit)));
        let limits = limits.map_while(|limit| limit.filter(|limit| *limit <= max_model_len_tok));
        let limits: Vec<f64> = limits.map(|limit| limit as f64).collect();
        let counts = vec![0; limits.len() + 1];
        Self { limits, counts, sum: 0, per_unit: 1 }
    }

    /// Takes nanoseconds, or tokens.
    fn note(&mut self, value: u64) {
        let in_units = value as f64 / self.per_unit as f64;
        self.counts[self.limits.partition_point(|limit| *limit < in_units)] += 1;
        self.sum += u128::from(value);
    }

    /// In seconds, or tokens.
    pub(super) fn sum(&self) -> f64 {
        self.sum as f64 / self.per_unit as f64
    }
}

/// One request, from its admission to its last token.
pub(super) struct Life {
    arrival: Nanos,
    prompt_tok: u64,
    finish: Finish,
    queued: Nanos,
    last: Nanos,
    output_tok: u64,
}

impl Life {
    pub(super) fn new(arrival: Nanos, prompt_tok: u64, finish: Finish) -> Self {
        Self { arrival, prompt_tok, finish, queued: Nanos::ZERO, last: arrival, output_tok: 0 }
    }

    /// Tokens of it that are held in memory: none before its prefill is done.
    fn held_tok(&self) -> u64 {
        if self.output_tok == 0 { 0 } else { self.prompt_tok + self.output_tok }
    }
}

/// Totals since the server's start.
pub(super) struct Meter {
    /// Of prompts, each counted with its first output token.
    pub(super) prompt_tok: u64,
    /// Of answers, each counted as the model has it.
    pub(super) output_tok: u64,
    /// The same two, of finished requests alone.
    pub(super) finished_prompt_tok: u64,
    pub(super) finished_output_tok: u64,
    /// Requests that ended by themselves, and at the length asked for.
    pub(super) stopped: u64,
    pub(super) at_length: u64,
    /// Requests that went away before their last token.
    pub(super) aborted: u64,
    /// Tokens of prompts and answers that running requests hold now.
    pub(super) held_tok: u64,
    pub(super) ttft: Histogram,
    pub(super) itl: Histogram,
    /// The last four are of finished requests.
    pub(super) e2e: Histogram,
    pub(super) queued: Histogram,
    pub(super) prompt_length: Histogram,
    pub(super) output_length: Histogram,
}

impl Meter {
    /// Of a model that holds so many tokens of a request, prompt and answer.
    pub(super) fn new(max_model_len_tok: u64) -> Self {
        Self {
            prompt_tok: 0,
            output_tok: 0,
            finished_prompt_tok: 0,
            finished_output_tok: 0,
            stopped: 0,
            at_length: 0,
            aborted: 0,
            held_tok: 0,
            ttft: Histogram::of_times(TTFT_LIMITS_S),
            itl: Histogram::of_times(ITL_LIMITS_S),
            e2e: Histogram::of_times(REQUEST_LIMITS_S),
            queued: Histogram::of_times(REQUEST_LIMITS_S),
            prompt_length: Histogram::of_lengths(max_model_len_tok),
            output_length: Histogram::of_lengths(max_model_len_tok),
        }
    }

    /// The first token of a request is there, which had queued so long.
    pub(super) fn first_token(&mut self, life: &mut Life, at: Nanos, queued: Nanos) {
        life.queued = queued;
        self.prompt_tok += life.prompt_tok;
        self.held_tok += life.prompt_tok;
        self.ttft.note(at.since(life.arrival).0);
        self.count(life, at);
    }

    /// A later one is.
    pub(super) fn token(&mut self, life: &mut Life, at: Nanos) {
        self.itl.note(at.since(life.last).0);
        self.count(life, at);
    }

    fn count(&mut self, life: &mut Life, at: Nanos) {
        life.last = at;
        life.output_tok += 1;
        self.output_tok += 1;
        self.held_tok += 1;
    }

    /// The last one was.
    pub(super) fn finished(&mut self, life: &Life) {
        match life.finish {
            Finish::Stop => self.stopped += 1,
            Finish::Length => self.at_length += 1,
        }
        self.held_tok -= life.held_tok();
        self.finished_prompt_tok += life.prompt_tok;
        self.finished_output_tok += life.output_tok;
        self.e2e.note(life.last.since(life.arrival).0);
        self.queued.note(life.queued.0);
        self.prompt_length.note(life.prompt_tok);
        self.output_length.note(life.output_tok);
    }

    /// There will be no more of it.
    pub(super) fn aborted(&mut self, life: &Life) {
        self.held_tok -= life.held_tok();
        self.aborted += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    #[test]
    fn a_limit_belongs_to_its_own_bucket() {
        let mut histogram = Histogram::of_times(&[0.01, 0.025]);
        for span in [ms(0), ms(10), Nanos(10_000_001), ms(25), ms(26), ms(1_000)] {
            histogram.note(span.0);
        }
        assert_eq!(histogram.counts, [2, 2, 2]);
        assert!((histogram.sum() - 1.071_000_001).abs() < 1e-12);
    }

    #[test]
    fn lengths_go_up_to_what_the_model_holds() {
        let mut histogram = Histogram::of_lengths(2048);
        let limits = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0];
        assert_eq!(histogram.limits, limits);
        for length in [1, 2, 3, 2000, 2001] {
            histogram.note(length);
        }
        assert_eq!(histogram.counts, [1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert!((histogram.sum() - 4007.0).abs() < 1e-12);
        assert_eq!(Histogram::of_lengths(u64::MAX).limits.len(), 58);
    }

    #[test]
    fn one_that_goes_away_is_counted_as_far_as_it_came() {
        let mut meter = Meter::new(1000);
        let mut whole = Life::new(ms(5), 100, Finish::Length);
        let mut cut = Life::new(ms(5), 7, Finish::Stop);
        let unborn = Life::new(ms(5), 9, Finish::Stop);
        meter.first_token(&mut whole, ms(25), ms(3));
        meter.first_token(&mut cut, ms(26), Nanos::ZERO);
        meter.token(&mut whole, ms(40));
        assert_eq!((meter.prompt_tok, meter.output_tok, meter.held_tok), (107, 3, 110));
        meter.aborted(&cut);
        meter.aborted(&unborn);
        meter.finished(&whole);
        assert_eq!((meter.prompt_tok, meter.output_tok, meter.held_tok), (107, 3, 0));
        assert_eq!((meter.finished_prompt_tok, meter.finished_output_tok), (100, 2));
        assert_eq!((meter.stopped, meter.at_length, meter.aborted), (0, 1, 2));
        assert!((meter.e2e.sum() - 0.035).abs() < 1e-12);
        assert!((meter.queued.sum() - 0.003).abs() < 1e-12);
        assert_eq!((meter.prompt_length.sum(), meter.output_length.sum()), (100.0, 2.0));
    }
}
