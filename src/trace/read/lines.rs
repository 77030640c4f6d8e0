//! Lines out of a stream of bytes: numbered, located, bounded.
//!
//! Every text format here is one row a line, so this is the only place that looks for line breaks,
//! and the only one that knows about CRLF, a byte order mark, or a missing last newline. It knows
//! nothing of columns or JSON, and it makes no copy of a line.

use std::io::{self, Read, Seek, SeekFrom};

/// The longest line that is read. A prompt of a million tokens is about 5 MB.
pub(super) const LINE_LIMIT_BYTES: usize = 64 << 20;
/// What one read asks for: large enough that system calls do not show in a profile.
const CHUNK_BYTES: usize = 256 << 10;
/// What the first read after a jump asks for: a page or so, since the next row may be far away again.
const JUMP_BYTES: usize = 4 << 10;
/// How far [`LineReader::ahead`] looks.
const AHEAD_BYTES: usize = 64 << 10;
/// UTF-8's byte order mark, as spreadsheets write it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One line, without its line break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TraceLine<'a> {
    /// The text, not yet known to be UTF-8.
    pub(super) bytes: &'a [u8],
    /// 1-based number in the (unpacked) file.
    pub(super) number: u64,
    /// Where the line starts in the (unpacked) file.
    pub(super) offset: u64,
    /// Whether a line break followed; only the last line may lack one.
    pub(super) whole: bool,
}

/// Why no further line came.
#[derive(Debug)]
pub(super) enum LineFault {
    /// The source failed.
    Io(io::Error),
    /// No line break within the limit.
    TooLong,
}

/// Splits a source into lines.
pub(super) struct LineReader<R> {
    source: R,
    /// Always initialised in full; `start..end` is what was read and not yet handed out.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// No line break lies in `start..scanned`, so that a long line is searched once only.
    scanned: usize,
    read_bytes: usize,
    ended: bool,
    number: u64,
    offset: u64,
    /// Where the previous line began, for [`Self::unread`].
    previous: (usize, u64),
    limit_bytes: usize,
}

impl<R: Read> LineReader<R> {
    /// Reads `source` from its present position, which counts as byte 0 and line 1.
    pub(super) fn new(source: R) -> Self {
        Self::with_limit(source, LINE_LIMIT_BYTES)
    }

    fn with_limit(source: R, limit_bytes: usize) -> Self {
        Self {
            source,
            buffer: vec![0; CHUNK_BYTES],
            start: 0,
            end: 0,
            scanned: 0,
            read_bytes: CHUNK_BYTES,
            ended: false,
            number: 0,
            offset: 0,
            previous: (0, 0),
            limit_bytes,
        }
    }

    /// The number of the line last handed out (0 before the first).
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The next line, or `None` at the end.
    pub(super) fn next_line(&mut self) -> Result<Option<TraceLine<'_>>, LineFault> {
        let (stop, whole) = loop {
            if let Some(found) = memchr::memchr(b'\n', &self.buffer[self.scanned..self.end]) {
                break (self.scanned + found, true);
            }
            self.scanned = self.end;
            if self.end - self.start > self.limit_bytes {
                return Err(LineFault::TooLong);
            }
            if self.ended {
                if self.start == self.end {
                    return Ok(None);
                }
                break (self.end, false);
            }
            self.fill().map_err(LineFault::Io)?;
        };
        if stop - self.start > self.limit_bytes {
            return Err(LineFault::TooLong);
        }
        let begin = self.start;
        let offset = self.offset;
        self.previous = (begin, offset);
        self.start = stop + usize::from(whole);
        self.scanned = self.start;
        self.offset += (self.start - begin) as u64;
        self.number += 1;
        let mut bytes = &self.buffer[begin..stop];
        bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if offset == 0 {
            bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        }
        Ok(Some(TraceLine { bytes, number: self.number, offset, whole }))
    }

    /// Puts the line just handed out back, so that it comes again. Once only.
    pub(super) fn unread(&mut self) {
        (self.start, self.offset) = self.previous;
        self.scanned = self.start;
        self.number -= 1;
    }

    /// What comes next, without handing it out: up to `AHEAD_BYTES`, or to the end.
    pub(super) fn ahead(&mut self) -> io::Result<&[u8]> {
        while !self.ended && self.end - self.start < AHEAD_BYTES {
            self.fill()?;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    /// All that was not yet handed out, as bytes.
    pub(super) fn into_rest(mut self) -> impl Read {
        self.buffer.truncate(self.end);
        self.buffer.drain(..self.start);
        io::Cursor::new(self.buffer).chain(self.source)
    }

    /// One read, into a buffer that holds at least the unfinished line.
    fn fill(&mut self) -> io::Result<()> {
        if self.end == self.buffer.len() {
            if self.start > 0 {
                self.buffer.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.scanned -= self.start;
                self.start = 0;
            } else {
                let grown = (self.buffer.len() * 2).min(self.limit_bytes + CHUNK_BYTES);
                self.buffer.resize(grown.max(self.end + 1), 0);
            }
        }
        let room = (self.end + self.read_bytes).min(self.buffer.len());
        let count = loop {
            match self.source.read(&mut self.buffer[self.end..room]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.read_bytes = (self.read_bytes * 2).min(CHUNK_BYTES);
        self.end += count;
        self.ended = count == 0;
        Ok(())
    }
}

impl<R: Read + Seek> LineReader<R> {
    /// Goes on at byte `offset`, which must be the start of a line. Costs a system call only where the
    /// buffer does not hold that place already. Line numbers mean nothing afterwards.
    pub(super) fn jump(&mut self, offset: u64) -> io::Result<()> {
        let buffer_offset = self.offset - self.start as u64;
        let inside = offset.checked_sub(buffer_offset).and_then(|at| usize::try_from(at).ok());
        if let Some(at) = inside.filter(|&at| at < self.end) {
            self.start = at;
        } else {
            self.source.seek(SeekFrom::Start(offset))?;
            (self.start, self.end) = (0, 0);
            self.read_bytes = JUMP_BYTES;
            self.ended = false;
        }
        self.scanned = self.start;
        self.offset = offset;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Hands out at most `cuts[i]` bytes on the i-th read, then whatever is asked for.
    struct Cut<'a> {
        bytes: &'a [u8],
        cuts: std::vec::IntoIter<usize>,
    }

    impl Read for Cut<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let most = self.cuts.next().unwrap_or(usize::MAX).max(1);
            let count = self.bytes.len().min(most).min(out.len());
            out[..count].copy_from_slice(&self.bytes[..count]);
            self.bytes = &self.bytes[count..];
            Ok(count)
        }
    }

    fn lines_of(bytes: &[u8], cuts: Vec<usize>) -> Vec<(Vec<u8>, u64, u64, bool)> {
        let mut reader = LineReader::new(Cut { bytes, cuts: cuts.into_iter() });
        let mut found = Vec::new();
        while let Some(line) = reader.next_line().unwrap() {
            found.push((line.bytes.to_vec(), line.number, line.offset, line.whole));
        }
        found
    }

    #[test]
    fn line_breaks_of_every_kind() {
        let check = |input: &[u8], expect: &[&[u8]]| {
            let texts: Vec<_> = lines_of(input, vec![]).into_iter().map(|line| line.0).collect();
            assert_eq!(texts, expect, "{input:?}");
        };
        check(b"", &[]);
        check(b"\n", &[b""]);
        check(b"a\nb\n", &[b"a", b"b"]);
        check(b"a\r\nb", &[b"a", b"b"]);
        check(b"\xef\xbb\xbfa\r\n\r\n\xef\xbb\xbfb", &[b"a", b"", b"\xef\xbb\xbfb"]);
        check(b"a\rb\n", &[b"a\rb"]);
        assert_eq!(
            lines_of(b"ab\n\ncd", vec![]),
            [
                (b"ab".to_vec(), 1, 0, true),
                (b"".to_vec(), 2, 3, true),
                (b"cd".to_vec(), 3, 4, false)
            ]
        );
    }

    #[test]
    fn a_line_over_the_limit_is_refused_and_one_at_the_limit_is_not() {
        for (length, refused) in [(9, false), (10, false), (11, true), (1_000_000, true)] {
            for ending in ["\n", ""] {
                let text = format!("ok\n{}{ending}", "x".repeat(length));
                let mut reader = LineReader::with_limit(text.as_bytes(), 10);
                assert!(reader.next_line().is_ok());
                let second = reader.next_line();
                assert_eq!(matches!(second, Err(LineFault::TooLong)), refused, "{length}");
            }
        }
    }

    #[test]
    fn a_line_longer_than_a_chunk_is_whole() {
        let long = vec![b'x'; CHUNK_BYTES * 5 + 17];
        let mut text = b"first\n".to_vec();
        text.extend_from_slice(&long);
        text.extend_from_slice(b"\nlast");
        let found = lines_of(&text, vec![]);
        assert_eq!(found.len(), 3);
        assert_eq!(found[1].0, long);
        assert_eq!(found[2].2, 6 + long.len() as u64 + 1);
    }

    #[test]
    fn a_line_put_back_comes_again() {
        let mut reader = LineReader::new(&b"\xef\xbb\xbfone\ntwo\n"[..]);
        for _ in 0..2 {
            let line = reader.next_line().unwrap().unwrap();
            assert_eq!((line.bytes, line.number, line.offset), (&b"one"[..], 1, 0));
            reader.unread();
        }
        reader.next_line().unwrap();
        assert_eq!(reader.next_line().unwrap().unwrap().number, 2);
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_lines(
            text in "[ab\r\n]{0,60}",
            cuts in proptest::collection::vec(1usize..7, 0..60),
        ) {
            prop_assert_eq!(lines_of(text.as_bytes(), cuts), lines_of(text.as_bytes(), vec![]));
        }

        #[test]
        fn lines_are_found_again_by_offset(
            rows in proptest::collection::vec(0usize..9000, 1..40),
            picks in proptest::collection::vec(any::<prop::sample::Index>(), 1..60),
        ) {
            let rows = rows.iter().enumerate();
            let rows: Vec<_> = rows.map(|(i, n)| format!("{i}:{}", "x".repeat(*n))).collect();
            let text = rows.join("\n");
            let all = lines_of(text.as_bytes(), vec![]);
            let mut reader = LineReader::new(io::Cursor::new(text.as_bytes()));
            for pick in picks {
                let (bytes, _, offset, _) = pick.get(&all);
                reader.jump(*offset).unwrap();
                let line = reader.next_line().unwrap().unwrap();
                prop_assert_eq!((line.bytes, line.offset), (&bytes[..], *offset));
            }
        }
    }
}
