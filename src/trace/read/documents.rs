//! Formats that have to be read as a whole: documents, and folders of them.
//!
//! The only place where a trace does not stream. All rows are held, sorted, within a limit that is
//! checked before they fill memory.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::value::RawValue;

use super::error::TraceError;
use super::formats::Format;
use super::held::Held;
use super::number::TimeUnit;
use super::options::ReadOptions;
use super::reader::{ReadDocument, Reader};
use super::source::{open_file, read_error, unpack};

/// The longest document.
const TEXT_LIMIT_BYTES: u64 = 1 << 30;

/// What documents gave.
pub(super) struct Whole {
    pub(super) held: Held,
    pub(super) remarks: Vec<String>,
    /// Whether all rows count from one origin.
    pub(super) has_common_clock: bool,
}

/// Reads documents of one format, one after another.
pub(super) struct Documents {
    reader: Box<dyn ReadDocument>,
    held: Held,
}

impl Documents {
    /// `None` where the format is read line by line.
    pub(super) fn new(format: Format, options: &ReadOptions) -> Option<Self> {
        let Reader::Documents { new, .. } = format.definition().reader else { return None };
        let reader = new(options.time_unit.unwrap_or(TimeUnit::S), options.block_tok);
        Some(Self { reader, held: Held::default() })
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
        let mut line = 1;
        loop {
            let offset = documents.byte_offset();
            let Some(document) = documents.next() else { return Ok(()) };
            let blanks =
                text[offset..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let start = offset + blanks;
            line += memchr::memchr_iter(b'\n', &text[seen..start]).count() as u64;
            seen = start;
            self.held.begin(line);
            let document = document.map_err(|error| {
                let line = error.line() as u64;
                if error.is_eof() {
                    let problem = format!("byte {} of the line", error.column());
                    return TraceError::Torn { file: name.to_owned(), line, problem };
                }
                let remedy = "the file must hold whole JSON objects";
                fail(format!("no valid JSON at byte {}: {error}; {remedy}", error.column()), line)
            })?;
            let outcome = self.reader.read(document, &mut self.held);
            outcome.map_err(|fault| fault.located(name, line, false))?;
        }
    }

    pub(super) fn finish(self) -> Whole {
        let (remarks, has_common_clock) = (self.reader.remarks(), self.reader.has_common_clock());
        Whole { held: self.held, remarks, has_common_clock }
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
        let (bytes, _) = unpack(Box::new(file), &name)?;
        documents.read(bytes, &name)?;
    }
    Ok(())
}
