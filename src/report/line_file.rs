//! A CSV file of a run that grows line by line, and never ends in half a line; and what can go wrong with it.
//!
//! Lines wait in memory until the next flush; a file that takes none may recover. Deliberately absent:
//! what the lines say (see [`crate::columns`]), and when to flush.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::whole_lines::WholeLines;
use crate::columns::{Column, write_header, write_line};

/// While the file takes none, so many bytes wait for it to recover; later lines are not kept.
const WAITING_LIMIT_BYTES: usize = 16 << 20;
/// Nor do more bytes than this wait while it takes them.
const FLUSH_AT_BYTES: usize = 1 << 20;
/// While `requests.csv` takes none, this many rows wait for it to recover (about 16 MB); later ones are not kept.
pub(super) const ROWS_WAITING_LIMIT: u32 = 65_536;

/// A CSV file with its header.
#[derive(Debug)]
pub struct LineFile {
    path: PathBuf,
    lines: WholeLines,
    /// The line being written, used again.
    line: Vec<u8>,
}

impl LineFile {
    /// Creates the file with its header; refuses one that exists.
    pub fn create<F>(path: PathBuf, columns: &[Column<F>]) -> Result<Self, RecorderError> {
        let cannot = |source| RecorderError::Create { path: path.clone(), source };
        let mut lines = WholeLines::new(File::create_new(&path).map_err(cannot)?);
        let mut line = Vec::new();
        write_header(columns, &mut line);
        lines.write_all(&line).and_then(|()| lines.flush()).map_err(cannot)?;
        Ok(Self { path, lines, line })
    }

    /// Adds the line of a row.
    pub fn write_row<R, F: Fn(&R, &mut Vec<u8>)>(
        &mut self,
        columns: &[Column<F>],
        row: &R,
    ) -> Result<(), RecorderError> {
        self.write(|line| write_line(columns, row, line))
    }

    /// Adds the line that is written into the buffer.
    pub fn write(&mut self, line: impl FnOnce(&mut Vec<u8>)) -> Result<(), RecorderError> {
        if self.lines.waiting_bytes() >= WAITING_LIMIT_BYTES {
            let (path, limit_bytes) = (self.path.clone(), WAITING_LIMIT_BYTES);
            return Err(RecorderError::TooMuchWaits { path, limit_bytes });
        }
        self.line.clear();
        line(&mut self.line);
        self.lines.write_all(&self.line).map_err(|source| self.error(source))?;
        if self.lines.waiting_bytes() >= FLUSH_AT_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Hands all lines to the operating system.
    pub fn flush(&mut self) -> Result<(), RecorderError> {
        self.lines.flush().map_err(|source| self.error(source))
    }

    /// An error where the file is not under its name any more: nobody would find what is written to it.
    pub fn check_is_there(&self) -> Result<(), RecorderError> {
        RecorderError::check_is_there(&self.path)
    }

    fn error(&self, source: io::Error) -> RecorderError {
        RecorderError::Write { path: self.path.clone(), source }
    }
}

/// Writing a file of the run failed.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// The file cannot be made.
    #[error("failed to create {}: {source}", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file has taken no rows for too long.
    #[error(
        "{} takes no rows and {ROWS_WAITING_LIMIT} wait for it: row {row} and later ones are not kept",
        path.display()
    )]
    TooManyWait {
        /// The file.
        path: PathBuf,
        /// The row that was not kept.
        row: u64,
    },
    /// Another file has taken nothing for too long.
    #[error(
        "{} takes no lines and {} MB wait for it: later ones are not kept",
        path.display(),
        limit_bytes >> 20
    )]
    TooMuchWaits {
        /// The file.
        path: PathBuf,
        /// What may wait.
        limit_bytes: usize,
    },
    /// The file was there and is no more: nobody would find what is written to it.
    #[error("{} is gone: was its folder removed meanwhile?", path.display())]
    Gone {
        /// The file.
        path: PathBuf,
    },
    /// Rows cannot be written now. Those written before are whole, and the next flush tries again.
    #[error("failed to write to {}: {source}\nhint: what is in the folder is whole, and `underfire report` reads it", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl RecorderError {
    /// An error where the file is not under its name any more.
    pub(super) fn check_is_there(path: &Path) -> Result<(), Self> {
        if path.exists() { Ok(()) } else { Err(Self::Gone { path: path.to_owned() }) }
    }
}
