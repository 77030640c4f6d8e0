//! What can be wrong with a workload file.
//!
//! Every message names the file and the line, what stands there, and what to write instead.

use std::io;

/// Why a workload file was refused.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The file could not be read.
    #[error("cannot read the workload {file}: {source}")]
    Read {
        /// The file, as it was named.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not text.
    #[error("the workload {file} is not UTF-8 text (byte {byte}); save it as UTF-8")]
    NotText {
        /// The file, as it was named.
        file: String,
        /// Offset of the first bad byte.
        byte: usize,
    },
    /// The file is beyond all sense.
    #[error("the workload {file} is larger than {limit_bytes} bytes; is it a trace?")]
    TooLarge {
        /// The file, as it was named.
        file: String,
        /// The limit.
        limit_bytes: u64,
    },
    /// Not TOML.
    #[error("{message} ({file} line {line}, column {column})")]
    Syntax {
        /// The file, as it was named.
        file: String,
        /// 1-based line.
        line: usize,
        /// 1-based column, in characters.
        column: usize,
        /// What the TOML parser said.
        message: String,
    },
    /// A key, section, process or distribution that does not exist.
    #[error("unknown {kind} `{word}` {place} ({file} line {line}); {hint}")]
    Unknown {
        /// `key`, `process`, …
        kind: &'static str,
        /// What was written.
        word: String,
        /// `in [arrival]`, or `at the top level`.
        place: String,
        /// The file, as it was named.
        file: String,
        /// 1-based line.
        line: usize,
        /// The nearest right word, or all of them.
        hint: String,
    },
    /// Something that has to be there is not.
    #[error("`{key}` is missing {place} ({file} line {line}); {remedy}")]
    Missing {
        /// The key or section.
        key: &'static str,
        /// `in [arrival]`, or `at the top level`.
        place: String,
        /// The file, as it was named.
        file: String,
        /// 1-based line on which the section starts.
        line: usize,
        /// What to write.
        remedy: &'static str,
    },
    /// A value of the wrong kind, or out of range.
    #[error("`{key}` {place} {why} ({file} line {line})")]
    Value {
        /// The key.
        key: String,
        /// `in [arrival]`, or `at the top level`.
        place: String,
        /// What is wrong, and what would be right.
        why: String,
        /// The file, as it was named.
        file: String,
        /// 1-based line of the value.
        line: usize,
    },
}
