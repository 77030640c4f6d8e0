//! A file that never ends in half a line, whatever stops the writer.
//!
//! Bytes wait in memory until [`flush`](std::io::Write::flush), which is called between rows. Where
//! that fails half-way (a full disk), the file is cut back to the last whole line and what did not go
//! is kept, so that a later flush can try again.
//!
//! A killed process has its write cut between two pages of the file, where it may have waited long for
//! a busy disk. So no write but that of a single line crosses a page, and such a one does not wait
//! there: its first page is in memory already.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

/// Size of the pages in which a system takes what is written.
const PAGE_BYTES: u64 = 4096;

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

/// What still waits goes out, as far as it does.
impl Drop for WholeLines {
    fn drop(&mut self) {
        let _ = self.flush();
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
        let (written, result) = write_lines(&mut self.file, self.kept, &self.waiting);
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

/// Writes as much as goes from `at`, the place in the file; how much that was, and why no more.
fn write_lines(file: &mut File, at: u64, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut done = 0;
    while done < bytes.len() {
        let rest = &bytes[done..];
        let (written, result) = write_some(file, &rest[..piece(rest, at + done as u64)]);
        done += written;
        if result.is_err() {
            return (done, result);
        }
    }
    (done, Ok(()))
}

/// How much goes out in the next write, which begins at this place in the file: the lines that end in
/// its page, or the one that crosses the page's end.
fn piece(lines: &[u8], at: u64) -> usize {
    let room = PAGE_BYTES - at % PAGE_BYTES;
    let room = usize::try_from(room).map_or(lines.len(), |room| room.min(lines.len()));
    match last_line_end(&lines[..room]) {
        0 => line_ends(lines).next().unwrap_or(lines.len()),
        end => end,
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

/// Just behind the last line end; `bytes` begin with a line.
fn last_line_end(bytes: &[u8]) -> usize {
    line_ends(bytes).last().unwrap_or(0)
}

/// Just behind each line end that is not inside quotes; `bytes` begin with a line.
fn line_ends(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let mut quoted = false;
    bytes.iter().enumerate().filter_map(move |(place, byte)| {
        quoted ^= *byte == b'"';
        (*byte == b'\n' && !quoted).then_some(place + 1)
    })
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

    #[test]
    fn only_a_single_line_crosses_a_page() {
        let page = |place: usize| place as u64 / PAGE_BYTES;
        let lines = "a line of no great length\n".repeat(1_000) + &"x".repeat(9_000) + "\nlast\n";
        let (mut at, mut crossed) = (0, 0);
        while at < lines.len() {
            let end = at + piece(&lines.as_bytes()[at..], at as u64);
            let written = &lines[at..end];
            assert!(written.ends_with('\n'));
            if page(at) != page(end - 1) {
                assert_eq!(written.matches('\n').count(), 1);
                crossed += 1;
            }
            at = end;
        }
        assert_eq!(crossed, 6 + 1, "the page ends in lines of 26 bytes, and the long one");
    }
}
