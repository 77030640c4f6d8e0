//! What a person says of a trace: where it is, and how to read it where its content does not tell.

use std::path::PathBuf;
use std::str::FromStr;

use super::error::{UnknownWord, value_of};
use super::formats::Format;
use super::number::TimeUnit;

/// Where a trace comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A file. What cannot be read twice (a pipe, a device) is treated as a stream.
    File(PathBuf),
    /// Standard input, which is streamed once and neither validated before nor sorted.
    Stdin,
}

/// What becomes of rows that were recorded with output 0, which are failed requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Failed {
    /// They are sent, asking for 1 token.
    Keep,
    /// They are left out, and counted.
    #[default]
    Drop,
}

/// How to read a trace; the default tells everything from the content.
#[derive(Clone, Debug, Default, serde::Serialize)]
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

impl FromStr for Failed {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        value_of("choice for failed rows", &[("keep", Self::Keep), ("drop", Self::Drop)], word)
    }
}
