//! A file that never ends in half a line, whatever stops the writer.
//!
//! Bytes wait in memory until [`flush`](std::io::Write::flush), which is called between rows; then
//! they go out in one write. Where that fails half-way (a full disk), the file is cut back to the
//! last whole line and the bytes are kept, so that a later flush can try again.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

/// Buffers whole lines before a file.
#[derive(Debug)]
pub(super) struct WholeLines {
    file: File,
    /// Length of the file up to its last whole line.
    kept: u64,
    waiting: Vec<u8>,
}

impl WholeLines {
    /// Takes over an empty file.
    pub(super) fn new(file: File) -> Self {
        Self { file, kept: 0, waiting: Vec::new() }
    }

    /// Bytes that the file has not taken yet.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.waiting.len()
    }
}

impl Write for WholeLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.file.write_all(&self.waiting) {
            // What cannot be cut back (a pipe, a device) is not a file that is read again.
            let _ = self.file.set_len(self.kept);
            let _ = self.file.seek(SeekFrom::Start(self.kept));
            return Err(error);
        }
        self.kept += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(())
    }
}
