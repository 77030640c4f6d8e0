//! How long a generation run still takes, by what its server does.
//!
//! Time left = (samples left × mean completion length) ÷ tok/s, as if all went on as in the pieces seen.
//! The mean length of an unfinished run is not that of its finished requests, since short ones finish
//! first: all tokens generated, those of running requests too, over the requests finished is the estimate
//! for censored lifetimes (total time on test over deaths). What a server counted before the watch (see
//! [`super::lifetime`]) is taken for some hundreds of requests more, so that a watch that has seen few is
//! told by it, and one that has seen many overrules what was another load. Deliberately absent: the emptier
//! batch at the very end of a run, which takes longer.

use std::collections::VecDeque;

use super::lifetime::{Lifetime, MeanLength};

/// Requests before the watch count for no more than these.
const PRIOR_MOST: f64 = 400.0;
/// Pieces of time that count: the newest.
const KEPT_PIECES: usize = 300;
/// Student's t at 97.5% for 1, 2, … degrees of freedom.
const STUDENT: [f64; 10] = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23];
/// The same for more, a little wide of the mark for many.
const STUDENT_BEYOND: f64 = 2.2;
/// A rate below is none: no run would end by it.
const LEAST_TOK_S: f64 = 1e-9;
/// Of the normal distribution.
const NORMAL: f64 = 1.96;

/// A run under way, as its owner knows it.
#[derive(Debug)]
pub struct Remaining {
    samples: f64,
    /// Given, or to be estimated.
    mean_tok: Option<f64>,
    /// Requests finished before the watch, and their length.
    prior: Option<(f64, MeanLength)>,
    rates_tok_s: VecDeque<f64>,
    generated_tok: f64,
    /// `None` once a window did not tell.
    finished: Option<f64>,
}

/// When it ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlook {
    /// Samples left.
    pub samples: f64,
    /// Mean length that was reckoned with.
    pub mean_tok: f64,
    /// By what.
    pub length: Length,
    /// Seconds left.
    pub left_s: f64,
    /// Seconds left at the least and at the most (95%); no most where it cannot be bounded.
    pub between_s: (f64, Option<f64>),
}

/// By what a mean length is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// It was given.
    Given,
    /// By all requests since the server's start.
    SinceStart {
        /// So many had finished.
        finished: f64,
    },
    /// By those in the time that was watched.
    Watched {
        /// So many finished.
        finished: f64,
    },
}

/// Why the end cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    /// No rate.
    #[error("no tokens came in the time that was watched")]
    NoTokens,
    /// No mean length yet.
    #[error(
        "no request has finished yet, so their length is not known; give it by --mean-tokens M"
    )]
    NoneFinished,
    /// No mean length ever.
    #[error("this server counts no finished requests; give their length by --mean-tokens M")]
    NoCount,
}

impl Remaining {
    /// A run with so many samples left when the watch begins.
    #[must_use]
    pub fn new(samples: u64, mean_tok: Option<f64>) -> Self {
        Self {
            samples: samples as f64,
            mean_tok,
            prior: None,
            rates_tok_s: VecDeque::new(),
            generated_tok: 0.0,
            finished: Some(0.0),
        }
    }

    /// Takes what the server had counted when the watch began.
    pub fn begins_with(&mut self, lifetime: Option<Lifetime>) {
        self.prior = lifetime.and_then(|all| Some((all.finished, all.mean_length()?)));
    }

    /// Takes the tok/s of pieces of a window, of about the same length each.
    pub fn add_rates(&mut self, rates_tok_s: impl IntoIterator<Item = f64>) {
        self.rates_tok_s.extend(rates_tok_s);
        let old = self.rates_tok_s.len().saturating_sub(KEPT_PIECES);
        self.rates_tok_s.drain(..old);
    }

    /// Takes what a window counted: tokens generated, and requests finished where the server tells.
    pub fn add_counts(&mut self, generated_tok: f64, finished: Option<f64>) {
        self.generated_tok += generated_tok;
        self.finished = self.finished.zip(finished).map(|(all, more)| all + more);
    }

    /// When it ends, by all that was seen.
    pub fn outlook(&self) -> Result<Outlook, Unknown> {
        let (rate, rate_error) = self.rate().ok_or(Unknown::NoTokens)?;
        let (MeanLength { tok: mean_tok, error: mean_error }, length) = self.length()?;
        let left_tok = match self.finished {
            Some(finished) => (self.samples - finished) * mean_tok,
            None => self.samples * mean_tok - self.generated_tok,
        };
        let left_tok = left_tok.max(0.0);
        let left_s = left_tok / rate;
        let error = rate_error.hypot(mean_error);
        let most = (error < 1.0).then(|| left_s / (1.0 - error));
        Ok(Outlook {
            samples: left_tok / mean_tok,
            mean_tok,
            length,
            left_s,
            between_s: (left_s / (1.0 + error), most),
        })
    }

    fn length(&self) -> Result<(MeanLength, Length), Unknown> {
        if let Some(tok) = self.mean_tok {
            return Ok((MeanLength { tok, error: 0.0 }, Length::Given));
        }
        // A server that counts none now has counted none before.
        let finished = self.finished.ok_or(Unknown::NoCount)?;
        let Some((before, prior)) = self.prior else {
            if finished < 1.0 {
                return Err(Unknown::NoneFinished);
            }
            let (tok, error) = (self.generated_tok / finished, NORMAL / finished.sqrt());
            return Ok((MeanLength { tok, error }, Length::Watched { finished }));
        };
        let counts_for = before.min(PRIOR_MOST);
        let all = counts_for + finished;
        let tok = (counts_for * prior.tok + self.generated_tok) / all;
        let error = (NORMAL / all.sqrt()).hypot(prior.error * counts_for / all);
        Ok((MeanLength { tok, error }, Length::SinceStart { finished: before + finished }))
    }

    /// Mean tok/s and its relative error at 95%.
    fn rate(&self) -> Option<(f64, f64)> {
        let n = self.rates_tok_s.len();
        let mean = self.rates_tok_s.iter().sum::<f64>() / n as f64;
        if n == 0 || mean < LEAST_TOK_S {
            return None;
        }
        if n == 1 {
            return Some((mean, 1.0));
        }
        let squares: f64 = self.rates_tok_s.iter().map(|rate| (rate - mean).powi(2)).sum();
        let of_mean = (squares / (n - 1) as f64 / n as f64).sqrt();
        let student = STUDENT.get(n - 2).copied().unwrap_or(STUDENT_BEYOND);
        Some((mean, student * of_mean / mean))
    }
}

#[cfg(test)]
mod tests {
    use super::super::exposition::{Limits, parse};
    use super::super::reading::{read, recognise};
    use super::*;

    #[test]
    fn a_given_length_and_a_steady_rate_are_a_division() {
        let mut run = Remaining::new(25_000, Some(650.0));
        run.add_rates([1600.0; 5]);
        run.add_counts(16_000.0, Some(0.0));
        let outlook = run.outlook().expect("known");
        assert!((outlook.left_s / 3600.0 - 2.821).abs() < 0.001, "{outlook:?}");
        assert_eq!(outlook.between_s, (outlook.left_s, Some(outlook.left_s)));
    }

    #[test]
    fn what_has_finished_is_no_longer_left() {
        let mut run = Remaining::new(100, Some(10.0));
        run.add_rates([10.0, 10.0]);
        run.add_counts(600.0, Some(60.0));
        assert!((run.outlook().expect("known").left_s - 40.0).abs() < 1e-9);
        // Without a count of requests the tokens tell.
        run.add_counts(100.0, None);
        assert!((run.outlook().expect("known").left_s - 30.0).abs() < 1e-9);
    }

    /// Lengths are 100 and 1,900 tokens, one of each a second, so their mean is 1,000; early on only
    /// short ones have finished.
    #[test]
    fn tokens_of_running_requests_count_for_the_length() {
        let mut run = Remaining::new(1000, None);
        run.add_rates([100.0; 5]);
        // 20 running at 100 tok/s each for 2 s: ten short ones have finished.
        run.add_counts(4000.0, Some(10.0));
        let outlook = run.outlook().expect("known");
        assert!((outlook.mean_tok - 400.0).abs() < 1e-9, "of the finished it would be 100");
        assert_eq!(outlook.length, Length::Watched { finished: 10.0 });
        let (least, most) = outlook.between_s;
        assert!(least < outlook.left_s && most.expect("bounded") > outlook.left_s);
    }

    /// Another load than before: after some hundreds of requests it is what counts.
    #[test]
    fn what_was_before_the_watch_is_overruled_by_what_is_seen() {
        let mut run = Remaining::new(100_000, None);
        let page = "vllm:generation_tokens_total 1000000\nvllm:request_generation_tokens_sum 1000000\n\
                    vllm:request_success_total 10000\nvllm:num_requests_running 0\n";
        let page = parse(page.as_bytes(), Limits::default()).expect("a page");
        let rules = recognise(&page).expect("vLLM");
        run.begins_with(Lifetime::of(&read(&page, rules)));
        run.add_rates([100.0; 5]);
        let at_first = run.outlook().expect("known before any has finished");
        assert!((at_first.mean_tok - 100.0).abs() < 1e-9, "{at_first:?}");
        assert_eq!(at_first.length, Length::SinceStart { finished: 10_000.0 });
        run.add_counts(1_000_000.0, Some(1000.0));
        let tok = run.outlook().expect("known").mean_tok;
        assert!((tok - (40_000.0 + 1_000_000.0) / 1400.0).abs() < 1e-9, "{tok}, towards 1,000");
    }

    #[test]
    fn what_is_not_known_is_said() {
        let mut run = Remaining::new(10, None);
        assert_eq!(run.outlook(), Err(Unknown::NoTokens));
        run.add_rates([5.0, 5.0]);
        run.add_counts(10.0, Some(0.0));
        assert_eq!(run.outlook(), Err(Unknown::NoneFinished));
        run.add_counts(10.0, None);
        assert_eq!(run.outlook(), Err(Unknown::NoCount));
    }

    #[test]
    fn rates_that_scatter_widen_the_interval_and_one_bounds_nothing() {
        let mut run = Remaining::new(100, Some(10.0));
        run.add_rates([100.0]);
        assert_eq!(run.outlook().expect("known").between_s.1, None);
        run.add_rates([80.0, 120.0, 90.0, 110.0]);
        let outlook = run.outlook().expect("known");
        let most = outlook.between_s.1.expect("bounded");
        assert!(outlook.left_s < most && most < 1.5 * outlook.left_s, "{outlook:?}");
    }
}
