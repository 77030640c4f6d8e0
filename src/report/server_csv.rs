//! `server.csv`: what the servers said of themselves while the run went on, one figure a line.
//!
//! Figures come in under the names that they have here, with the server's own labels, so that a replica or
//! an engine can be told from another. Deliberately absent: what they mean (see [`crate::telemetry`]).

use std::path::PathBuf;

use super::line_file::{LineFile, RecorderError};
use super::timeline_csv::utc_ms;
use crate::columns::columns;

/// A figure, and which reading it is of.
#[derive(Debug)]
pub struct ServerLine<'a> {
    t_s: f64,
    utc: &'a str,
    target: usize,
    sample: &'a ServerSample,
}

columns! {
    /// The columns of `server.csv`, in order.
    pub const SERVER_COLUMNS: |line: &ServerLine<'_>| {
        /// When the page was read, from the start of the run; before it, below zero.
        "t_s" in S = format!("{:.6}", line.t_s);
        /// The same by the wall clock.
        "utc" = line.utc;
        /// 0-based index of the server.
        "target" = line.target;
        /// The figure, by its name here: the same for every engine.
        "metric" = line.sample.metric;
        /// The server's own labels, `name="value"` with commas between. Empty: it has none.
        "labels" = line.sample.labels;
        /// The figure, as the server counts it.
        "value" = line.sample.value;
    }
}

/// The file.
#[derive(Debug)]
pub struct ServerFile {
    file: LineFile,
}

/// One figure of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSample {
    /// Its name here.
    pub metric: &'static str,
    /// The server's labels, as `name="value"` with commas between; empty without any.
    pub labels: String,
    /// The figure.
    pub value: f64,
}

impl ServerFile {
    /// Creates the file with its header; refuses one that exists.
    pub fn create(path: PathBuf) -> Result<Self, RecorderError> {
        Ok(Self { file: LineFile::create(path, SERVER_COLUMNS)? })
    }

    /// Adds the figures of one reading, `t_s` after the start of the run (before it: below zero), which was
    /// at `t0_utc_ns` nanoseconds since 1970.
    pub fn write(
        &mut self,
        t_s: f64,
        t0_utc_ns: i128,
        target: usize,
        samples: &[ServerSample],
    ) -> Result<(), RecorderError> {
        #[expect(clippy::cast_possible_truncation, reason = "a run is no centuries long")]
        let utc = utc_ms(t0_utc_ns + (t_s * 1e9) as i128);
        for sample in samples {
            self.file.write_row(SERVER_COLUMNS, &ServerLine { t_s, utc: &utc, target, sample })?;
        }
        Ok(())
    }

    /// Hands all lines to the operating system.
    pub fn flush(&mut self) -> Result<(), RecorderError> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_a_line_with_its_labels_in_one_cell() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("server.csv");
        let mut file = ServerFile::create(path.clone()).expect("space");
        let labels = "engine=\"0\",model_name=\"a\"".to_owned();
        let sample = ServerSample { metric: "output_tok", labels, value: 12.0 };
        file.write(-0.25, 1_796_040_000_250_000_000, 1, &[sample]).expect("space");
        file.flush().expect("space");
        let text = std::fs::read_to_string(path).expect("the file");
        assert_eq!(
            text.lines().nth(1),
            Some(
                "-0.250000,2026-11-30T12:00:00.000Z,1,output_tok,\"engine=\"\"0\"\",model_name=\"\"a\"\"\",12"
            )
        );
    }
}
