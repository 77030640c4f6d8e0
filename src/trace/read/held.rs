//! Formats that have to be read as a whole: documents, and folders of them.
//!
//! The only place where a trace does not stream. All rows are held, sorted, within a limit that is
//! checked before they fill memory.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::value::RawValue;

use super::error::{Fault, TraceError};
use super::order::{ROWS_LIMIT_BYTES, memory_bytes};
use super::otel::Otel;
use super::rows::Row;
use super::shared_blocks::{Blocks, Sharing};
use super::source::{open_file, read_error, unpack};
use super::weka::Weka;
use super::{Format, ReadOptions, TimeUnit};
use crate::trace::Request;

/// The longest document.
const TEXT_LIMIT_BYTES: u64 = 1 << 30;

/// Rows taken from documents.
#[derive(Default)]
pub(super) struct Taken {
    pub(super) rows: Vec<(Row, Blocks)>,
    /// Things read that are no request.
    pub(super) skipped: u64,
    memory_bytes: u64,
    line: u64,
    sharing: Sharing,
}

impl Taken {
    /// Adds a row, at a time on the file's own scale.
    pub(super) fn push(&mut self, at_ns: i64, mut request: Request) -> Result<(), Fault> {
        request.row = self.rows.len() as u64 + self.skipped;
        let (blocks, bytes) = self.sharing.store(&mut request);
        let row = Row { at_ns, line: self.line, offset: 0, request };
        self.memory_bytes += memory_bytes(&row) + bytes;
        if self.memory_bytes > ROWS_LIMIT_BYTES {
            return Err(Fault::row(format!(
                "the rows of this format are held in memory, and need more than {} MiB; cut the trace into \
                 parts",
                ROWS_LIMIT_BYTES >> 20
            )));
        }
        self.rows.push((row, blocks));
        Ok(())
    }

    pub(super) fn skip(&mut self) {
        self.skipped += 1;
    }
}

/// What documents gave.
pub(super) struct Whole {
    pub(super) taken: Taken,
    pub(super) remarks: Vec<String>,
    /// Whether all rows count from one origin.
    pub(super) has_common_clock: bool,
}

enum Reader {
    Weka(Weka),
    Otel(Otel),
}

/// Reads documents of one format, one after another.
pub(super) struct Documents {
    reader: Reader,
    taken: Taken,
}

impl Documents {
    pub(super) fn new(format: Format, options: &ReadOptions) -> Self {
        let unit = options.time_unit.unwrap_or(TimeUnit::S);
        let reader = match format {
            Format::Otel => Reader::Otel(Otel::default()),
            _ => Reader::Weka(Weka::new(unit, options.block_tok)),
        };
        Self { reader, taken: Taken::default() }
    }

    /// Reads all documents of one file.
    pub(super) fn read(&mut self, bytes: impl Read, name: &str) -> Result<(), TraceError> {
        let mut text = Vec::new();
        let read = bytes.take(TEXT_LIMIT_BYTES + 1).read_to_end(&mut text);
        read.map_err(|cause| read_error(cause, name, 0))?;
        let fail = |problem: String, line: u64| TraceError::Row {
            file: name.to_owned(),
            line,
            column: String::new(),
            problem,
        };
        if text.len() as u64 > TEXT_LIMIT_BYTES {
            let limit = TEXT_LIMIT_BYTES >> 20;
            return Err(fail(format!("the file is above {limit} MiB; cut it into parts"), 1));
        }
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
        let mut documents = serde_json::Deserializer::from_slice(text).into_iter::<&RawValue>();
        let mut seen = 0;
        self.taken.line = 1;
        loop {
            let offset = documents.byte_offset();
            let Some(document) = documents.next() else { return Ok(()) };
            self.taken.sharing.clear();
            let blanks =
                text[offset..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let start = offset + blanks;
            self.taken.line += memchr::memchr_iter(b'\n', &text[seen..start]).count() as u64;
            seen = start;
            let document = document.map_err(|error| {
                let line = error.line() as u64;
                if error.is_eof() {
                    let problem = format!("byte {} of the line", error.column());
                    return TraceError::Torn { file: name.to_owned(), line, problem };
                }
                let remedy = "the file must hold whole JSON objects";
                fail(format!("no valid JSON at byte {}: {error}; {remedy}", error.column()), line)
            })?;
            let outcome = match &mut self.reader {
                Reader::Weka(reader) => reader.read(document, &mut self.taken),
                Reader::Otel(reader) => reader.read(document, &mut self.taken),
            };
            outcome.map_err(|fault| fault.located(name, self.taken.line, false))?;
        }
    }

    pub(super) fn finish(self) -> Whole {
        let (remarks, has_common_clock) = match &self.reader {
            Reader::Weka(reader) => (Vec::new(), reader.sessions() <= 1),
            Reader::Otel(reader) => (reader.remarks(), true),
        };
        Whole { taken: self.taken, remarks, has_common_clock }
    }
}

/// The trace files of a folder, in the order of their names. A folder within it is left alone.
pub(super) fn files_of(folder: &Path, name: &str) -> Result<Vec<PathBuf>, TraceError> {
    let fail = |cause| TraceError::Open { file: name.to_owned(), cause };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        let text = path.to_string_lossy();
        let is_trace = [".json", ".jsonl", ".json.gz", ".jsonl.gz", ".json.zst", ".jsonl.zst"]
            .iter()
            .any(|ending| text.ends_with(ending));
        if is_trace && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(fail(std::io::Error::other(
            "the folder holds no trace of sessions (.json or .jsonl); name a trace file",
        )));
    }
    Ok(files)
}

/// Reads every file of a folder.
pub(super) fn read_folder(files: &[PathBuf], documents: &mut Documents) -> Result<(), TraceError> {
    for path in files {
        let name = path.display().to_string();
        let (file, _) = open_file(path, &name)?;
        let (bytes, _) = unpack(Box::new(file))
            .map_err(|cause| TraceError::Open { file: name.clone(), cause })?;
        documents.read(bytes, &name)?;
    }
    Ok(())
}

/// Held rows, handed out one by one.
pub(super) struct HeldRows {
    pub(super) rows: Arc<Vec<(Request, Blocks)>>,
    pub(super) next: usize,
}

impl Iterator for HeldRows {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (row, blocks) = self.rows.get(self.next)?;
        self.next += 1;
        Some(Ok(Request { prefix: blocks.prefix(), ..row.clone() }))
    }
}
