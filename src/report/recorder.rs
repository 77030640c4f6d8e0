//! Takes every finished request once: its row goes to `requests.csv`, its values to the metrics.
//!
//! The caller owns the time; the file is flushed by it, between rows. Deliberately absent: a thread,
//! a queue, and any reason to lose what was measured when the file fails.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::whole_lines::WholeLines;
use crate::metrics::{Metrics, Summary, Window};
use crate::record::csv::RowWriter;
use crate::record::{ReaderPace, Row, StreamRecord};
use crate::units::Nanos;

/// Rows are on disk no later than this after they ended.
const FLUSH_EVERY: Nanos = Nanos::from_secs(1);
/// Nor do more rows than this wait in memory: about 1 MB.
const ROWS_WAITING: u32 = 4096;
/// While the file takes none, this many wait for it to recover (about 16 MB); later ones are not kept.
const ROWS_WAITING_LIMIT: u32 = 65_536;

/// Writing `requests.csv` failed.
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
    /// Rows cannot be written now. Those written before are whole, and the next flush tries again.
    #[error("failed to write rows to {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// `requests.csv` and the metrics of a run.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    rows: RowWriter<WholeLines>,
    metrics: Metrics,
    warmup: Nanos,
    pace: ReaderPace,
    waiting: u32,
    flushed: Nanos,
}

impl Recorder {
    /// Creates the file with its header; refuses one that exists.
    pub fn create(path: &Path, window: Window) -> Result<Self, RecorderError> {
        let cannot = |source| RecorderError::Create { path: path.to_owned(), source };
        let file = File::create_new(path).map_err(cannot)?;
        let mut rows = RowWriter::new(WholeLines::new(file)).map_err(|e| cannot(e.into()))?;
        rows.flush().map_err(cannot)?;
        Ok(Self {
            path: path.to_owned(),
            rows,
            metrics: Metrics::new(window),
            warmup: window.warmup,
            pace: ReaderPace::default(),
            waiting: 0,
            flushed: Nanos::ZERO,
        })
    }

    /// The reader whose waits the rows tell of.
    #[must_use]
    pub fn with_reader_pace(self, pace: ReaderPace) -> Self {
        Self { pace, ..self }
    }

    /// Takes a finished request. Its values count even when its row cannot be written.
    #[expect(clippy::needless_pass_by_value, reason = "a record is handed over once")]
    pub fn record(&mut self, record: StreamRecord) -> Result<(), RecorderError> {
        let row = Row::paced(&record, self.warmup, self.pace);
        self.metrics.add(&row, &record);
        if self.waiting >= ROWS_WAITING_LIMIT {
            return Err(RecorderError::TooManyWait { path: self.path.clone(), row: row.row });
        }
        self.rows.write(&row).map_err(|error| self.error(error.into()))?;
        self.waiting += 1;
        if self.waiting >= ROWS_WAITING {
            self.flush()?;
        }
        Ok(())
    }

    /// Hands the rows to the operating system when a second has passed since the last time; `now` is
    /// any time that does not run backwards.
    pub fn flush_if_due(&mut self, now: Nanos) -> Result<(), RecorderError> {
        if now.since(self.flushed) < FLUSH_EVERY {
            return Ok(());
        }
        self.flushed = now;
        self.flush()
    }

    /// Hands all rows to the operating system now.
    pub fn flush(&mut self) -> Result<(), RecorderError> {
        if self.waiting == 0 {
            return Ok(());
        }
        self.rows.flush().map_err(|source| self.error(source))?;
        self.waiting = 0;
        Ok(())
    }

    /// Ends the file. The summary stands whether or not the last rows could be written.
    #[must_use = "the figures of the run"]
    pub fn finish(mut self) -> (Summary, Result<(), RecorderError>) {
        let written = self.flush();
        (self.metrics.finish(), written)
    }

    fn error(&self, source: std::io::Error) -> RecorderError {
        RecorderError::Write { path: self.path.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::csv::read_rows;

    fn due_at(row: u64) -> StreamRecord {
        StreamRecord {
            row,
            due: Nanos::from_millis(row),
            error: Some("a, \"b\"\nc".to_owned()),
            ..StreamRecord::default()
        }
    }

    fn rows_in(path: &Path) -> usize {
        let file = File::open(path).expect("the file");
        let rows: Result<Vec<Row>, _> = read_rows(file).expect("a header").collect();
        rows.expect("whole rows").len()
    }

    #[test]
    fn rows_are_whole_at_every_moment() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("requests.csv");
        let mut recorder = Recorder::create(&path, Window::default()).expect("a file");
        assert_eq!(rows_in(&path), 0, "the header is there at once");
        for row in 0..1_000 {
            recorder.record(due_at(row)).expect("space");
            recorder.flush_if_due(Nanos::from_millis(3 * row)).expect("space");
            let seen = rows_in(&path) as u64;
            assert!(seen <= row + 1 && row + 1 - seen <= 334, "{seen} of {}", row + 1);
        }
        let (summary, written) = recorder.finish();
        written.expect("space");
        assert_eq!((rows_in(&path), summary.all.rows()), (1_000, 1_000));
    }

    #[test]
    fn many_rows_do_not_wait() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("requests.csv");
        let mut recorder = Recorder::create(&path, Window::default()).expect("a file");
        for row in 0..=u64::from(ROWS_WAITING) {
            recorder.record(due_at(row)).expect("space");
        }
        assert_eq!(rows_in(&path), ROWS_WAITING as usize);
    }

    #[test]
    fn a_failing_file_loses_no_figures() {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a device");
        let mut recorder = Recorder {
            path: "requests.csv".into(),
            rows: RowWriter::new(WholeLines::new(full)).expect("memory"),
            metrics: Metrics::new(Window::default()),
            warmup: Nanos::ZERO,
            pace: ReaderPace::default(),
            waiting: 0,
            flushed: Nanos::ZERO,
        };
        recorder.record(due_at(1)).expect("it waits");
        let error = recorder.flush_if_due(Nanos::from_secs(1)).expect_err("full").to_string();
        assert!(error.starts_with("failed to write rows to requests.csv: "), "{error}");
        recorder.record(due_at(2)).expect("it waits");
        for row in 3..=u64::from(ROWS_WAITING_LIMIT) {
            let _ = recorder.record(due_at(row));
        }
        let error = recorder.record(due_at(99_999)).expect_err("too many").to_string();
        assert!(error.contains("row 99999 and later ones are not kept"), "{error}");
        let (summary, written) = recorder.finish();
        assert!(written.is_err());
        assert_eq!(summary.all.rows(), u64::from(ROWS_WAITING_LIMIT) + 1);
    }

    #[test]
    fn an_existing_file_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("requests.csv");
        std::fs::write(&path, "precious").expect("a file");
        let error = Recorder::create(&path, Window::default()).expect_err("it exists");
        assert!(error.to_string().contains("requests.csv"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).expect("the file"), "precious");
    }
}
