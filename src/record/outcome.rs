//! How a request ended, in one word.

use std::fmt;
use std::str::FromStr;

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

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self {
            Self::Ok => "ok",
            Self::Http(status) => return write!(f, "http_{status}"),
            Self::StreamError => "stream_error",
            Self::Truncated => "truncated",
            Self::Empty => "empty",
            Self::Short => "short",
            Self::Timeout => "timeout",
            Self::Connect => "connect",
            Self::Client => "client",
            Self::Incomplete => "incomplete",
            Self::Unsent => "unsent",
            Self::Skipped => "skipped",
        };
        f.write_str(word)
    }
}

impl FromStr for Outcome {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Ok(match word {
            "ok" => Self::Ok,
            "stream_error" => Self::StreamError,
            "truncated" => Self::Truncated,
            "empty" => Self::Empty,
            "short" => Self::Short,
            "timeout" => Self::Timeout,
            "connect" => Self::Connect,
            "client" => Self::Client,
            "incomplete" => Self::Incomplete,
            "unsent" => Self::Unsent,
            "skipped" => Self::Skipped,
            _ => match word.strip_prefix("http_").and_then(|status| status.parse().ok()) {
                Some(status) => Self::Http(status),
                None => return Err(format!("`{word}` is no outcome")),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back() {
        for word in [
            "ok",
            "http_503",
            "stream_error",
            "truncated",
            "empty",
            "short",
            "timeout",
            "connect",
            "client",
            "incomplete",
            "unsent",
            "skipped",
        ] {
            assert_eq!(word.parse::<Outcome>().expect(word).to_string(), word);
        }
        assert!("http_".parse::<Outcome>().is_err());
        assert!("fine".parse::<Outcome>().is_err());
    }
}
