//! Runs the program, and reads what it wrote.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;
use underfire::record::Row;
use underfire::record::csv::read_rows;

/// A folder of its own, with the files a test needs.
pub(crate) struct Place {
    folder: TempDir,
}

/// What the program said and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: TempDir::new().expect("a temporary folder") }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> &Self {
        std::fs::write(self.path(name), text).expect("a writable folder");
        self
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_underfire"));
        command.current_dir(self.folder.path()).args(arguments).stdin(Stdio::null());
        command
    }

    /// Runs to the end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Said {
        Said::of(&self.command(arguments).output().expect("the program starts"))
    }

    /// The rows of a run, by row number.
    pub(crate) fn rows(&self, run: &str) -> Vec<Row> {
        rows(&self.path(run))
    }
}

impl Said {
    pub(crate) fn of(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Asserts the exit code, showing everything where it is another one.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        assert!(!self.stderr.contains("panicked"), "{self:#?}");
        self
    }
}

pub(crate) fn rows(run: &Path) -> Vec<Row> {
    let file = File::open(run.join("requests.csv")).expect("requests.csv");
    let rows: Result<Vec<Row>, _> = read_rows(file).expect("a header").collect();
    let mut rows = rows.expect("whole rows");
    rows.sort_by_key(|row| row.row);
    rows
}

/// A native trace of `count` rows, `gap_ms` apart, each 10 tokens in and 4 out.
pub(crate) fn small_trace(count: u32, gap_ms: u32) -> String {
    use std::fmt::Write;
    let mut text = "at_s,input_tok,output_tok\n".to_owned();
    for row in 0..count {
        let at = row * gap_ms;
        writeln!(text, "{}.{:03},10,4", at / 1000, at % 1000).expect("memory");
    }
    text
}

pub(crate) fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("JSON")
}
