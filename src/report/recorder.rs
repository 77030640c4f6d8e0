//! Takes every finished request once: its row goes to `requests.csv`, its values to the metrics, and
//! what both leave out to `intervals.csv`, `timeline.csv` and, where asked for, `chunks.csv`.
//!
//! The caller owns the time; the files are flushed by it, between rows. Deliberately absent: a thread,
//! a queue, and any reason to lose what was measured when a file fails.

use std::fs::File;
use std::path::PathBuf;

use super::chunks_csv::{ChunkRow, write_chunks};
use super::folder::Folder;
use super::intervals_csv::{self, write_interval};
use super::line_file::{LineFile, ROWS_WAITING_LIMIT, RecorderError};
use super::timeline_csv::{TIMELINE_COLUMNS, write_second};
use super::whole_lines::WholeLines;
use crate::columns::CsvRow;
use crate::metrics::timeline::{HELD_LIMIT, Second, ServerSecond, Timeline};
use crate::metrics::{Metrics, Summary, Window};
use crate::record::csv::RowWriter;
use crate::record::{ReaderPace, Row, StreamRecord};
use crate::units::Nanos;

pub(super) const REQUESTS: &str = "requests.csv";
pub(super) const INTERVALS: &str = "intervals.csv";
const TIMELINE: &str = "timeline.csv";
const CHUNKS: &str = "chunks.csv";

/// Rows are handed to the operating system this often. The caller asks at least every 0.2 s, so they are
/// there half a second after they ended, whatever becomes of this process then.
const ROWS_EVERY: Nanos = Nanos::from_millis(200);
/// The lines of the other files are, but for the histograms: their pieces are of whole seconds.
const LINES_EVERY: Nanos = Nanos::from_secs(1);
/// Histograms of token gaps are written this often, and at the end: over less time they are mostly
/// buckets of one, and a file of them is larger than the rows.
const TIMES_EVERY: Nanos = Nanos::from_secs(10);
/// Nor do more rows than this wait in memory: about 1 MB.
const ROWS_WAITING: u32 = 4096;

/// The growing files of a run, and its metrics.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    rows: RowWriter<WholeLines>,
    intervals: LineFile,
    timeline_file: LineFile,
    chunks: Option<LineFile>,
    metrics: Metrics,
    timeline: Timeline,
    /// Nanoseconds since 1970 at `t0`.
    t0_utc_ns: Option<i128>,
    warmup: Nanos,
    pace: ReaderPace,
    waiting: u32,
    rows_written: Nanos,
    lines_written: Nanos,
    times_written: Nanos,
}

/// What a run came to.
#[derive(Debug)]
#[must_use = "the figures of the run"]
pub struct Recorded {
    /// The figures. They stand whether or not the last lines could be written.
    pub summary: Summary,
    /// Whether every line was.
    pub written: Result<(), RecorderError>,
    /// The files.
    pub files: Vec<String>,
    /// What a reader of the files should know.
    pub notices: Vec<String>,
}

impl Recorder {
    /// Creates the files with their headers; refuses any that exists. One line per token event goes
    /// to `chunks.csv` where that is asked for.
    /// With `attempts`, rows tell how often they were sent.
    pub fn create(
        folder: &Folder,
        window: Window,
        chunks: bool,
        attempts: bool,
    ) -> Result<Self, RecorderError> {
        let path = folder.file(REQUESTS);
        let cannot = |source| RecorderError::Create { path: path.clone(), source };
        let file = File::create_new(&path).map_err(cannot)?;
        let mut rows = RowWriter::new(WholeLines::new(file), attempts).map_err(cannot)?;
        rows.flush().map_err(cannot)?;
        let chunks = chunks.then(|| LineFile::create(folder.file(CHUNKS), ChunkRow::COLUMNS));
        Ok(Self {
            path,
            rows,
            chunks: chunks.transpose()?,
            intervals: intervals_csv::create(folder.file(INTERVALS), window.warmup)?,
            timeline_file: LineFile::create(folder.file(TIMELINE), TIMELINE_COLUMNS)?,
            t0_utc_ns: None,
            metrics: Metrics::new(window),
            timeline: Timeline::default(),
            warmup: window.warmup,
            pace: ReaderPace::default(),
            waiting: 0,
            rows_written: Nanos::ZERO,
            lines_written: Nanos::ZERO,
            times_written: Nanos::ZERO,
        })
    }

    /// The reader whose waits the rows tell of.
    #[must_use]
    pub fn with_reader_pace(self, pace: ReaderPace) -> Self {
        Self { pace, ..self }
    }

    /// Says when `t0` was, in nanoseconds since 1970.
    pub fn starts(&mut self, t0_utc_ns: i128) {
        self.t0_utc_ns = Some(t0_utc_ns);
    }

    /// Notes that this process had used so much processor time at `at`.
    pub fn cpu(&mut self, at: Nanos, used: Nanos) {
        self.timeline.cpu(at, used);
    }

    /// Notes that this process held so many bytes of RAM at `at`.
    pub fn memory(&mut self, at: Nanos, bytes: u64) {
        self.timeline.memory(at, bytes);
    }

    /// Notes what the servers said of a second of the run.
    pub fn server(&mut self, second: u64, said: ServerSecond) {
        self.timeline.server(second, said);
    }

    /// Takes a finished request. Its values count even when its row cannot be written.
    #[expect(clippy::needless_pass_by_value, reason = "a record is handed over once")]
    pub fn record(&mut self, record: StreamRecord) -> Result<(), RecorderError> {
        let row = Row::paced(&record, self.warmup, self.pace);
        self.metrics.add(&row, &record);
        self.timeline.add(&row, &record);
        if self.waiting >= ROWS_WAITING_LIMIT {
            return Err(RecorderError::TooManyWait { path: self.path.clone(), row: row.row });
        }
        self.rows.write(&row).map_err(|source| self.error(source))?;
        self.waiting += 1;
        if let Some(chunks) = &mut self.chunks {
            write_chunks(chunks, &row, &record)?;
        }
        if self.waiting >= ROWS_WAITING {
            self.flush()?;
        }
        Ok(())
    }

    /// Every request that was due before this has been recorded: seconds before it are final.
    pub fn settled(&mut self, before: Nanos) -> Result<(), RecorderError> {
        let seconds = self.timeline.take_final(before);
        self.write_seconds(&seconds)
    }

    fn write_seconds(&mut self, seconds: &[Second]) -> Result<(), RecorderError> {
        let (file, t0) = (&mut self.timeline_file, self.t0_utc_ns);
        seconds.iter().try_for_each(|second| write_second(file, t0, second))
    }

    /// Hands to the operating system what has waited long enough; `now` is any time that does not run
    /// backwards.
    pub fn flush_if_due(&mut self, now: Nanos) -> Result<(), RecorderError> {
        if now.since(self.rows_written) < ROWS_EVERY {
            return Ok(());
        }
        self.rows_written = now;
        RecorderError::check_is_there(&self.path)?;
        if now.since(self.lines_written) < LINES_EVERY {
            return self.flush_rows();
        }
        self.lines_written = now;
        let times = now.since(self.times_written) >= TIMES_EVERY;
        if times {
            self.times_written = now;
        }
        self.flush_with(times)
    }

    /// Hands all lines to the operating system now, but for the histograms of token gaps.
    pub fn flush(&mut self) -> Result<(), RecorderError> {
        self.flush_with(false)
    }

    /// Rows go first, so that no other file knows of one that is not there; a file that fails keeps no other from being written.
    fn flush_with(&mut self, times: bool) -> Result<(), RecorderError> {
        let rows = self.flush_rows();
        let pieces = self.metrics.take_intervals(times);
        let pieces =
            pieces.into_iter().try_for_each(|piece| write_interval(&mut self.intervals, piece));
        rows.and(pieces)
            .and(self.intervals.flush())
            .and(self.timeline_file.flush())
            .and(self.chunks.as_mut().map_or(Ok(()), LineFile::flush))
    }

    fn flush_rows(&mut self) -> Result<(), RecorderError> {
        if self.waiting == 0 {
            return Ok(());
        }
        self.rows.flush().map_err(|source| self.error(source))?;
        self.waiting = 0;
        Ok(())
    }

    /// Ends the files.
    pub fn finish(mut self) -> Recorded {
        self.metrics.close();
        let seconds = self.timeline.finish();
        let timeline = self.write_seconds(&seconds);
        let written = self.flush_with(true).and(timeline);
        let late = self.timeline.late();
        let notice = format!(
            "timeline.csv lacks {late} events of its seconds: only {HELD_LIMIT} seconds wait for \
             their requests to end"
        );
        let files = [Some(REQUESTS), Some(INTERVALS), Some(TIMELINE), self.chunks.map(|_| CHUNKS)];
        Recorded {
            summary: self.metrics.finish(),
            written,
            files: files.into_iter().flatten().map(str::to_owned).collect(),
            notices: if late > 0 { vec![notice] } else { Vec::new() },
        }
    }

    fn error(&self, source: std::io::Error) -> RecorderError {
        RecorderError::Write { path: self.path.clone(), source }
    }
}

#[cfg(test)]
mod tests;
