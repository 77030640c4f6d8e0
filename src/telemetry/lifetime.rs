//! How long answers are, by all that a server has counted since its start.
//!
//! A server that runs is a sample cut off in the middle: short answers are among the finished first, long
//! ones still run. The mean of the finished alone is therefore too low until many times as many have
//! finished as run. With `F` finished requests of `T` tokens in all, `R` running and `U` tokens made for
//! these so far, there are two ways to reckon with the running ones:
//!
//! ```text
//! (T + U) / F          each token is as likely as any other to be the last (deaths over time on test)
//! (T + 2U) / (F + R)   those running are on average half-way (in a steady state true of any lengths)
//! ```
//!
//! The first is too high for lengths that are all alike, the second too low before the first have
//! finished; their middle is taken. It may be off by half of what they differ by, and by the share of
//! requests that still run, beside chance. Deliberately absent: what the server does now (see
//! [`super::remaining`]).

use super::reading::Reading;
use super::rules::{Counter, Gauge, Moves, Stepping};

/// Standard deviations of 95%.
const NORMAL: f64 = 1.96;

/// Totals of one server, or of several together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lifetime {
    /// Requests that were answered whole.
    pub finished: f64,
    /// Completion tokens of these.
    pub finished_tok: f64,
    /// Completion tokens of requests that have not finished, those that were cut off among them; zero where
    /// the server does not tell.
    pub unfinished_tok: f64,
    /// Requests in the batch.
    pub running: f64,
    /// Tokens of running requests are told.
    has_unfinished: bool,
}

/// A mean length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanLength {
    /// In tokens.
    pub tok: f64,
    /// Relative, at 95%.
    pub error: f64,
}

impl Lifetime {
    /// What a page says; `None` where it does not count finished requests or their tokens.
    #[must_use]
    pub fn of(reading: &Reading) -> Option<Self> {
        let total = |counter| -> Option<f64> {
            Some(reading.counters.get(&counter)?.values().sum()).filter(|sum: &f64| *sum >= 0.0)
        };
        let finished = total(Counter::Finished)?;
        let generated = match (reading.rules.moves, reading.rules.stepping) {
            (Moves::PerStep, _) => total(Counter::Generation),
            (_, Some(Stepping::TokenGaps)) => reading.stepped.map(|stepped| stepped.tok),
            _ => None,
        };
        let of_finished = total(Counter::FinishedTokens);
        let finished_tok = of_finished.or(generated)?;
        let unfinished = generated.filter(|_| of_finished.is_some());
        let unfinished = unfinished.map(|generated| (generated - finished_tok).max(0.0));
        Some(Self {
            finished,
            finished_tok,
            unfinished_tok: unfinished.unwrap_or(0.0),
            running: reading.gauges.get(&Gauge::Running).copied().unwrap_or(0.0),
            has_unfinished: unfinished.is_some(),
        })
    }

    /// Another server beside it.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            finished: self.finished + other.finished,
            finished_tok: self.finished_tok + other.finished_tok,
            unfinished_tok: self.unfinished_tok + other.unfinished_tok,
            running: self.running + other.running,
            has_unfinished: self.has_unfinished && other.has_unfinished,
        }
    }

    /// Tokens per request; `None` before the first has finished.
    #[must_use]
    pub fn mean_length(&self) -> Option<MeanLength> {
        let Self { finished, finished_tok, running, .. } = *self;
        if finished < 1.0 || finished_tok <= 0.0 {
            return None;
        }
        let by_chance = NORMAL / finished.sqrt();
        let untold = running / (finished + running);
        if !self.has_unfinished {
            let error = by_chance.hypot(untold);
            return Some(MeanLength { tok: finished_tok / finished, error });
        }
        // Without those that were cut off long ago: none that runs is much longer than the others.
        let most = 2.0 * running * (finished_tok + self.unfinished_tok) / finished;
        let unfinished_tok = self.unfinished_tok.min(most);
        let (as_last, half_way) = (
            (finished_tok + unfinished_tok) / finished,
            (finished_tok + 2.0 * unfinished_tok) / (finished + running),
        );
        let tok = f64::midpoint(as_last, half_way);
        let between = (as_last - half_way).abs() / 2.0 / tok;
        Some(MeanLength { tok, error: by_chance.hypot(between.max(untold)) })
    }
}

#[cfg(test)]
mod tests {
    use super::super::exposition::{Limits, parse};
    use super::super::reading::{read, recognise};
    use super::super::remaining::{Length, Remaining};
    use super::super::track::{Stamp, Track};
    use super::super::window::Window;
    use super::*;
    use crate::units::Nanos;

    const SLOTS: usize = 200;
    const TOK_S: usize = 50;
    const LENGTHS: [u64; 8] = [100, 200, 300, 400, 600, 900, 1500, 3000];
    const MEAN_TOK: f64 = 875.0;

    /// A run whose slots are always full: the reading of each second from its beginning.
    fn run(seconds: u64) -> Vec<Reading> {
        let mut chance = 1_u64;
        let mut draw = || {
            chance = chance
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            LENGTHS[(chance >> 61) as usize]
        };
        let mut slots: Vec<(u64, u64)> = (0..SLOTS).map(|_| (0, draw())).collect();
        let (mut generated, mut finished, mut finished_tok) = (0, 0, 0);
        let mut readings = Vec::new();
        for _ in 0..=seconds {
            let page = format!(
                "vllm:generation_tokens_total {generated}\nvllm:num_requests_running {SLOTS}\n\
                 vllm:request_success_total {finished}\n\
                 vllm:request_generation_tokens_sum {finished_tok}\nprocess_start_time_seconds 7\n"
            );
            let page = parse(page.as_bytes(), Limits::default()).expect("a page");
            readings.push(read(&page, recognise(&page).expect("vLLM")));
            for token in 0..TOK_S * SLOTS {
                let (made, length) = &mut slots[token % SLOTS];
                (*made, generated) = (*made + 1, generated + 1);
                if made == length {
                    (finished, finished_tok) = (finished + 1, finished_tok + *length);
                    (*made, *length) = (0, draw());
                }
            }
        }
        readings
    }

    /// Watched from a second of the run on, for so many windows of 5 s.
    fn watched(readings: &[Reading], from: usize, windows: usize) -> Remaining {
        let mut remaining = Remaining::new(25_000, None);
        remaining.begins_with(Lifetime::of(&readings[from]));
        let mut track = Track::default();
        for (second, reading) in readings.iter().enumerate().skip(from).take(5 * windows + 1) {
            let stamp = Stamp { at: Nanos::from_secs(second as u64), half_width: Nanos::ZERO };
            track.push(stamp, reading.clone()).expect("one server");
        }
        for window in 0..windows {
            let begin = (from + 5 * window) as u64;
            let (begin, end) = (Nanos::from_secs(begin), Nanos::from_secs(begin + 5));
            let window = Window::of(&track, begin, end).expect("readings");
            let rate = window.generation.expect("a rate").tok_s;
            remaining.add_counts(rate * 5.0, window.grown.get(&Counter::Finished).copied());
            remaining.add_rates([rate, rate]);
        }
        remaining
    }

    /// In samples, tokens and seconds that are known.
    #[test]
    fn the_length_is_right_long_before_that_of_the_finished_is() {
        let readings = run(140);
        for (from, windows, within) in [(18, 1, 0.2), (30, 1, 0.12), (30, 10, 0.1), (60, 10, 0.08)]
        {
            let outlook = watched(&readings, from, windows).outlook().expect("known");
            let off = outlook.mean_tok / MEAN_TOK - 1.0;
            assert!(off.abs() < within, "{from} s, {windows} windows: {off:+.3}");
            let (least, most) = outlook.between_s;
            let left_s = outlook.samples * MEAN_TOK / (SLOTS * TOK_S) as f64;
            assert!(least < left_s && most.is_none_or(|most| left_s < most), "{outlook:?}");
            assert!(matches!(outlook.length, Length::SinceStart { .. }), "{outlook:?}");
        }
        let early = Lifetime::of(&readings[30]).expect("told");
        let of_finished = early.finished_tok / early.finished;
        assert!(of_finished < 0.75 * MEAN_TOK, "{of_finished} by the finished alone");
        // Long after the start all are the same.
        let late =
            Lifetime::of(&readings[140]).expect("told").mean_length().expect("some finished");
        assert!((late.tok / MEAN_TOK - 1.0).abs() < 0.06, "{late:?}");
    }

    #[test]
    fn what_was_cut_off_long_ago_does_not_stretch_those_that_run() {
        let server = Lifetime {
            finished: 100_000.0,
            finished_tok: 65_000_000.0,
            unfinished_tok: 4_000_000.0,
            running: 200.0,
            has_unfinished: true,
        };
        let mean = server.mean_length().expect("many finished");
        assert!((mean.tok / 650.0 - 1.0).abs() < 0.01, "{mean:?}");
        assert_eq!(Lifetime { finished: 0.0, finished_tok: 0.0, ..server }.mean_length(), None);
    }

    #[test]
    fn a_server_that_tells_of_the_finished_alone_is_taken_at_its_word_with_care() {
        let page = "tgi_request_generated_tokens_sum 6500\ntgi_request_success 10\ntgi_batch_current_size 30\n";
        let page = parse(page.as_bytes(), Limits::default()).expect("a page");
        let told = Lifetime::of(&read(&page, recognise(&page).expect("TGI"))).expect("told");
        let mean = told.mean_length().expect("ten finished");
        assert!((mean.tok - 650.0).abs() < 1e-9 && mean.error > 0.75, "{mean:?}");
    }
}
