//! Rows in time order, whichever order the file has.
//!
//! Three ways: a sorted file is streamed; an unsorted plain file is read row by row through an index of
//! (time, place), which costs 24 bytes a row; an unsorted compressed file, where no place can be gone to,
//! is sorted as whole rows within a limit. Rows of equal time keep the order of the file.

use std::fs::File;
use std::io::Read;
use std::sync::{Arc, Mutex};

use super::error::TraceError;
use super::options::Failed;
use super::row::trace_time;
use super::rows::{RowReader, Tally};
use crate::trace::Request;
use crate::units::Nanos;

/// Memory for an index: 89 million rows.
pub(super) const INDEX_LIMIT_BYTES: u64 = 2 << 30;

/// One kept row of an unsorted file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) at_ns: i64,
    pub(super) row: u64,
    pub(super) offset: u64,
}

/// How a pass gets its rows into order.
#[derive(Clone, Debug)]
pub(super) enum Order {
    /// They are.
    AsWritten,
    /// By going to each row's place. (Not `Arc<[_]>`, which would copy the index to make it.)
    Index(Arc<Vec<Entry>>),
    /// By holding them all.
    InMemory,
}

/// Why a streamed pass cannot mend an inversion, and what to do.
pub(super) const STREAM_ORDER: &str = "rows of a stream cannot be sorted once sending began; save it to a file first, which is sorted";
/// The same, for `--assume-sorted`.
pub(super) const ASSUMED_ORDER: &str =
    "the file was taken as sorted; leave `--assume-sorted` out to have it sorted";

/// What a pass counted, for those who could not know before.
pub(super) type SharedTally = Arc<Mutex<Tally>>;

/// Rows as they come, checked to be in order; ends after the first error.
pub(super) struct Streamed<R> {
    reader: RowReader<R>,
    failed: Failed,
    /// Trace time 0; the first row's time where nothing is known yet.
    zero_ns: Option<i64>,
    latest_ns: i64,
    why_not_sorted: &'static str,
    tally: Tally,
    shared: SharedTally,
    ended: bool,
}

impl<R: Read> Streamed<R> {
    pub(super) fn new(
        reader: RowReader<R>,
        failed: Failed,
        zero_ns: Option<i64>,
        why_not_sorted: &'static str,
        shared: SharedTally,
    ) -> Self {
        let latest_ns = i64::MIN;
        let tally = Tally::default();
        Self { reader, failed, zero_ns, latest_ns, why_not_sorted, tally, shared, ended: false }
    }

    fn next_kept(&mut self) -> Result<Option<Request>, TraceError> {
        while let Some(mut row) = self.reader.next_row()? {
            let zero_ns = *self.zero_ns.get_or_insert(row.at_ns);
            if !self.tally.admit(&mut row, self.failed) {
                continue;
            }
            let floor_ns = self.latest_ns.max(zero_ns);
            if row.at_ns < floor_ns {
                return Err(TraceError::OutOfOrder {
                    file: self.reader.name().to_owned(),
                    line: row.line,
                    earlier_s: Nanos(floor_ns.abs_diff(row.at_ns)).to_string(),
                    why: self.why_not_sorted,
                });
            }
            self.latest_ns = row.at_ns;
            row.request.at = trace_time(row.at_ns, zero_ns);
            return Ok(Some(row.request));
        }
        if self.tally.rows_read == 0 {
            let file = self.reader.name().to_owned();
            return Err(TraceError::nothing_read(file, self.reader.skipped()));
        }
        Ok(None)
    }
}

impl<R> Streamed<R> {
    fn share_tally(&self) {
        if let Ok(mut shared) = self.shared.lock() {
            *shared = self.tally;
        }
    }
}

impl<R: Read> Iterator for Streamed<R> {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let item = self.next_kept().transpose();
        self.ended = !matches!(item, Some(Ok(_)));
        if self.ended {
            self.share_tally();
        }
        item
    }
}

impl<R> Drop for Streamed<R> {
    /// A pass may be left early (`--limit`); what it did still counts.
    fn drop(&mut self) {
        if !self.ended {
            self.share_tally();
        }
    }
}

/// Rows by index; ends after the first error.
pub(super) struct Indexed {
    pub(super) reader: RowReader<File>,
    pub(super) index: Arc<Vec<Entry>>,
    pub(super) next: usize,
    pub(super) failed: Failed,
    pub(super) zero_ns: i64,
}

impl Indexed {
    fn fetch(&mut self, entry: Entry) -> Result<Request, TraceError> {
        // Every row here was read before, so whatever is wrong now was written since.
        let row = match self.reader.row_at(entry.offset) {
            Ok(row) => row.filter(|row| row.at_ns == entry.at_ns),
            Err(TraceError::Row { .. } | TraceError::Torn { .. }) => None,
            Err(other) => return Err(other),
        };
        let mut row =
            row.ok_or_else(|| TraceError::Changed { file: self.reader.name().to_owned() })?;
        // Counted in the validating pass; here only its changes to the row are wanted.
        Tally::default().admit(&mut row, self.failed);
        row.request.row = entry.row;
        row.request.at = trace_time(row.at_ns, self.zero_ns);
        Ok(row.request)
    }
}

impl Iterator for Indexed {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = *self.index.get(self.next)?;
        let item = self.fetch(entry);
        self.next = if item.is_ok() { self.next + 1 } else { self.index.len() };
        Some(item)
    }
}

/// All kept rows at once, sorted. The caller has checked that they fit.
pub(super) fn sort_in_memory<R: Read>(
    mut reader: RowReader<R>,
    failed: Failed,
    zero_ns: i64,
) -> Result<Vec<Request>, TraceError> {
    let mut tally = Tally::default();
    let mut requests = Vec::new();
    while let Some(mut row) = reader.next_row()? {
        if tally.admit(&mut row, failed) {
            row.request.at = trace_time(row.at_ns, zero_ns);
            requests.push(row.request);
        }
    }
    // Stable: rows of equal time keep the order of the file.
    requests.sort_by_key(|request| request.at);
    Ok(requests)
}
