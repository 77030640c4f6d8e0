//! `timeline.csv`: one line per second of the run, written once the second can no longer change (see
//! [`crate::metrics::timeline`]).
//!
//! Other sources' figures may be added as columns at the end. Deliberately absent: a clock; the wall
//! time of `t0` is handed in.

use std::path::PathBuf;

use super::line_file::LineFile;
use super::recorder_error::RecorderError;
use crate::metrics::timeline::Second;
use crate::units::{NS_PER_MS, NS_PER_S, Nanos};

/// The columns, in order.
pub const TIMELINE_HEADER: [&str; 19] = [
    "t_s",
    "utc",
    "due",
    "sent",
    "done",
    "failed",
    "in_flight",
    "output_tok",
    "chunks",
    "ttft_p50_ms",
    "ttft_p99_ms",
    "lag_p99_ms",
    "lag_max_ms",
    "client_cpu",
    "server_output_tok",
    "server_input_tok",
    "server_running",
    "server_waiting",
    "client_rss_mb",
];

/// The file.
#[derive(Debug)]
pub(super) struct TimelineFile {
    file: LineFile,
    /// Nanoseconds since 1970 at `t0`.
    t0_utc_ns: Option<i128>,
}

impl TimelineFile {
    pub(super) fn create(path: PathBuf) -> Result<Self, RecorderError> {
        Ok(Self { file: LineFile::create(path, &TIMELINE_HEADER)?, t0_utc_ns: None })
    }

    /// Says when `t0` was.
    pub(super) fn starts(&mut self, t0_utc_ns: i128) {
        self.t0_utc_ns = Some(t0_utc_ns);
    }

    pub(super) fn write(&mut self, second: &Second) -> Result<(), RecorderError> {
        let ms = |span: Option<Nanos>| {
            span.map_or_else(String::new, |span| {
                format!("{}.{:06}", span.0 / NS_PER_MS, span.0 % NS_PER_MS)
            })
        };
        let figure = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        self.file.write(&[
            second.t_s.to_string(),
            self.utc(second.t_s),
            second.due.to_string(),
            second.sent.to_string(),
            second.done.to_string(),
            second.failed.to_string(),
            second.in_flight.to_string(),
            second.output_tok.to_string(),
            second.chunks.to_string(),
            ms(second.ttft.p50),
            ms(second.ttft.p99),
            ms(second.lag.p99),
            ms(second.lag.max),
            second.client_cpu.map_or_else(String::new, |share| format!("{share:.4}")),
            figure(second.server.output_tok),
            figure(second.server.input_tok),
            figure(second.server.running),
            figure(second.server.waiting),
            second
                .client_rss
                .map_or_else(String::new, |bytes| format!("{:.2}", bytes as f64 / 1e6)),
        ])
    }

    pub(super) fn flush(&mut self) -> Result<(), RecorderError> {
        self.file.flush()
    }

    /// The wall clock at the beginning of a second, to the millisecond.
    fn utc(&self, t_s: u64) -> String {
        let ns = self.t0_utc_ns.map(|t0| t0 + i128::from(t_s) * i128::from(NS_PER_S));
        ns.map_or_else(String::new, utc_ms)
    }
}

/// Nanoseconds since 1970 as a date and time to the millisecond; empty beyond what dates can say.
pub(super) fn utc_ms(ns: i128) -> String {
    let instant = jiff::Timestamp::from_nanosecond(ns).ok();
    instant.map_or_else(String::new, |instant| format!("{instant:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_a_line_with_empty_cells_for_what_is_not_known() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("timeline.csv");
        let mut file = TimelineFile::create(path.clone()).expect("space");
        file.starts(1_796_040_000_250_000_000);
        let second = Second { t_s: 3, due: 2, client_cpu: Some(0.25), ..Second::default() };
        let second = Second { client_rss: Some(12_345_678), ..second };
        file.write(&second).expect("space");
        file.flush().expect("space");
        let text = std::fs::read_to_string(path).expect("the file");
        assert_eq!(
            text.lines().nth(1),
            Some("3,2026-11-30T12:00:03.250Z,2,0,0,0,0,0,0,,,,,0.2500,,,,,12.35")
        );
    }
}
