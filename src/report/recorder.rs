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
use crate::metrics::{Interval, Metrics, Summary, Window};
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

/// The metrics of a run and, where it has a folder, its growing files.
#[derive(Debug)]
pub struct Recorder {
    files: Option<Files>,
    metrics: Metrics,
    timeline: Timeline,
    seconds: Vec<SecondCount>,
    warmup: Nanos,
    pace: ReaderPace,
    lines_written: Nanos,
    times_written: Nanos,
}

/// The files.
#[derive(Debug)]
struct Files {
    path: PathBuf,
    rows: RowWriter<WholeLines>,
    waiting: u32,
    rows_written: Nanos,
    intervals: LineFile,
    timeline: LineFile,
    chunks: Option<LineFile>,
    /// Nanoseconds since 1970 at `t0`.
    t0_utc_ns: Option<i128>,
}

/// What a second of the timeline counts of what went to and fro.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SecondCount {
    /// Requests sent.
    pub sent: u64,
    /// Completion tokens that arrived.
    pub output_tok: u64,
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
    /// The seconds of the run, in order.
    pub seconds: Vec<SecondCount>,
    /// What a reader of the files should know.
    pub notices: Vec<String>,
}

impl Files {
    fn create(
        folder: &Folder,
        warmup: Nanos,
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
            waiting: 0,
            rows_written: Nanos::ZERO,
            intervals: intervals_csv::create(folder.file(INTERVALS), warmup)?,
            timeline: LineFile::create(folder.file(TIMELINE), TIMELINE_COLUMNS)?,
            chunks: chunks.transpose()?,
            t0_utc_ns: None,
        })
    }

    fn record(&mut self, row: &Row, record: &StreamRecord) -> Result<(), RecorderError> {
        if self.waiting >= ROWS_WAITING_LIMIT {
            return Err(RecorderError::TooManyWait { path: self.path.clone(), row: row.row });
        }
        self.rows.write(row).map_err(|error| self.error(error))?;
        self.waiting += 1;
        self.chunks.as_mut().map_or(Ok(()), |chunks| write_chunks(chunks, row, record))
    }

    fn flush_rows(&mut self) -> Result<(), RecorderError> {
        if self.waiting == 0 {
            return Ok(());
        }
        self.rows.flush().map_err(|source| self.error(source))?;
        self.waiting = 0;
        Ok(())
    }

    /// Rows go first, so that no other file knows of one that is not there; a file that fails keeps no
    /// other from being written.
    fn flush(&mut self, pieces: Vec<Interval>) -> Result<(), RecorderError> {
        let rows = self.flush_rows();
        let pieces =
            pieces.into_iter().try_for_each(|piece| write_interval(&mut self.intervals, piece));
        rows.and(pieces)
            .and(self.intervals.flush())
            .and(self.timeline.flush())
            .and(self.chunks.as_mut().map_or(Ok(()), LineFile::flush))
    }

    fn error(&self, source: std::io::Error) -> RecorderError {
        RecorderError::Write { path: self.path.clone(), source }
    }
}

impl Recorder {
    /// Creates the files with their headers; refuses any that exists. Without a folder there are only
    /// the figures. One line per token event goes to `chunks.csv` where that is asked for. With
    /// `attempts`, rows tell how often they were sent.
    pub fn create(
        folder: Option<&Folder>,
        window: Window,
        chunks: bool,
        attempts: bool,
    ) -> Result<Self, RecorderError> {
        let files = folder.map(|folder| Files::create(folder, window.warmup, chunks, attempts));
        Ok(Self {
            files: files.transpose()?,
            metrics: Metrics::new(window),
            timeline: Timeline::default(),
            seconds: Vec::new(),
            warmup: window.warmup,
            pace: ReaderPace::default(),
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
        if let Some(files) = &mut self.files {
            files.t0_utc_ns = Some(t0_utc_ns);
        }
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
        let Some(files) = &mut self.files else { return Ok(()) };
        files.record(&row, &record)?;
        if files.waiting >= ROWS_WAITING { self.flush() } else { Ok(()) }
    }

    /// Every request that was due before this has been recorded: seconds before it are final.
    pub fn settled(&mut self, before: Nanos) -> Result<(), RecorderError> {
        let seconds = self.timeline.take_final(before);
        self.write_seconds(&seconds)
    }

    fn write_seconds(&mut self, seconds: &[Second]) -> Result<(), RecorderError> {
        self.seconds.extend(
            seconds
                .iter()
                .map(|second| SecondCount { sent: second.sent, output_tok: second.output_tok }),
        );
        let Some(files) = &mut self.files else { return Ok(()) };
        let (file, t0) = (&mut files.timeline, files.t0_utc_ns);
        seconds.iter().try_for_each(|second| write_second(file, t0, second))
    }

    /// Hands to the operating system what has waited long enough; `now` is any time that does not run
    /// backwards.
    pub fn flush_if_due(&mut self, now: Nanos) -> Result<(), RecorderError> {
        if let Some(files) = &mut self.files {
            if now.since(files.rows_written) < ROWS_EVERY {
                return Ok(());
            }
            files.rows_written = now;
            RecorderError::check_is_there(&files.path)?;
        }
        if now.since(self.lines_written) < LINES_EVERY {
            return self.files.as_mut().map_or(Ok(()), Files::flush_rows);
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

    fn flush_with(&mut self, times: bool) -> Result<(), RecorderError> {
        let pieces = self.metrics.take_intervals(times);
        self.files.as_mut().map_or(Ok(()), |files| files.flush(pieces))
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
        let names = |files: &Files| {
            let chunks = files.chunks.as_ref().map(|_| CHUNKS);
            [REQUESTS, INTERVALS, TIMELINE].into_iter().chain(chunks).map(str::to_owned).collect()
        };
        Recorded {
            files: self.files.as_ref().map(names).unwrap_or_default(),
            summary: self.metrics.finish(),
            written,
            seconds: self.seconds,
            notices: if late > 0 { vec![notice] } else { Vec::new() },
        }
    }
}

#[cfg(test)]
mod tests;
