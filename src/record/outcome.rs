//! How a request ended, in one word.

use std::fmt;
use std::str::FromStr;

use crate::columns::{ReadCell, WriteCell, read_value, shown};

/// The outcome of one due request. The words are those of `requests.csv`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// A whole answer.
    Ok,
    /// A response with a status other than 200.
    Http(u16),
    /// An error inside a response that began with 200.
    StreamError,
    /// The stream ended with neither a finish reason nor `[DONE]`.
    Truncated,
    /// A whole stream without a single token.
    Empty,
    /// Fewer tokens than demanded, with the end-of-sequence token ignored.
    Short,
    /// A limit of ours ran out.
    Timeout,
    /// No usable connection: refused, reset, unresolved, closed under the request.
    Connect,
    /// The client's own fault: no file descriptor, port or memory.
    Client,
    /// Cut by us: drain limit or interrupt.
    Incomplete,
    /// Fell due and was never sent.
    #[default]
    Unsent,
    /// A later turn, lost because an earlier one failed.
    Skipped,
}

impl Outcome {
    /// Whether the request counts as an error. Every outcome of a due row does, but `ok`,
    /// `incomplete` (ours) and `skipped` (never due).
    #[must_use]
    pub fn is_error(self) -> bool {
        !matches!(self, Self::Ok | Self::Incomplete | Self::Skipped)
    }

    /// Whether the latency was cut short by us: it ranks above every measured value.
    #[must_use]
    pub fn is_censored(self) -> bool {
        matches!(self, Self::Timeout | Self::Incomplete | Self::Unsent)
    }
}

/// Outcomes that are one word; of [`Outcome::Http`] the status is part of it.
const WORDS: [(Outcome, &str); 11] = [
    (Outcome::Ok, "ok"),
    (Outcome::StreamError, "stream_error"),
    (Outcome::Truncated, "truncated"),
    (Outcome::Empty, "empty"),
    (Outcome::Short, "short"),
    (Outcome::Timeout, "timeout"),
    (Outcome::Connect, "connect"),
    (Outcome::Client, "client"),
    (Outcome::Incomplete, "incomplete"),
    (Outcome::Unsent, "unsent"),
    (Outcome::Skipped, "skipped"),
];

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, WORDS.iter().find(|(outcome, _)| outcome == self)) {
            (Self::Http(status), _) => write!(f, "http_{status}"),
            (_, word) => f.write_str(word.map_or("", |(_, word)| word)),
        }
    }
}

impl FromStr for Outcome {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let status = word.strip_prefix("http_").and_then(|status| status.parse().ok());
        let found = WORDS.iter().find(|(_, w)| *w == word).map(|(outcome, _)| *outcome);
        status.map(Self::Http).or(found).ok_or_else(|| format!("`{word}` is no outcome"))
    }
}

impl<const U: u8> WriteCell<U> for Outcome {
    fn write(&self, line: &mut Vec<u8>) {
        shown(self, line);
    }
}

impl<const U: u8> ReadCell<U> for Outcome {
    fn read(text: &str) -> Result<Self, &'static str> {
        read_value(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back() {
        for word in WORDS.map(|(_, word)| word).into_iter().chain(["http_503"]) {
            assert_eq!(word.parse::<Outcome>().expect(word).to_string(), word);
        }
        assert!("http_".parse::<Outcome>().is_err());
        assert!("fine".parse::<Outcome>().is_err());
    }
}
