//! An opened trace: what is known of it, and fresh passes over its rows.
//!
//! The only file here that opens anything. A regular file is read at least twice, so it is pinned by
//! length and modification time; all else is a stream, read once.

use std::fs::File;
use std::io::{Read, Take};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::error::{TraceError, shorten};
use super::held::{Documents, HeldRows, files_of, read_folder};
use super::lines::LineReader;
use super::order::{self, Indexed, Order, SharedTally, Streamed};
use super::rows::{ReadRow, RowReader, first_line};
use super::scan::{Facts, TraceClock, clock_of, scan, settle};
use super::sniff::format_of;
use super::source::{Bytes, Counted, Identity, open_file, read_error, unpack};
use super::turns::Turns;
use super::{Format, Input, ReadOptions, notices};
use crate::trace::Request;

/// Bytes between two calls of a progress function.
const PROGRESS_STEP_BYTES: u64 = 4 << 20;

/// Rows in time order.
type Rows = Box<dyn Iterator<Item = Result<Request, TraceError>> + Send>;

/// A trace that was opened, and, unless it is a stream, validated.
pub struct Trace {
    format: Format,
    options: ReadOptions,
    source: Source,
    facts: Option<Facts>,
    clock: TraceClock,
    notices: Vec<String>,
    /// The file's time that is trace time 0, where it is known.
    zero_ns: Option<i64>,
    order: Order,
    tally: SharedTally,
}

enum Source {
    File(TraceFile),
    Stream { name: Arc<str>, reader: Mutex<Option<Box<RowReader<Bytes>>>> },
    Held(Arc<Vec<Request>>),
}

/// A regular file, and what it was like when it was opened first.
struct TraceFile {
    path: PathBuf,
    name: Arc<str>,
    identity: Identity,
}

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
    let (bytes, packing) = unpack(Box::new(file.take(identity.len_bytes)))
        .map_err(|cause| TraceError::Open { file: name.to_string(), cause })?;
    let mut lines = LineReader::new(bytes);
    let format = sniff(&mut lines, &name, options.format)?;
    if format.is_whole() {
        let mut documents = Documents::new(format, &options);
        documents.read(lines.into_rest(), &name)?;
        on_progress(identity.len_bytes, identity.len_bytes);
        return Trace::held(documents, format, options, &name);
    }
    let file = TraceFile { path, name, identity };
    if options.assume_sorted {
        return open_unchecked(file, format, options);
    }
    let read_bytes = Arc::new(AtomicU64::new(0));
    let start = || {
        read_bytes.store(0, Ordering::Relaxed);
        file.start(format, &options, Arc::clone(&read_bytes))
    };
    let total_bytes = identity.len_bytes;
    let mut said_bytes = 0;
    let mut on_row = || {
        let now_bytes = read_bytes.load(Ordering::Relaxed);
        if now_bytes.abs_diff(said_bytes) >= PROGRESS_STEP_BYTES {
            said_bytes = now_bytes;
            on_progress(now_bytes, total_bytes);
        }
    };
    let scan = scan(&start, format, options.failed, packing, &mut on_row)?;
    on_progress(total_bytes, total_bytes);
    Ok(Trace {
        format,
        notices: notices::of_scan(&scan, format, &options),
        source: Source::File(file),
        clock: scan.facts.clock,
        facts: Some(scan.facts),
        zero_ns: Some(scan.zero_ns),
        order: scan.order,
        tally: SharedTally::default(),
        options,
    })
}

/// A file whose rows are taken on trust: its first line is all that is looked at.
fn open_unchecked(
    file: TraceFile,
    format: Format,
    options: ReadOptions,
) -> Result<Trace, TraceError> {
    let reader = file.start(format, &options, Arc::default())?;
    Ok(Trace::unseen(Source::File(file), format, options, reader.format()))
}

/// Anything that can be read once only.
pub(super) fn open_stream(
    raw: Bytes,
    name: &str,
    options: ReadOptions,
) -> Result<Trace, TraceError> {
    let name: Arc<str> = name.into();
    let (bytes, _) =
        unpack(raw).map_err(|cause| TraceError::Open { file: name.to_string(), cause })?;
    let mut lines = LineReader::new(bytes);
    let format = sniff(&mut lines, &name, options.format)?;
    if format.is_whole() {
        let mut documents = Documents::new(format, &options);
        documents.read(lines.into_rest(), &name)?;
        return Trace::held(documents, format, options, &name);
    }
    let reader = RowReader::start(lines, format, &options, Arc::clone(&name))?;
    let mut trace = Trace::unseen(
        Source::Stream { name: Arc::clone(&name), reader: Mutex::new(None) },
        format,
        options,
        reader.format(),
    );
    trace.source = Source::Stream { name, reader: Mutex::new(Some(Box::new(reader))) };
    Ok(trace)
}

/// A folder of sessions, a file each.
fn open_folder(path: &Path, name: &str, options: ReadOptions) -> Result<Trace, TraceError> {
    let files = files_of(path, name)?;
    let first = files[0].display().to_string();
    let (file, _) = open_file(&files[0], &first)?;
    let (bytes, _) =
        unpack(Box::new(file)).map_err(|cause| TraceError::Open { file: first.clone(), cause })?;
    let format = sniff(&mut LineReader::new(bytes), &first, options.format)?;
    if !format.is_whole() {
        let cause = std::io::Error::other(format!(
            "it is a folder of {format} files; name the trace file inside it"
        ));
        return Err(TraceError::Open { file: name.to_owned(), cause });
    }
    let mut documents = Documents::new(format, &options);
    read_folder(&files, &mut documents)?;
    Trace::held(documents, format, options, name)
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
    // Mostly the line is enough, and on a pipe the next one may be long in coming.
    if let Ok(format) = format_of(&first, &first) {
        return Ok(format);
    }
    match lines.ahead() {
        Err(cause) => Err(read_error(cause, name, 0)),
        Ok(ahead) => format_of(&first, ahead).map_err(|hint| TraceError::UnknownFormat {
            file: name.to_owned(),
            seen: shorten(&first),
            hint,
        }),
    }
}

impl TraceFile {
    /// Opens the file again, which must still be the one that was opened first.
    fn reopen(&self) -> Result<File, TraceError> {
        let (file, metadata) = open_file(&self.path, &self.name)?;
        if Identity::of(&metadata) != self.identity {
            return Err(TraceError::Changed { file: self.name.to_string() });
        }
        Ok(file)
    }

    fn start(
        &self,
        format: Format,
        options: &ReadOptions,
        read_bytes: Arc<AtomicU64>,
    ) -> Result<RowReader<Bytes>, TraceError> {
        let file: Take<File> = self.reopen()?.take(self.identity.len_bytes);
        let (bytes, _) = unpack(Box::new(Counted::new(file, read_bytes)))
            .map_err(|cause| TraceError::Open { file: self.name.to_string(), cause })?;
        RowReader::start(LineReader::new(bytes), format, options, Arc::clone(&self.name))
    }
}

impl Trace {
    /// A trace all of whose rows are at hand.
    fn held(
        documents: Documents,
        format: Format,
        options: ReadOptions,
        name: &str,
    ) -> Result<Self, TraceError> {
        let (scan, rows) = settle(documents.finish(), format, options.failed, name)?;
        Ok(Self {
            format,
            notices: notices::of_scan(&scan, format, &options),
            source: Source::Held(Arc::new(rows)),
            clock: scan.facts.clock,
            facts: Some(scan.facts),
            zero_ns: Some(scan.zero_ns),
            order: Order::AsWritten,
            tally: SharedTally::default(),
            options,
        })
    }

    /// A trace of which no row was looked at yet.
    fn unseen(source: Source, format: Format, options: ReadOptions, about: &dyn ReadRow) -> Self {
        let mut notices = notices::of_options(format, &options);
        notices.extend(notices::of_ignored(&about.ignored(), format));
        Self {
            format,
            notices,
            source,
            clock: clock_of(about),
            facts: None,
            // Some formats have a zero of their own; the others start with their first row.
            zero_ns: format.has_own_zero().then_some(0),
            order: Order::AsWritten,
            tally: SharedTally::default(),
            options,
        }
    }

    /// The format, told or found.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whose clock the rows' times are of. Where it is not one for all, somebody has to say when rows
    /// or sessions arrive.
    #[must_use]
    pub fn clock(&self) -> TraceClock {
        self.clock
    }

    /// What the validating pass found; `None` on a stream and with `assume_sorted`.
    #[must_use]
    pub fn facts(&self) -> Option<&Facts> {
        self.facts.as_ref()
    }

    /// What a person should know before the trace is replayed, a line each.
    #[must_use]
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// What a person should know *after* a pass where [`Self::facts`] is `None`: rows dropped or changed,
    /// which could not be counted before. Empty for a validated file, whose notices said it.
    #[must_use]
    pub fn late_notices(&self) -> Vec<String> {
        if self.facts.is_some() {
            return Vec::new();
        }
        let tally = *self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        notices::of_tally(&tally, self.options.failed)
    }

    /// A fresh pass over the rows that are kept, in time order; rows of equal time in the order of the
    /// file. Ends after the first error. A stream can be taken once.
    pub fn rows(&self) -> Result<Rows, TraceError> {
        let rows = self.rows_as_recorded()?;
        Ok(if self.format.wants_turns() { Box::new(Turns::new(rows)) } else { rows })
    }

    fn rows_as_recorded(&self) -> Result<Rows, TraceError> {
        let file = match &self.source {
            Source::File(file) => file,
            Source::Held(rows) => {
                return Ok(Box::new(HeldRows { rows: Arc::clone(rows), next: 0 }));
            }
            Source::Stream { name, reader } => {
                let taken = reader.lock().unwrap_or_else(PoisonError::into_inner).take();
                let reader = taken.ok_or_else(|| TraceError::Taken { file: name.to_string() })?;
                return Ok(self.streamed(*reader, order::STREAM_ORDER));
            }
        };
        let start = || file.start(self.format, &self.options, Arc::default());
        match &self.order {
            Order::AsWritten => Ok(self.streamed(start()?, order::ASSUMED_ORDER)),
            Order::Index(index) => Ok(Box::new(Indexed {
                reader: RowReader::start(
                    LineReader::new(file.reopen()?),
                    self.format,
                    &self.options,
                    Arc::clone(&file.name),
                )?,
                index: Arc::clone(index),
                next: 0,
                failed: self.options.failed,
                zero_ns: self.zero_ns.unwrap_or(0),
            })),
            Order::InMemory => {
                let zero_ns = self.zero_ns.unwrap_or(0);
                let sorted = order::sort_in_memory(start()?, self.options.failed, zero_ns)?;
                Ok(Box::new(sorted.into_iter().map(Ok)))
            }
        }
    }

    fn streamed(&self, reader: RowReader<Bytes>, why_not_sorted: &'static str) -> Rows {
        let tally = Arc::clone(&self.tally);
        Box::new(Streamed::new(reader, self.options.failed, self.zero_ns, why_not_sorted, tally))
    }
}
