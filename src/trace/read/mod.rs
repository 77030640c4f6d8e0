//! Trace files in, [`crate::trace::Request`]s out, in time order.
//!
//! [`open()`] tells the format and the compression from the content, looks at every row of a file once
//! (order, faults, counts) and answers with a [`Trace`], whose [`Trace::rows`] streams them as often as
//! needed. Memory stays flat whatever the file's length. Times become integer nanoseconds without ever
//! being floating point.
//!
//! Deliberately absent: knowledge of when rows will be sent, of prompts' words, of what spans rows (turns
//! in order), of a clock, and of guessing: a row that cannot be read exactly is an error that says where.

mod aiperf;
mod azure;
mod bailian;
mod blocks;
mod burstgpt;
mod date;
mod dynamo;
mod error;
mod fields;
mod format;
mod held;
mod json;
mod lengths;
mod lines;
mod litellm;
mod mooncake;
mod native;
mod notices;
mod number;
mod open;
mod order;
mod otel;
mod ragpulse;
mod rows;
mod scan;
mod sglang;
mod shared_blocks;
mod sniff;
mod source;
mod table;
#[cfg(test)]
mod tests;
mod trace;
mod tracelab;
mod turns;
mod unit_question;
mod walk;
mod weka;
mod words;

use std::path::PathBuf;
use std::str::FromStr;

pub use self::error::TraceError;
pub use self::format::Format;
pub use self::open::{open, open_with_progress};
pub use self::scan::{Facts, TraceClock};
pub use self::trace::Trace;
pub use self::walk::{Walked, walk};

/// Where a trace comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A file. What cannot be read twice (a pipe, a device) is treated as a stream.
    File(PathBuf),
    /// Standard input, which is streamed once and neither validated before nor sorted.
    Stdin,
}

/// The unit of a time that is written as a bare number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// Seconds.
    S,
    /// Milliseconds.
    Ms,
    /// Microseconds.
    Us,
    /// Nanoseconds.
    Ns,
}

/// What becomes of rows that were recorded with output 0, which are failed requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Failed {
    /// They are sent, asking for 1 token.
    Keep,
    /// They are left out, and counted.
    #[default]
    Drop,
}

/// How to read a trace; the default tells everything from the content.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// The format, where the content does not tell or tells wrongly.
    pub format: Option<Format>,
    /// The unit of times, where it is not the format's own. Governs `think_s` of native rows too.
    pub time_unit: Option<TimeUnit>,
    /// Tokens in a prefix block; overrules what rows say. The default is 512.
    pub block_tok: Option<u32>,
    /// Rows recorded with output 0.
    pub failed: Failed,
    /// Skips the validating pass. A row out of order is then an error when it is met.
    pub assume_sorted: bool,
}

impl FromStr for TimeUnit {
    type Err = TraceError;

    fn from_str(word: &str) -> Result<Self, TraceError> {
        match word {
            "s" => Ok(Self::S),
            "ms" => Ok(Self::Ms),
            "us" => Ok(Self::Us),
            "ns" => Ok(Self::Ns),
            _ => Err(unknown_word("time unit", word, "s, ms, us, ns")),
        }
    }
}

impl FromStr for Failed {
    type Err = TraceError;

    fn from_str(word: &str) -> Result<Self, TraceError> {
        match word {
            "keep" => Ok(Self::Keep),
            "drop" => Ok(Self::Drop),
            _ => Err(unknown_word("choice for failed rows", word, "keep, drop")),
        }
    }
}

fn unknown_word(option: &'static str, word: &str, words: &'static str) -> TraceError {
    TraceError::Word { option, word: error::shorten(word.as_bytes()), words }
}
