//! Opens traces: tells files, folders and streams apart, unpacks, sniffs, validates.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::documents::{Documents, files_of, read_folder};
use super::error::TraceError;
use super::formats::Format;
use super::lines::LineReader;
use super::options::{Input, ReadOptions};
use super::rows::{RowReader, first_line};
use super::scan::{clock_of, scan};
use super::sniff::{document_format, format_of, may_be_document, unknown_format};
use super::source::{Bytes, Identity, open_file, read_error, unpack};
use super::trace::{RowSource, Trace, TraceFile};

/// Bytes between two calls of a progress function.
const PROGRESS_STEP_BYTES: u64 = 4 << 20;

/// Opens a trace; a file is validated, which reads it once (see [`open_with_progress`]).
pub fn open(input: Input, options: ReadOptions) -> Result<Trace, TraceError> {
    open_with_progress(input, options, &mut |_, _| {})
}

/// [`open`], calling `on_progress(bytes read, bytes in all)` every few megabytes of the file and at the
/// end. The second number is 0 where it is unknown; the first starts over when an unsorted file is
/// read again for its index.
pub fn open_with_progress(
    input: Input,
    options: ReadOptions,
    on_progress: &mut dyn FnMut(u64, u64),
) -> Result<Trace, TraceError> {
    if options.block_tok == Some(0) {
        return Err(TraceError::BlockTok);
    }
    match input {
        Input::File(path) if path != Path::new("-") => open_path(path, options, on_progress),
        Input::File(_) | Input::Stdin => {
            open_stream(Box::new(std::io::stdin()), "standard input", options)
        }
    }
}

fn open_path(
    path: PathBuf,
    options: ReadOptions,
    on_progress: &mut dyn FnMut(u64, u64),
) -> Result<Trace, TraceError> {
    let name: Arc<str> = path.display().to_string().into();
    let (file, metadata) = open_file(&path, &name)?;
    if metadata.is_dir() {
        return open_folder(&path, &name, options);
    }
    if !metadata.is_file() {
        return open_stream(Box::new(file), &name, options);
    }
    let identity = Identity::of(&metadata);
    let (bytes, packing) = unpack(Box::new(file.take(identity.len_bytes)), &name)?;
    let mut lines = LineReader::new(bytes);
    let format = sniff(&mut lines, &name, options.format)?;
    if let Some(mut documents) = Documents::new(format, &options) {
        documents.read(lines.into_rest(), &name)?;
        on_progress(identity.len_bytes, identity.len_bytes);
        return Trace::held(documents, format, options, &name);
    }
    let file = TraceFile { path, name, identity };
    if options.assume_sorted {
        // Rows are taken on trust: the first line is all that is looked at.
        let reader = file.start(format, &options, Arc::default())?;
        let (ignored, clock) = (reader.format().ignored(), clock_of(reader.format()));
        return Ok(Trace::unseen(RowSource::File(file), format, options, &ignored, clock));
    }
    let read_bytes = Arc::new(AtomicU64::new(0));
    let start = || {
        read_bytes.store(0, Ordering::Relaxed);
        file.start(format, &options, Arc::clone(&read_bytes))
    };
    let total_bytes = identity.len_bytes;
    let mut reported_bytes = 0;
    let mut on_row = || {
        let now_bytes = read_bytes.load(Ordering::Relaxed);
        if now_bytes.abs_diff(reported_bytes) >= PROGRESS_STEP_BYTES {
            reported_bytes = now_bytes;
            on_progress(now_bytes, total_bytes);
        }
    };
    let scan = scan(&start, format, options.failed, packing, &mut on_row)?;
    on_progress(total_bytes, total_bytes);
    Ok(Trace::scanned(RowSource::File(file), format, options, scan))
}

/// Anything that can be read once only.
pub(super) fn open_stream(
    raw: Bytes,
    name: &str,
    options: ReadOptions,
) -> Result<Trace, TraceError> {
    let name: Arc<str> = name.into();
    let (bytes, _) = unpack(raw, &name)?;
    let mut lines = LineReader::new(bytes);
    let format = sniff(&mut lines, &name, options.format)?;
    if let Some(mut documents) = Documents::new(format, &options) {
        documents.read(lines.into_rest(), &name)?;
        return Trace::held(documents, format, options, &name);
    }
    let reader = RowReader::start(lines, format, &options, Arc::clone(&name))?;
    let (ignored, clock) = (reader.format().ignored(), clock_of(reader.format()));
    let source = RowSource::Stream { name, reader: Mutex::new(Some(Box::new(reader))) };
    Ok(Trace::unseen(source, format, options, &ignored, clock))
}

fn open_folder(path: &Path, name: &str, options: ReadOptions) -> Result<Trace, TraceError> {
    let (format, mut documents, files) = folder(path, name, &options)?;
    read_folder(&files, &mut documents)?;
    Trace::held(documents, format, options, name)
}

/// A folder of sessions, a file each: their format by the first, and the files.
pub(super) fn folder(
    path: &Path,
    name: &str,
    options: &ReadOptions,
) -> Result<(Format, Documents, Vec<PathBuf>), TraceError> {
    let files = files_of(path, name)?;
    let first = files[0].display().to_string();
    let (file, _) = open_file(&files[0], &first)?;
    let (bytes, _) = unpack(Box::new(file), &first)?;
    let format = sniff(&mut LineReader::new(bytes), &first, options.format)?;
    let Some(documents) = Documents::new(format, options) else {
        let cause = std::io::Error::other(format!(
            "it is a folder of {format} files; name the trace file inside it"
        ));
        return Err(TraceError::Open { file: name.to_owned(), cause });
    };
    Ok((format, documents, files))
}

/// The format by the first line, which is put back.
pub(super) fn sniff<R: Read>(
    lines: &mut LineReader<R>,
    name: &str,
    chosen: Option<Format>,
) -> Result<Format, TraceError> {
    let Some((first, _)) = first_line(lines, name)? else {
        return Err(TraceError::Empty { file: name.to_owned() });
    };
    let first = first.to_vec();
    lines.unread();
    if let Some(format) = chosen {
        return Ok(format);
    }
    let hint = match format_of(&first) {
        Ok(format) => return Ok(format),
        Err(hint) => hint,
    };
    // Only now is more read than a line: a pipe may have no more for a long time.
    if may_be_document(&first) {
        let ahead = lines.ahead().map_err(|cause| read_error(cause, name, 0))?;
        if let Some(format) = document_format(ahead) {
            return Ok(format);
        }
    }
    Err(unknown_format(name, &first, hint))
}
