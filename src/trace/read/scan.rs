//! The validating pass: one look at every row before anything is sent.
//!
//! Finds the first bad row, counts, finds the trace's zero and whether rows must be sorted. Memory stays
//! flat: only an unsorted file costs an index, built by a second look.

use std::io::Read;
use std::sync::Arc;

use super::documents::Whole;
use super::error::TraceError;
use super::facts::{Facts, Step, TraceClock};
use super::formats::Format;
use super::held::Blocks;
use super::options::Failed;
use super::order::{Entry, INDEX_LIMIT_BYTES, Order};
use super::reader::ReadRow;
use super::row::{ROWS_LIMIT_BYTES, Row, memory_bytes, trace_time};
use super::rows::{RowReader, Tally};
use super::source::Packing;
use crate::trace::{OutputSum, Request};

/// Facts, and what later passes need.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) facts: Facts,
    pub(super) zero_ns: i64,
    pub(super) order: Order,
    pub(super) first_raised_line: u64,
    pub(super) ignored: Vec<String>,
    pub(super) remarks: Vec<String>,
}

/// Sums over one pass.
#[derive(Default)]
struct Sums {
    tally: Tally,
    kept: u64,
    moved: u64,
    input_tok: u64,
    output: OutputSum,
    /// Different times, as long as rows are in order.
    distinct: u64,
    step: Step,
    memory_bytes: u64,
    /// Earliest row of the file, dropped or not.
    earliest_ns: i64,
    first_ns: i64,
    latest_ns: i64,
}

impl Sums {
    fn new() -> Self {
        let (earliest_ns, first_ns, latest_ns) = (i64::MAX, i64::MAX, i64::MIN);
        Self { earliest_ns, first_ns, latest_ns, ..Self::default() }
    }

    /// Counts a row, and gives it back where it is kept.
    fn add(&mut self, mut row: Row, failed: Failed) -> Option<Row> {
        self.earliest_ns = self.earliest_ns.min(row.at_ns);
        if !self.tally.admit(&mut row, failed) {
            return None;
        }
        self.moved += u64::from(row.at_ns < self.latest_ns);
        self.distinct += u64::from(self.kept == 0 || row.at_ns > self.latest_ns);
        self.kept += 1;
        self.input_tok += u64::from(row.request.input_tok);
        self.output.add(row.request.output_tok);
        self.step.add(row.at_ns);
        self.memory_bytes += memory_bytes(&row);
        self.first_ns = self.first_ns.min(row.at_ns);
        self.latest_ns = self.latest_ns.max(row.at_ns);
        Some(row)
    }

    /// Refuses a trace that has nothing to replay.
    fn check_kept(&self, skipped: u64, file: impl FnOnce() -> String) -> Result<(), TraceError> {
        let rows = self.tally.rows_read;
        if rows == 0 {
            return Err(TraceError::nothing_read(file(), skipped));
        }
        if self.kept == 0 {
            return Err(TraceError::NothingKept { file: file(), rows });
        }
        Ok(())
    }

    /// Formats with an origin of their own keep it; the others count from wherever their clocks began.
    fn zero_ns(&self, format: Format) -> i64 {
        if format.definition().has_own_zero { 0 } else { self.earliest_ns }
    }

    fn facts(&self, zero_ns: i64, skipped: u64, clock: TraceClock) -> Facts {
        Facts {
            rows_read: self.tally.rows_read + skipped,
            rows_skipped: skipped,
            rows_kept: self.kept,
            rows_failed: self.tally.rows_failed,
            rows_raised: self.tally.rows_raised,
            rows_moved: self.moved,
            first: trace_time(self.first_ns, zero_ns),
            last: trace_time(self.latest_ns, zero_ns),
            input_tok: self.input_tok,
            output: self.output,
            distinct_times: self.distinct,
            time_step: self.step.span(),
            clock,
        }
    }
}

/// Reads the file to its end. `open` starts a pass; `on_row` is called after every row.
pub(super) fn scan<R: Read>(
    open: &dyn Fn() -> Result<RowReader<R>, TraceError>,
    format: Format,
    failed: Failed,
    packing: Packing,
    on_row: &mut dyn FnMut(),
) -> Result<Scan, TraceError> {
    let mut reader = open()?;
    let mut sums = Sums::new();
    while let Some(row) = reader.next_row()? {
        sums.add(row, failed);
        on_row();
    }
    let (skipped, about) = (reader.skipped(), reader.format());
    let (ignored, remarks, needs_earlier_rows) =
        (about.ignored(), about.remarks(), about.needs_earlier_rows());
    let clock = clock_of(about);
    let file = || reader.name().to_owned();
    sums.check_kept(skipped, file)?;
    let mut order = Order::AsWritten;
    if sums.moved > 0 {
        let seekable = packing == Packing::Plain && !needs_earlier_rows;
        check_memory(&sums, packing, needs_earlier_rows, file())?;
        let index = build_index(open()?, failed, sums.kept, on_row)?;
        sums.distinct = index.chunk_by(|a, b| a.at_ns == b.at_ns).count() as u64;
        order = if seekable { Order::Index(Arc::new(index)) } else { Order::InMemory };
    }
    let zero_ns = sums.zero_ns(format);
    let facts = sums.facts(zero_ns, skipped, clock);
    let first_raised_line = sums.tally.first_raised_line;
    Ok(Scan { facts, zero_ns, order, first_raised_line, ignored, remarks })
}

/// Whose clock a reader's rows are timed by.
pub(super) fn clock_of(format: &dyn ReadRow) -> TraceClock {
    match (format.has_times(), format.has_common_clock()) {
        (false, _) => TraceClock::Absent,
        (true, false) => TraceClock::PerSession,
        (true, true) => TraceClock::Common,
    }
}

/// The facts of rows that are all at hand, which are sorted and put on trace time.
pub(super) fn settle(
    whole: Whole,
    format: Format,
    failed: Failed,
    name: &str,
) -> Result<(Scan, Vec<(Request, Blocks)>), TraceError> {
    let Whole { held, remarks, has_common_clock } = whole;
    let mut sums = Sums::new();
    let mut rows = Vec::with_capacity(held.rows.len());
    for (row, blocks) in held.rows {
        if let Some(row) = sums.add(row, failed) {
            rows.push((row.at_ns, row.request, blocks));
        }
    }
    sums.check_kept(held.skipped, || name.to_owned())?;
    // Stable: rows of equal time keep the order of the file.
    rows.sort_by_key(|(at_ns, _, _)| *at_ns);
    sums.distinct = rows.chunk_by(|a, b| a.0 == b.0).count() as u64;
    let zero_ns = sums.zero_ns(format);
    let on_trace_time =
        |(at_ns, request, blocks)| (Request { at: trace_time(at_ns, zero_ns), ..request }, blocks);
    let requests = rows.into_iter().map(on_trace_time).collect();
    let clock = if has_common_clock { TraceClock::Common } else { TraceClock::PerSession };
    if clock == TraceClock::PerSession {
        // Sessions stand one after the other in their files; that says nothing of their order.
        sums.moved = 0;
    }
    let facts = sums.facts(zero_ns, held.skipped, clock);
    let first_raised_line = sums.tally.first_raised_line;
    let ignored = Vec::new();
    let order = Order::AsWritten;
    Ok((Scan { facts, zero_ns, order, first_raised_line, ignored, remarks }, requests))
}

/// Refuses to sort what would not fit, before anything is sent.
fn check_memory(
    sums: &Sums,
    packing: Packing,
    needs_earlier_rows: bool,
    file: String,
) -> Result<(), TraceError> {
    let index_bytes = sums.kept * size_of::<Entry>() as u64;
    let (what, need_bytes, limit_bytes, remedy) = match packing {
        _ if needs_earlier_rows => (
            "rows that lean on those before them",
            sums.memory_bytes + index_bytes,
            ROWS_LIMIT_BYTES,
            "cut the file into parts",
        ),
        Packing::Plain => (
            "an index of its rows",
            index_bytes,
            INDEX_LIMIT_BYTES,
            "sort the file by time, or cut it into parts",
        ),
        Packing::Gzip | Packing::Zstd => (
            "the rows of a compressed file",
            sums.memory_bytes + index_bytes,
            ROWS_LIMIT_BYTES,
            "unpack the file, which can then be sorted in little memory",
        ),
    };
    if need_bytes <= limit_bytes {
        return Ok(());
    }
    let (need_mib, limit_mib) = (need_bytes >> 20, limit_bytes >> 20);
    Err(TraceError::SortMemory { file, moved: sums.moved, what, need_mib, limit_mib, remedy })
}

/// Times and places of all kept rows, in time order, rows of equal time in the order of the file.
fn build_index<R: Read>(
    mut reader: RowReader<R>,
    failed: Failed,
    kept: u64,
    on_row: &mut dyn FnMut(),
) -> Result<Vec<Entry>, TraceError> {
    let mut tally = Tally::default();
    let mut index = Vec::with_capacity(usize::try_from(kept).unwrap_or(0));
    while let Some(mut row) = reader.next_row()? {
        if tally.admit(&mut row, failed) {
            index.push(Entry { at_ns: row.at_ns, row: row.request.row, offset: row.offset });
        }
        on_row();
    }
    if index.len() as u64 != kept {
        return Err(TraceError::Changed { file: reader.name().to_owned() });
    }
    // In place; rows are unique, so this is the stable order.
    index.sort_unstable();
    Ok(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_sorted_within_the_limit_says_what_to_do() {
        let check = |packing, kept, memory_bytes, parts: &[&str]| {
            let sums = Sums { kept, memory_bytes, moved: 7, ..Sums::new() };
            let outcome = check_memory(&sums, packing, false, "f.gz".to_owned());
            let Err(error) = outcome else { return assert!(parts.is_empty()) };
            let message = error.to_string();
            assert!(
                !parts.is_empty() && parts.iter().all(|part| message.contains(part)),
                "{message}"
            );
        };
        check(Packing::Plain, 80_000_000, 1 << 40, &[]);
        check(
            Packing::Plain,
            100_000_000,
            0,
            &["f.gz: 7 rows", "limit of 2048 MiB", "sort the file"],
        );
        check(Packing::Gzip, 1_000, 1 << 29, &[]);
        check(Packing::Zstd, 1_000, 1 << 31, &["about 2048 MiB", "limit of 1024 MiB", "unpack"]);
    }
}
