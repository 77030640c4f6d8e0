//! `--save-text`: what the answers said, one JSON object a line, in order of ending.
//!
//! Never inside a run folder by itself: it holds what people asked and were told. Deliberately absent:
//! figures.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::whole_lines::WholeLines;
use crate::record::StreamRecord;

/// Lines wait in memory until this many bytes, or the next flush.
const WAITING_BYTES: usize = 1 << 20;

/// Texts cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum TextFileError {
    /// What others may need is not written over.
    #[error("{} exists already\nhint: give --save-text another name, or take the file away", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The system will not.
    #[error("failed to write texts to {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The file.
#[derive(Debug)]
pub struct TextFile {
    path: PathBuf,
    lines: WholeLines,
    waiting: usize,
}

#[derive(Serialize)]
struct SavedAnswer<'a> {
    row: u64,
    outcome: String,
    text: &'a str,
    reasoning: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    tool: &'a str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
}

impl TextFile {
    /// Whether the file could be created, told before anything is sent.
    pub fn check(path: &Path) -> Result<(), TextFileError> {
        let path = path.to_owned();
        if path.symlink_metadata().is_ok() { Err(TextFileError::Exists { path }) } else { Ok(()) }
    }

    /// Creates the file; refuses one that exists.
    pub fn create(path: &Path) -> Result<Self, TextFileError> {
        Self::check(path)?;
        let file = File::create_new(path)
            .map_err(|source| TextFileError::Io { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), lines: WholeLines::new(file), waiting: 0 })
    }

    /// Takes the words of a record, when they were kept.
    pub fn write(&mut self, record: &StreamRecord) -> Result<(), TextFileError> {
        let Some(saved) = &record.text else { return Ok(()) };
        let line = SavedAnswer {
            row: record.row,
            outcome: record.outcome.to_string(),
            text: &saved.text,
            reasoning: &saved.reasoning,
            tool: &saved.tool,
            cut: saved.is_cut,
        };
        let mut line = serde_json::to_vec(&line).map_err(|error| self.error(error.into()))?;
        line.push(b'\n');
        self.lines.write_all(&line).map_err(|source| self.error(source))?;
        self.waiting += line.len();
        if self.waiting > WAITING_BYTES { self.flush() } else { Ok(()) }
    }

    /// Hands everything to the operating system.
    pub fn flush(&mut self) -> Result<(), TextFileError> {
        self.waiting = 0;
        self.lines.flush().map_err(|source| self.error(source))
    }

    fn error(&self, source: io::Error) -> TextFileError {
        TextFileError::Io { path: self.path.clone(), source }
    }
}
