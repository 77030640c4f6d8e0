//! Bytes of a trace: opened, unpacked, counted, and known again.
//!
//! Compression is told by the first bytes, never by the name, so that it works on a pipe too. What the
//! bytes mean is not known here.

use std::fs::{File, Metadata};
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use super::error::TraceError;
use super::lines::{LineFault, LineReader};

/// Unpacked bytes.
pub(super) type Bytes = Box<dyn Read + Send>;

/// How a file is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Plain,
    Gzip,
    Zstd,
}

/// What tells whether a file is still the one that was validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) len_bytes: u64,
    modified: Option<SystemTime>,
}

impl Identity {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self { len_bytes: metadata.len(), modified: metadata.modified().ok() }
    }
}

/// Opens a file. Its length is fixed by `Take` later on, so a growing file is never read past what was
/// validated.
pub(super) fn open_file(path: &Path, name: &str) -> Result<(File, Metadata), TraceError> {
    let fail = |cause| TraceError::Open { file: name.to_owned(), cause };
    let file = File::open(path).map_err(fail)?;
    let metadata = file.metadata().map_err(fail)?;
    Ok((file, metadata))
}

/// The bytes of a file that is read whole; `None` where they are more than `limit_bytes`.
pub fn read_whole(path: &Path, limit_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit_bytes + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit_bytes).then_some(bytes))
}

/// Looks at the first bytes and puts the right decompressor in front.
pub(super) fn unpack(raw: Bytes, name: &str) -> Result<(Bytes, Packing), TraceError> {
    unpacked(raw).map_err(|cause| TraceError::Open { file: name.to_owned(), cause })
}

fn unpacked(mut raw: Bytes) -> io::Result<(Bytes, Packing)> {
    let mut head = Vec::with_capacity(4);
    // One read may give fewer bytes on a pipe; `take` goes on until four or the end.
    raw.by_ref().take(4).read_to_end(&mut head)?;
    let packing = match head[..] {
        [0x1f, 0x8b, ..] => Packing::Gzip,
        // A frame, or a skippable frame in front of one, as parallel compressors write it.
        [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => Packing::Zstd,
        _ => Packing::Plain,
    };
    let whole = Cursor::new(head).chain(raw);
    let bytes: Bytes = match packing {
        Packing::Plain => Box::new(whole),
        Packing::Gzip => {
            Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(1 << 16, whole)))
        }
        Packing::Zstd => Box::new(zstd::stream::read::Decoder::new(whole)?),
    };
    Ok((bytes, packing))
}

/// Counts what passes, for a progress bar. The count is of packed bytes, as the file's length is.
pub(super) struct Counted<R> {
    inner: R,
    read_bytes: Arc<AtomicU64>,
}

impl<R> Counted<R> {
    pub(super) fn new(inner: R, read_bytes: Arc<AtomicU64>) -> Self {
        Self { inner, read_bytes }
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(out)?;
        self.read_bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// The error for a line that did not come.
pub(super) fn line_error<R: Read>(
    fault: LineFault,
    lines: &LineReader<R>,
    name: &str,
) -> TraceError {
    match fault {
        LineFault::TooLong => {
            TraceError::LongLine { file: name.to_owned(), line: lines.number() + 1 }
        }
        LineFault::Io(cause) => read_error(cause, name, lines.number()),
    }
}

/// The error for bytes that did not come after `line`.
pub(super) fn read_error(cause: io::Error, name: &str, line: u64) -> TraceError {
    let hint = match cause.kind() {
        io::ErrorKind::UnexpectedEof => "; the compressed data ends early, fetch the file again",
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
            "; the compressed data is damaged, fetch the file again"
        }
        _ => "",
    };
    TraceError::Read { file: name.to_owned(), line, cause, hint }
}
