//! What can go wrong with a trace, said so that the file can be mended.
//!
//! Every fault names the file, and where there is one the line, the column and the value, and what to
//! do. A fault of a row is made without its place ([`Fault`]); the reader of rows adds that.

use std::fmt::Write as _;
use std::io;

use super::lines::LINE_LIMIT_BYTES;

/// A trace that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened.
    #[error("open trace {file}: {cause}")]
    Open {
        /// As the user wrote it.
        file: String,
        /// What the system said.
        cause: io::Error,
    },
    /// Reading or unpacking failed on the way.
    #[error("read {file} after line {line}: {cause}{hint}")]
    Read {
        /// As the user wrote it.
        file: String,
        /// The last line that was read.
        line: u64,
        /// What the system or the decompressor said.
        cause: io::Error,
        /// What to do, where that is known.
        hint: &'static str,
    },
    /// Not one byte, or nothing but blank lines.
    #[error("read {file}: the file is empty; a trace needs at least one row")]
    Empty {
        /// As the user wrote it.
        file: String,
    },
    /// A CSV header and nothing else.
    #[error("read {file}: the file has a header but no rows")]
    NoRows {
        /// As the user wrote it.
        file: String,
    },
    /// A length that no model has.
    #[error(
        "read {file}, line {line}: {tok} tokens; the limit for a prompt or a completion is {limit}"
    )]
    TooLong {
        /// As the user wrote it.
        file: String,
        /// The row's line.
        line: u64,
        /// Tokens of the row.
        tok: u32,
        /// The most that is read.
        limit: u32,
    },
    /// Lines, but none that is a request.
    #[error("read {file}: none of its {rows} entries is a request that generates text")]
    NoRequests {
        /// As the user wrote it.
        file: String,
        /// Entries of another kind.
        rows: u64,
    },
    /// Every row is a failed one, and those are dropped.
    #[error(
        "read {file}: all {rows} rows are recorded with output 0 (failed requests) and were dropped; \
         `--failed keep` sends them, each asking for 1 token"
    )]
    NothingKept {
        /// As the user wrote it.
        file: String,
        /// Rows in the file.
        rows: u64,
    },
    /// The content is of no format that is known.
    #[error(
        "read {file}: cannot tell the trace's format from its first line `{seen}`{hint}; {known}"
    )]
    UnknownFormat {
        /// As the user wrote it.
        file: String,
        /// The start of the first line.
        seen: String,
        /// What it looks like, if anything.
        hint: String,
        /// What is known, and what to do.
        known: String,
    },
    /// A CSV header that lacks a column or has one twice.
    #[error("read {file}, line {line}: {problem}; the header is `{seen}`")]
    Header {
        /// As the user wrote it.
        file: String,
        /// The header's line.
        line: u64,
        /// What is wrong with it, and what to do.
        problem: String,
        /// The start of the header.
        seen: String,
    },
    /// A row that cannot be taken.
    #[error("read {file}, line {line}{column}: {problem}")]
    Row {
        /// As the user wrote it.
        file: String,
        /// 1-based line of the (unpacked) file.
        line: u64,
        /// ``, column `x` `` or nothing.
        column: String,
        /// The value, what is wrong with it, and what to do.
        problem: String,
    },
    /// The last line breaks off.
    #[error(
        "read {file}, line {line}: the file ends in the middle of this line ({problem}); \
         fetch the file again, or delete its last line"
    )]
    Torn {
        /// As the user wrote it.
        file: String,
        /// 1-based line of the (unpacked) file.
        line: u64,
        /// What the row's reader said.
        problem: String,
    },
    /// A line without end.
    #[error(
        "read {file}, line {line}: the line is longer than the limit of {} MiB; a row is one line, \
         so check that the line breaks survived", LINE_LIMIT_BYTES >> 20
    )]
    LongLine {
        /// As the user wrote it.
        file: String,
        /// 1-based line of the (unpacked) file.
        line: u64,
    },
    /// A row earlier than one before it, where rows cannot be sorted any more.
    #[error(
        "read {file}, line {line}: the row's time is {earlier_s} s before that of an earlier row, and {why}"
    )]
    OutOfOrder {
        /// As the user wrote it.
        file: String,
        /// 1-based line of the (unpacked) file.
        line: u64,
        /// By how much, in decimal seconds.
        earlier_s: String,
        /// Why this reading cannot sort, and what to do.
        why: &'static str,
    },
    /// The file is not what was validated.
    #[error(
        "read {file}: the file changed since it was opened; run again when nothing writes to it"
    )]
    Changed {
        /// As the user wrote it.
        file: String,
    },
    /// Sorting would need too much memory.
    #[error(
        "read {file}: {moved} rows are out of time order, and sorting {what} needs about {need_mib} MiB, \
         above the limit of {limit_mib} MiB; {remedy}"
    )]
    SortMemory {
        /// As the user wrote it.
        file: String,
        /// Rows earlier than one before them.
        moved: u64,
        /// What would be held.
        what: &'static str,
        /// Estimate.
        need_mib: u64,
        /// Limit.
        limit_mib: u64,
        /// What to do.
        remedy: &'static str,
    },
    /// A stream was to be read a second time.
    #[error("read {file}: a stream can be read once only; save it to a file first")]
    Taken {
        /// As the user wrote it.
        file: String,
    },
    /// Rows that cannot be shaped as was asked.
    #[error("{problem}")]
    Unfit {
        /// What is wrong, and what to do.
        problem: String,
    },
    /// `--block-tok 0`.
    #[error("`--block-tok` must be above zero")]
    BlockTok,
}

impl TraceError {
    /// No row, though perhaps entries of another kind.
    pub(super) fn nothing_read(file: String, skipped: u64) -> Self {
        match skipped {
            0 => Self::NoRows { file },
            rows => Self::NoRequests { file, rows },
        }
    }

    /// The line that is at fault, where one is.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        match self {
            Self::Row { line, .. }
            | Self::Torn { line, .. }
            | Self::TooLong { line, .. }
            | Self::LongLine { line, .. }
            | Self::Header { line, .. }
            | Self::OutOfOrder { line, .. } => Some(*line),
            _ => None,
        }
    }
}

/// A word that is none of an option's.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {option} `{word}`; write one of {words}")]
pub struct UnknownWord {
    option: &'static str,
    word: String,
    words: String,
}

/// The value that a word stands for; the words of an option are all that may be written.
pub fn value_of<T: Copy>(
    option: &'static str,
    words: &[(&str, T)],
    word: &str,
) -> Result<T, UnknownWord> {
    let known = words.iter().find(|(name, _)| *name == word);
    known.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
        UnknownWord { option, word: shorten(word.as_bytes()), words: names.join(", ") }
    })
}

/// The word that stands for a value.
pub fn word_of<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> &'static str {
    words.iter().find(|(_, known)| known == value).map_or("", |(name, _)| *name)
}

/// What is wrong with a row, before its place is known.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) column: Option<String>,
    pub(super) problem: String,
}

impl Fault {
    /// A fault of one column or key.
    pub(super) fn at(column: &str, problem: impl Into<String>) -> Self {
        Self { column: Some(column.to_owned()), problem: problem.into() }
    }

    /// A fault of the row as a whole.
    pub(super) fn row(problem: impl Into<String>) -> Self {
        Self { column: None, problem: problem.into() }
    }

    /// The fault in its place. `is_torn`: the file ends within the line.
    pub(super) fn located(self, file: &str, line: u64, is_torn: bool) -> TraceError {
        let file = file.to_owned();
        let column = self.column.map(|name| format!(", column `{name}`")).unwrap_or_default();
        if is_torn {
            let problem = format!("{}: {}", column.trim_start_matches(", "), self.problem);
            let problem = problem.trim_start_matches(": ").to_owned();
            TraceError::Torn { file, line, problem }
        } else {
            TraceError::Row { file, line, column, problem: self.problem }
        }
    }
}

/// At most 60 characters of what was seen, safe to print.
pub(super) fn shorten(bytes: &[u8]) -> String {
    const SHOWN_CHARS: usize = 60;
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_CHARS * 4)]);
    let mut text = String::new();
    for (count, letter) in head.chars().enumerate() {
        if count == SHOWN_CHARS {
            text.push('…');
            break;
        }
        if letter.is_control() {
            // Writing to a string cannot fail.
            let _ = write!(text, "{}", letter.escape_default());
        } else {
            text.push(letter);
        }
    }
    text
}
