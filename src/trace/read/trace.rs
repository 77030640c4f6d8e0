//! An opened trace: what is known of it, and fresh passes over its rows.
//!
//! A regular file is read at least twice, so it is pinned by length and modification time; all else is a
//! stream, read once, or held.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Take};
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use super::documents::Documents;
use super::error::TraceError;
use super::facts::{Facts, TraceClock};
use super::formats::Format;
use super::held::{Blocks, HeldRows};
use super::lines::LineReader;
use super::notices;
use super::options::ReadOptions;
use super::order::{self, Indexed, Order, SharedTally, Streamed};
use super::rows::RowReader;
use super::scan::{Scan, settle};
use super::source::{Bytes, Counted, Identity, open_file, unpack};
use crate::trace::Request;

/// Rows in time order.
type Rows = Box<dyn Iterator<Item = Result<Request, TraceError>> + Send>;

/// A trace that was opened, and, unless it is a stream, validated.
pub struct Trace {
    pub(super) format: Format,
    pub(super) options: ReadOptions,
    pub(super) source: RowSource,
    pub(super) facts: Option<Facts>,
    pub(super) clock: TraceClock,
    pub(super) notices: Vec<String>,
    /// The file's time that is trace time 0, where it is known.
    pub(super) zero_ns: Option<i64>,
    pub(super) order: Order,
    pub(super) tally: SharedTally,
}

pub(super) enum RowSource {
    File(TraceFile),
    Stream { name: Arc<str>, reader: Mutex<Option<Box<RowReader<Bytes>>>> },
    Held(Arc<Vec<(Request, Blocks)>>),
}

/// A regular file, and what it was like when it was opened first.
pub(super) struct TraceFile {
    pub(super) path: PathBuf,
    pub(super) name: Arc<str>,
    pub(super) identity: Identity,
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

    pub(super) fn start(
        &self,
        format: Format,
        options: &ReadOptions,
        read_bytes: Arc<AtomicU64>,
    ) -> Result<RowReader<Bytes>, TraceError> {
        let file: Take<File> = self.reopen()?.take(self.identity.len_bytes);
        let (bytes, _) = unpack(Box::new(Counted::new(file, read_bytes)), &self.name)?;
        RowReader::start(LineReader::new(bytes), format, options, Arc::clone(&self.name))
    }
}

impl Trace {
    /// A trace all of whose rows are at hand.
    pub(super) fn held(
        documents: Documents,
        format: Format,
        options: ReadOptions,
        name: &str,
    ) -> Result<Self, TraceError> {
        let (scan, rows) = settle(documents.finish(), format, options.failed, name)?;
        Ok(Self::scanned(RowSource::Held(Arc::new(rows)), format, options, scan))
    }

    /// A trace all of whose rows were looked at.
    pub(super) fn scanned(
        source: RowSource,
        format: Format,
        options: ReadOptions,
        scan: Scan,
    ) -> Self {
        Self {
            format,
            notices: notices::of_scan(&scan, format, &options),
            source,
            clock: scan.facts.clock,
            facts: Some(scan.facts),
            zero_ns: Some(scan.zero_ns),
            order: scan.order,
            tally: SharedTally::default(),
            options,
        }
    }

    /// A trace of which no row was looked at yet.
    pub(super) fn unseen(
        source: RowSource,
        format: Format,
        options: ReadOptions,
        ignored: &[String],
        clock: TraceClock,
    ) -> Self {
        let mut notices = notices::of_options(format, &options);
        notices.extend(notices::of_ignored(ignored, format));
        Self {
            format,
            notices,
            source,
            clock,
            facts: None,
            // Some formats have a zero of their own; the others start with their first row.
            zero_ns: format.definition().has_own_zero.then_some(0),
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
        if !self.format.definition().wants_turns {
            return Ok(rows);
        }
        Ok(Box::new(TurnNumbering { rows, last: HashMap::new() }))
    }

    fn rows_as_recorded(&self) -> Result<Rows, TraceError> {
        let file = match &self.source {
            RowSource::File(file) => file,
            RowSource::Held(rows) => {
                return Ok(Box::new(HeldRows { rows: Arc::clone(rows), next: 0 }));
            }
            RowSource::Stream { name, reader } => {
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

/// Numbers the turns of sessions whose rows do not say them, in time order. Memory grows with the number of
/// sessions, not with that of rows.
struct TurnNumbering<I> {
    rows: I,
    last: HashMap<Arc<str>, u32>,
}

impl<I: Iterator<Item = Result<Request, TraceError>>> Iterator for TurnNumbering<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        let mut item = self.rows.next()?;
        if let Ok(request) = &mut item
            && request.turn.is_none()
            && let Some(session) = &request.session
        {
            let last = self.last.entry(Arc::clone(session)).or_default();
            *last = last.saturating_add(1);
            request.turn = Some(*last);
        }
        Some(item)
    }
}
