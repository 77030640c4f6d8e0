//! A file that never ends in half a line, whatever stops the writer.
//!
//! Bytes wait in memory until [`flush`](std::io::Write::flush), which is called between rows; then
//! they go out in one write. Where that fails half-way (a full disk), the file is cut back to the
//! last whole line and what did not go is kept, so that a later flush can try again.

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
        let (written, result) = write_some(&mut self.file, &self.waiting);
        let whole = if result.is_ok() { written } else { last_line_end(&self.waiting[..written]) };
        self.kept += whole as u64;
        self.waiting.drain(..whole);
        if result.is_err() {
            // What cannot be cut back (a pipe, a device) is not a file that is read again.
            let _ = self.file.set_len(self.kept);
            let _ = self.file.seek(SeekFrom::Start(self.kept));
        }
        result
    }
}

/// Writes as much as goes; how much that was, and why no more.
fn write_some(file: &mut File, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut written = 0;
    while written < bytes.len() {
        match file.write(&bytes[written..]) {
            Ok(0) => return (written, Err(io::ErrorKind::WriteZero.into())),
            Ok(n) => written += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (written, Err(error)),
        }
    }
    (written, Ok(()))
}

/// Just behind the last line end that is not inside quotes; `bytes` begin with a line.
fn last_line_end(bytes: &[u8]) -> usize {
    let (mut end, mut quoted) = (0, false);
    for (place, byte) in bytes.iter().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' if !quoted => end = place + 1,
            _ => {}
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_end_inside_quotes_is_none() {
        let check = |text: &str, wanted: usize| {
            assert_eq!(last_line_end(text.as_bytes()), wanted, "{text:?}");
        };
        check("", 0);
        check("a,b", 0);
        check("a\nb\nc", 4);
        check("a\n\"b\nc", 2);
        check("a\n\"b\nc\"\"\n\"\nd", 11);
    }
}
