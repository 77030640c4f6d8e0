//! The recorder: whole rows at every moment, and figures whatever its files do.

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
    let recorder = Recorder::create(Some(&folder), Window::default(), false, false).expect("files");
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
        assert!(seen <= row + 1 && row + 1 - seen <= 67, "{seen} of {}", row + 1);
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
    let (_, mut recorder) = recorder_in(folder.path());
    let files = recorder.files.as_mut().expect("files");
    files.path = "requests.csv".into();
    files.rows = RowWriter::new(WholeLines::new(full), false).expect("memory");
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
        Recorder::create(Some(&folder), Window::default(), false, false).expect_err("it exists");
    assert!(error.to_string().contains("requests.csv"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).expect("the file"), "precious");
}
