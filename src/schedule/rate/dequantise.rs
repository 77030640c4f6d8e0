//! Spreads rows whose times a recorder rounded over the grain it rounded to.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use super::sampling::{Purpose, uniform};
use crate::trace::Request;
use crate::trace::read::{UnknownWord, value_of, word_of};
use crate::units::Nanos;

/// What becomes of rounded times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dequantise {
    /// Rows of one time are sent at once, as recorded.
    #[default]
    None,
    /// They are spread evenly at random until the next time there is, but over one grain at most.
    Uniform,
}

const WORDS: [(&str, Dequantise); 2] =
    [("none", Dequantise::None), ("uniform", Dequantise::Uniform)];

impl FromStr for Dequantise {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        value_of("choice for rounded times", &WORDS, word)
    }
}

crate::units::serialize_as_text!(Dequantise);

impl fmt::Display for Dequantise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(word_of(&WORDS, self))
    }
}

/// Spreads rows of equal time uniformly over the time until the next, at most over `grain`. Their order
/// stays. Rows of one time are held, no more.
pub fn dequantised<I, E>(rows: I, grain: Nanos, seed: u64) -> Dequantised<I>
where
    I: Iterator<Item = Result<Request, E>>,
{
    Dequantised { rows, grain, seed, ready: VecDeque::new(), ahead: None }
}

/// See [`dequantised`].
#[derive(Debug)]
pub struct Dequantised<I> {
    rows: I,
    grain: Nanos,
    seed: u64,
    ready: VecDeque<Request>,
    ahead: Option<Request>,
}

impl<I, E> Iterator for Dequantised<I>
where
    I: Iterator<Item = Result<Request, E>>,
{
    type Item = Result<Request, E>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(row) = self.ready.pop_front() {
            return Some(Ok(row));
        }
        let mut equal: Vec<Request> = self.ahead.take().into_iter().collect();
        let mut width = self.grain;
        loop {
            match self.rows.next() {
                None => break,
                Some(Err(error)) => return Some(Err(error)),
                Some(Ok(row)) => match equal.first() {
                    Some(first) if row.at > first.at => {
                        width = width.min(row.at.since(first.at));
                        self.ahead = Some(row);
                        break;
                    }
                    _ => equal.push(row),
                },
            }
        }
        let mut shifts: Vec<u64> = equal
            .iter()
            .map(|row| {
                let share = uniform(self.seed, Purpose::Dequantise, row.row);
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a share of a width in nanoseconds"
                )]
                let shift = (share * width.0 as f64) as u64;
                shift
            })
            .collect();
        shifts.sort_unstable();
        self.ready = equal
            .into_iter()
            .zip(shifts)
            .map(|(row, shift)| Request { at: row.at + Nanos(shift), ..row })
            .collect();
        self.ready.pop_front().map(Ok)
    }
}
