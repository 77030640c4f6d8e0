//! Plain counts of a scope: outcomes, and tokens asked for and got.

use std::collections::BTreeMap;

use crate::record::{Outcome, Row, TokenSource};
use crate::schedule::OutputSum;

/// Tokens asked for beside tokens counted, over the same rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AskedGot {
    /// What the rows asked for.
    pub asked_tok: u64,
    /// What was counted.
    pub got_tok: u64,
}

impl AskedGot {
    fn add(&mut self, asked: u64, got: u64) {
        self.asked_tok += asked;
        self.got_tok += got;
    }

    /// `got ÷ asked − 1`; `None` when nothing was asked for.
    #[must_use]
    pub fn difference(self) -> Option<f64> {
        (self.asked_tok > 0).then(|| self.got_tok as f64 / self.asked_tok as f64 - 1.0)
    }
}

/// Counts over the rows of a scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Rows by outcome.
    pub outcomes: BTreeMap<Outcome, u64>,
    /// Rows that were sent.
    pub sent: u64,
    /// Prompt tokens asked for, over all rows that asked for a number.
    pub input_tok_asked: u64,
    /// Completion tokens asked for, over all rows.
    pub output_asked: OutputSum,
    /// Prompt tokens as the server counted them, over all rows that it counted.
    pub input_tok: u64,
    /// Rows whose prompt the server counted.
    pub input_counted: u64,
    /// Completion tokens, over all rows, from whatever source.
    pub output_tok: u64,
    /// Prompt tokens that came from the server's prefix cache.
    pub cached_tok: u64,
    /// Prompts of `ok` rows that the server counted.
    pub ok_input: AskedGot,
    /// Completions of `ok` rows whose tokens were counted, not estimated from events.
    pub ok_output: AskedGot,
    /// `ok` rows whose tokens are estimated from the number of token events.
    pub ok_by_events: u64,
    /// `ok` rows whose tokens a tokenizer of the client's counted.
    pub ok_by_tokenizer: u64,
    /// Requests sent again; `None` where none could be.
    pub resent: Option<u64>,
    /// What the first row of each outcome said of its error.
    pub first_errors: BTreeMap<Outcome, String>,
}

impl Tally {
    pub(super) fn add(&mut self, row: &Row) {
        *self.outcomes.entry(row.outcome).or_default() += 1;
        self.sent += u64::from(row.lag.is_some() && row.scheduled.is_some());
        let input_asked = row.input_tok_asked.map(u64::from);
        self.input_tok_asked += input_asked.unwrap_or(0);
        self.output_asked.add(row.output_tok_asked);
        self.input_tok += row.input_tok.unwrap_or(0);
        self.input_counted += u64::from(row.input_tok.is_some());
        self.output_tok += row.output_tok.unwrap_or(0);
        self.cached_tok += row.cached_tok.unwrap_or(0);
        self.add_resent(row.attempts.map(|attempts| u64::from(attempts.saturating_sub(1))));
        if row.outcome != Outcome::Ok {
            if let Some(error) = &row.error {
                self.first_errors.entry(row.outcome).or_insert_with(|| error.clone());
            }
            return;
        }
        if let (Some(asked), Some(got)) = (input_asked, row.input_tok) {
            self.ok_input.add(asked, got);
        }
        self.ok_by_tokenizer += u64::from(row.token_source == Some(TokenSource::Tokenizer));
        match (row.token_source, row.output_tok) {
            (Some(TokenSource::Events), _) => self.ok_by_events += 1,
            (_, Some(got)) => {
                if let Some(asked) = row.output_tok_asked {
                    self.ok_output.add(asked.into(), got);
                }
            }
            _ => {}
        }
    }

    fn add_resent(&mut self, times: Option<u64>) {
        if let Some(times) = times {
            *self.resent.get_or_insert(0) += times;
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.add_resent(other.resent);
        for (outcome, count) in &other.outcomes {
            *self.outcomes.entry(*outcome).or_default() += count;
        }
        self.sent += other.sent;
        self.input_tok_asked += other.input_tok_asked;
        self.output_asked.merge(other.output_asked);
        self.input_tok += other.input_tok;
        self.input_counted += other.input_counted;
        self.output_tok += other.output_tok;
        self.cached_tok += other.cached_tok;
        self.ok_input.add(other.ok_input.asked_tok, other.ok_input.got_tok);
        self.ok_output.add(other.ok_output.asked_tok, other.ok_output.got_tok);
        self.ok_by_events += other.ok_by_events;
        self.ok_by_tokenizer += other.ok_by_tokenizer;
        for (outcome, error) in &other.first_errors {
            self.first_errors.entry(*outcome).or_insert_with(|| error.clone());
        }
    }

    /// Rows with this outcome.
    #[must_use]
    pub fn count(&self, outcome: Outcome) -> u64 {
        self.outcomes.get(&outcome).copied().unwrap_or(0)
    }

    /// All rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.outcomes.values().sum()
    }

    /// Rows that fell due: all but the skipped.
    #[must_use]
    pub fn due(&self) -> u64 {
        self.rows() - self.count(Outcome::Skipped)
    }

    /// Rows that count as errors.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.outcomes.iter().filter(|(outcome, _)| outcome.is_error()).map(|(_, n)| n).sum()
    }

    /// Errors ÷ rows due; `None` when none was due.
    #[must_use]
    pub fn error_rate(&self) -> Option<f64> {
        let due = self.due();
        (due > 0).then(|| self.errors() as f64 / due as f64)
    }
}
