//! `timeline.csv`: one line per second of the run, written once the second can no longer change (see
//! [`crate::metrics::timeline`]).
//!
//! Other sources' figures may be added as columns at the end. Deliberately absent: a clock; the wall
//! time of `t0` is handed in.

use super::line_file::{LineFile, RecorderError};
use crate::columns::columns;
use crate::metrics::timeline::Second;
use crate::units::NS_PER_S;

/// A second, and the wall clock at its beginning.
#[derive(Debug)]
pub struct TimelineLine<'a> {
    second: &'a Second,
    utc: Option<String>,
}

columns! {
    /// The columns of `timeline.csv`, in order.
    pub const TIMELINE_COLUMNS: |line: &TimelineLine<'_>| {
        /// The second, from the start of the run.
        "t_s" in S = line.second.t_s;
        /// The wall clock at its beginning. Empty: not known.
        "utc" = line.utc;
        /// Requests due.
        "due" = line.second.due;
        /// Requests sent.
        "sent" = line.second.sent;
        /// Requests that ended without an error.
        "done" = line.second.done;
        /// Requests that ended with one, or were never sent.
        "failed" = line.second.failed;
        /// Requests sent and not ended, at the end of the second.
        "in_flight" = line.second.in_flight;
        /// Completion tokens that arrived, whatever became of their request.
        "output_tok" in Tok = line.second.output_tok;
        /// Token events that arrived.
        "chunks" = line.second.chunks;
        /// Median `ttft_ms` of the first tokens that arrived, within 0.05%. Empty: none did.
        "ttft_p50_ms" in Ms = line.second.ttft.p50;
        /// The same, 99th percentile. Empty: none did.
        "ttft_p99_ms" in Ms = line.second.ttft.p99;
        /// 99th percentile of the lag of what was sent, within 0.05%. Empty: nothing was.
        "lag_p99_ms" in Ms = line.second.lag.p99;
        /// The largest. Empty: nothing was.
        "lag_max_ms" in Ms = line.second.lag.max;
        /// Processor time that the client used, as a share of one core. Empty: not read.
        "client_cpu" in Share = line.second.client_cpu.map(|share| format!("{share:.4}"));
        /// Completion tokens that the server counted. Empty: it was not asked, or does not say.
        "server_output_tok" in Tok = line.second.server.output_tok;
        /// Prompt tokens that it counted. Empty: as before.
        "server_input_tok" in Tok = line.second.server.input_tok;
        /// Requests in its batch, at the end of the second. Empty: as before.
        "server_running" = line.second.server.running;
        /// Requests that wait there for a place. Empty: as before.
        "server_waiting" = line.second.server.waiting;
        /// The client's memory in RAM, the largest reading. Empty: not read.
        "client_rss_mb" in Mb =
            line.second.client_rss.map(|bytes| format!("{:.2}", bytes as f64 / 1e6));
    }
}

/// Writes a second; `t0` was at `t0_utc_ns` nanoseconds since 1970.
pub(super) fn write_second(
    file: &mut LineFile,
    t0_utc_ns: Option<i128>,
    second: &Second,
) -> Result<(), RecorderError> {
    let begin = |t0: i128| t0 + i128::from(second.t_s) * i128::from(NS_PER_S);
    file.write_row(
        TIMELINE_COLUMNS,
        &TimelineLine { second, utc: t0_utc_ns.map(begin).map(utc_ms) },
    )
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
        let mut file = LineFile::create(path.clone(), TIMELINE_COLUMNS).expect("space");
        let second = Second { t_s: 3, due: 2, client_cpu: Some(0.25), ..Second::default() };
        let second = Second { client_rss: Some(12_345_678), ..second };
        write_second(&mut file, Some(1_796_040_000_250_000_000), &second).expect("space");
        file.flush().expect("space");
        let text = std::fs::read_to_string(path).expect("the file");
        assert_eq!(
            text.lines().nth(1),
            Some("3,2026-11-30T12:00:03.250Z,2,0,0,0,0,0,0,,,,,0.2500,,,,,12.35")
        );
    }
}
