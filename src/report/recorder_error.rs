//! What can go wrong with the growing files of a run, in words.

use std::path::{Path, PathBuf};

/// While the file takes none, this many wait for it to recover (about 16 MB); later ones are not kept.
pub(super) const ROWS_WAITING_LIMIT: u32 = 65_536;

/// Writing a file of the run failed.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// The file cannot be made.
    #[error("failed to create {}: {source}", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
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
        source: std::io::Error,
    },
}

impl RecorderError {
    /// An error where the file is not under its name any more.
    pub(super) fn check_is_there(path: &Path) -> Result<(), Self> {
        if path.exists() { Ok(()) } else { Err(Self::Gone { path: path.to_owned() }) }
    }
}
