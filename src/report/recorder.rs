//! Takes every finished request once: its row goes to `requests.csv`, its values to the metrics, and
//! what both leave out to `intervals.csv`, `timeline.csv` and, where asked for, `chunks.csv`.
//!
//! The caller owns the time; the files are flushed by it, between rows. Deliberately absent: a thread,
//! a queue, and any reason to lose what was measured when a file fails.

use std::fs::File;
use std::path::PathBuf;

use super::chunks_csv::ChunksFile;
use super::folder::Folder;
use super::intervals_csv::IntervalsFile;
use super::timeline_csv::TimelineFile;
use super::whole_lines::WholeLines;
use crate::metrics::timeline::{HELD_LIMIT, ServerSecond, Timeline};
use crate::metrics::{Metrics, Summary, Window};
use crate::record::csv::RowWriter;
use crate::record::{ReaderPace, Row, StreamRecord};
use crate::units::Nanos;

pub(super) const REQUESTS: &str = "requests.csv";
pub(super) const INTERVALS: &str = "intervals.csv";
const TIMELINE: &str = "timeline.csv";
const CHUNKS: &str = "chunks.csv";

/// Rows are on disk no later than this after they ended.
const FLUSH_EVERY: Nanos = Nanos::from_secs(1);
/// Histograms of token gaps are written this often, and at the end: over less time they are mostly
/// buckets of one, and a file of them is larger than the rows.
const TIMES_EVERY: Nanos = Nanos::from_secs(10);
/// Nor do more rows than this wait in memory: about 1 MB.
const ROWS_WAITING: u32 = 4096;
/// While the file takes none, this many wait for it to recover (about 16 MB); later ones are not kept.
const ROWS_WAITING_LIMIT: u32 = 65_536;

/// Writing a file of the run failed.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// The file cannot be made.
    #[error("failed to create {}: {source}", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file has taken no rows for too long.
    #[error(
        "{} takes no rows and {ROWS_WAITING_LIMIT} wait for it: row {row} and later ones are not kept",
        path.display()
    )]
    TooManyWait {
        /// The file.
        path: PathBuf,
        /// The row that was not kept.
        row: u64,
    },
    /// Another file has taken nothing for too long.
    #[error(
        "{} takes no lines and {} MB wait for it: later ones are not kept",
        path.display(),
        limit_bytes >> 20
    )]
    TooMuchWaits {
        /// The file.
        path: PathBuf,
        /// What may wait.
        limit_bytes: usize,
    },
    /// The file was there and is no more: nobody would find what is written to it.
    #[error("{} is gone: was the folder removed while the run went on?", path.display())]
    Gone {
        /// The file.
        path: PathBuf,
    },
    /// Rows cannot be written now. Those written before are whole, and the next flush tries again.
    #[error("failed to write to {}: {source}\nhint: what is in the folder is whole, and `underfire report` reads it", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// The growing files of a run, and its metrics.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    rows: RowWriter<WholeLines>,
    intervals: IntervalsFile,
    timeline_file: TimelineFile,
    chunks: Option<ChunksFile>,
    metrics: Metrics,
    timeline: Timeline,
    warmup: Nanos,
    pace: ReaderPace,
    waiting: u32,
    flushed: Nanos,
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
        let mut rows =
            RowWriter::new(WholeLines::new(file), attempts).map_err(|e| cannot(e.into()))?;
        rows.flush().map_err(cannot)?;
        let chunks = chunks.then(|| ChunksFile::create(folder.file(CHUNKS))).transpose()?;
        Ok(Self {
            path,
            rows,
            intervals: IntervalsFile::create(folder.file(INTERVALS), window.warmup)?,
            timeline_file: TimelineFile::create(folder.file(TIMELINE))?,
            chunks,
            metrics: Metrics::new(window),
            timeline: Timeline::default(),
            warmup: window.warmup,
            pace: ReaderPace::default(),
            waiting: 0,
            flushed: Nanos::ZERO,
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
        self.timeline_file.starts(t0_utc_ns);
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
        self.rows.write(&row).map_err(|error| self.error(error.into()))?;
        self.waiting += 1;
        if let Some(chunks) = &mut self.chunks {
            chunks.write(&row, &record)?;
        }
        if self.waiting >= ROWS_WAITING {
            self.flush()?;
        }
        Ok(())
    }

    /// Every request that was due before this has been recorded: seconds before it are final.
    pub fn settled(&mut self, before: Nanos) -> Result<(), RecorderError> {
        let seconds = self.timeline.take_final(before);
        seconds.iter().try_for_each(|second| self.timeline_file.write(second))
    }

    /// Hands the lines to the operating system when a second has passed since the last time; `now` is
    /// any time that does not run backwards.
    pub fn flush_if_due(&mut self, now: Nanos) -> Result<(), RecorderError> {
        if now.since(self.flushed) < FLUSH_EVERY {
            return Ok(());
        }
        self.flushed = now;
        if !self.path.exists() {
            return Err(RecorderError::Gone { path: self.path.clone() });
        }
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

    /// Rows go first, so that no other file knows of one
    /// that is not there; a file that fails keeps no other from being written.
    fn flush_with(&mut self, times: bool) -> Result<(), RecorderError> {
        let rows = self.flush_rows();
        let pieces = self.metrics.take_intervals(times);
        let pieces = pieces.iter().try_for_each(|piece| self.intervals.write(piece));
        rows.and(pieces)
            .and(self.intervals.flush())
            .and(self.timeline_file.flush())
            .and(self.chunks.as_mut().map_or(Ok(()), ChunksFile::flush))
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
        let timeline = seconds.iter().try_for_each(|second| self.timeline_file.write(second));
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
mod tests {
    use super::*;
    use crate::record::csv::read_rows;
    use std::path::Path;

    fn due_at(row: u64) -> StreamRecord {
        StreamRecord {
            row,
            due: Nanos::from_millis(row),
            error: Some("a, \"b\"\nc".to_owned()),
            ..StreamRecord::default()
        }
    }

    fn recorder_in(folder: &Path) -> (PathBuf, Recorder) {
        let folder = Folder::at(folder);
        let recorder = Recorder::create(&folder, Window::default(), false, false).expect("files");
        (folder.file(REQUESTS), recorder)
    }

    fn rows_in(path: &Path) -> usize {
        let file = File::open(path).expect("the file");
        let rows: Result<Vec<Row>, _> = read_rows(file).expect("a header").collect();
        rows.expect("whole rows").len()
    }

    #[test]
    fn rows_are_whole_at_every_moment() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, mut recorder) = recorder_in(folder.path());
        assert_eq!(rows_in(&path), 0, "the header is there at once");
        for row in 0..1_000 {
            recorder.record(due_at(row)).expect("space");
            recorder.flush_if_due(Nanos::from_millis(3 * row)).expect("space");
            let seen = rows_in(&path) as u64;
            assert!(seen <= row + 1 && row + 1 - seen <= 334, "{seen} of {}", row + 1);
        }
        let Recorded { summary, written, .. } = recorder.finish();
        written.expect("space");
        assert_eq!((rows_in(&path), summary.all.rows()), (1_000, 1_000));
    }

    #[test]
    fn many_rows_do_not_wait() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, mut recorder) = recorder_in(folder.path());
        for row in 0..=u64::from(ROWS_WAITING) {
            recorder.record(due_at(row)).expect("space");
        }
        assert_eq!(rows_in(&path), ROWS_WAITING as usize);
    }

    #[test]
    fn a_failing_file_loses_no_figures() {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a device");
        let folder = tempfile::tempdir().expect("a folder");
        let (_, whole) = recorder_in(folder.path());
        let mut recorder = Recorder {
            path: "requests.csv".into(),
            rows: RowWriter::new(WholeLines::new(full), false).expect("memory"),
            ..whole
        };
        recorder.record(due_at(1)).expect("it waits");
        let error = recorder.flush().expect_err("full").to_string();
        assert!(error.starts_with("failed to write to requests.csv: "), "{error}");
        recorder.record(due_at(2)).expect("it waits");
        for row in 3..=u64::from(ROWS_WAITING_LIMIT) {
            let _ = recorder.record(due_at(row));
        }
        let error = recorder.record(due_at(99_999)).expect_err("too many").to_string();
        assert!(error.contains("row 99999 and later ones are not kept"), "{error}");
        let Recorded { summary, written, .. } = recorder.finish();
        assert!(written.is_err());
        assert_eq!(summary.all.rows(), u64::from(ROWS_WAITING_LIMIT) + 1);
    }

    #[test]
    fn an_existing_file_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("requests.csv");
        std::fs::write(&path, "precious").expect("a file");
        let folder = Folder::at(folder.path());
        let error =
            Recorder::create(&folder, Window::default(), false, false).expect_err("it exists");
        assert!(error.to_string().contains("requests.csv"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).expect("the file"), "precious");
    }
}
