//! A CSV file of a run that grows line by line, and never ends in half a line.
//!
//! Lines wait in memory until the next flush; a file that takes none may recover. Deliberately absent:
//! what the lines say, and when to flush.

use std::fs::File;
use std::path::PathBuf;

use super::recorder_error::RecorderError;
use super::whole_lines::WholeLines;

/// While the file takes none, so many bytes wait for it to recover; later lines are not kept.
const WAITING_LIMIT_BYTES: usize = 16 << 20;
/// Nor do more bytes than this wait while it takes them.
const FLUSH_AT_BYTES: usize = 1 << 20;

/// A CSV file with its header.
#[derive(Debug)]
pub struct LineFile {
    path: PathBuf,
    csv: csv::Writer<WholeLines>,
}

impl LineFile {
    /// Creates the file with its header; refuses one that exists.
    pub fn create(path: PathBuf, header: &[&str]) -> Result<Self, RecorderError> {
        let cannot = |source| RecorderError::Create { path: path.clone(), source };
        let file = File::create_new(&path).map_err(cannot)?;
        let mut csv = csv::Writer::from_writer(WholeLines::new(file));
        csv.write_record(header).map_err(|error| cannot(error.into()))?;
        csv.flush().map_err(cannot)?;
        Ok(Self { path, csv })
    }

    /// Adds a line.
    pub fn write(&mut self, cells: &[impl AsRef<[u8]>]) -> Result<(), RecorderError> {
        if self.csv.get_ref().waiting_bytes() >= WAITING_LIMIT_BYTES {
            let (path, limit_bytes) = (self.path.clone(), WAITING_LIMIT_BYTES);
            return Err(RecorderError::TooMuchWaits { path, limit_bytes });
        }
        self.csv.write_record(cells).map_err(|error| self.error(error.into()))?;
        if self.csv.get_ref().waiting_bytes() >= FLUSH_AT_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Hands all lines to the operating system.
    pub fn flush(&mut self) -> Result<(), RecorderError> {
        self.csv.flush().map_err(|source| self.error(source))
    }

    /// An error where the file is not under its name any more: nobody would find what is written to it.
    pub fn check_is_there(&self) -> Result<(), RecorderError> {
        RecorderError::check_is_there(&self.path)
    }

    fn error(&self, source: std::io::Error) -> RecorderError {
        RecorderError::Write { path: self.path.clone(), source }
    }
}
