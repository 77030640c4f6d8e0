//! The truth log: what the server really did, one CSV row per request, written as the request ends.
//!
//! It is what a client's own figures are held against. Times are those of the server's clock (in real
//! time the machine's monotonic clock, the same in every process), so that two programs can be
//! compared without an offset. Absent: any estimate. A token's time is the instant at which its bytes
//! were handed to the connection, which writes them to the socket within the same turn.

use std::io::{BufWriter, Read, Write};

use crate::columns::{CsvRow, ReadError, csv_row, read_lines, words, write_header, write_line};
use crate::units::Nanos;

words! {
    /// How a request ended.
    pub enum Ended {
        /// Answered in full.
        Done = "done",
        /// The client went away, or the server was stopped.
        Cancelled = "cancelled",
        /// Answered with an error.
        Refused = "refused",
        /// Ended early by a fault.
        Broken = "broken",
    }
}

csv_row! {
    /// One request. Cells are empty where nothing applies.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct TruthRow {
        /// The `id` in the answer.
        pub request_id: String => "request_id",
        /// When the request's head had been read, before its body.
        pub arrival: Nanos => "arrival_ns" in Ns,
        /// When the first token was handed to the connection. Empty: none was.
        pub first: Option<Nanos> => "first_ns" in Ns,
        /// When the last was. Empty: none was.
        pub last: Option<Nanos> => "last_ns" in Ns,
        /// How many were.
        pub output_tok: u64 => "output_tok" in Tok,
        /// Tokens of the prompt. Empty: the request could not be read.
        pub prompt_tok: Option<u64> => "prompt_tok" in Tok,
        /// Median time between successive tokens of a stream, nearest rank. Empty: fewer than two, or no stream.
        pub gap_p50: Option<Nanos> => "gap_p50_ns" in Ns,
        /// The same, 99th percentile. Empty: as `gap_p50_ns`.
        pub gap_p99: Option<Nanos> => "gap_p99_ns" in Ns,
        /// The longest. Empty: as `gap_p50_ns`.
        pub gap_max: Option<Nanos> => "gap_max_ns" in Ns,
        /// How long it waited for a slot, by the model. Empty: it never came so far.
        pub queued: Option<Nanos> => "queued_ns" in Ns,
        /// How it ended: `done`, `cancelled` (the client went away, or the server was stopped), `refused` or `broken` (by a fault).
        pub ended: Ended => "ended",
        /// The faults that fell on it, joined with `+`. Empty: none did.
        pub fault: String => "fault",
    }
}

/// The truth log could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum TruthError {
    /// A line that broke off.
    #[error("truth log: line {line} is not whole: the disk was full, or the server was killed")]
    Torn {
        /// 1-based.
        line: u64,
    },
    /// With the line and field where it is one of the contents.
    #[error("truth log: {0}")]
    Csv(#[from] ReadError),
    /// The medium failed.
    #[error("truth log: {0}")]
    Io(#[from] std::io::Error),
}

/// Reads a truth log back. One that was not flushed yet has no header, and those of older servers lack `fault`:
/// no column is asked for before there is a row.
pub fn read(input: impl Read) -> Result<Vec<TruthRow>, TruthError> {
    let rows = read_lines(
        input,
        "a truth log",
        TruthRow::COLUMNS,
        TruthRow::COLUMNS.len(),
        TruthRow::read,
    )?;
    rows.map(|row| row.map_err(unread)).collect()
}

/// A line with too few cells has no fault but its end.
fn unread(error: ReadError) -> TruthError {
    if let ReadError::Csv(csv) = &error
        && let csv::ErrorKind::UnequalLengths { pos: Some(at), expected_len, len } = csv.kind()
        && len < expected_len
    {
        return TruthError::Torn { line: at.line() };
    }
    TruthError::Csv(error)
}

/// The log being written.
pub(super) struct TruthLog {
    out: BufWriter<Box<dyn Write>>,
    /// The line being written, used again.
    line: Vec<u8>,
    /// The first failure ends the log; it is reported when the server is asked how it went.
    failure: Option<TruthError>,
}

impl TruthLog {
    /// Starts a log with its header, so that one without requests can be told from none.
    pub(super) fn new(out: Box<dyn Write>) -> Self {
        let mut log = Self { out: BufWriter::new(out), line: Vec::new(), failure: None };
        log.write_with(|line| write_header(TruthRow::COLUMNS, line));
        log
    }

    pub(super) fn write(&mut self, row: &TruthRow) {
        self.write_with(|line| write_line(TruthRow::COLUMNS, row, line));
    }

    fn write_with(&mut self, line: impl FnOnce(&mut Vec<u8>)) {
        if self.failure.is_none() {
            self.line.clear();
            line(&mut self.line);
            self.failure = self.out.write_all(&self.line).err().map(TruthError::from);
        }
    }

    pub(super) fn flush(&mut self) {
        if self.failure.is_none() {
            self.failure = self.out.flush().err().map(TruthError::from);
        }
    }

    pub(super) fn take_failure(&mut self) -> Option<TruthError> {
        self.failure.take()
    }
}

/// What is noted of one request while it runs.
pub(super) struct Ledger {
    pub(super) arrival: Nanos,
    first: Option<Nanos>,
    last: Option<Nanos>,
    pub(super) output_tok: u64,
    pub(super) prompt_tok: Option<u64>,
    pub(super) queued: Option<Nanos>,
    /// The faults that fall on it.
    pub(super) fault: String,
    /// `None` where nobody will read them: 8 bytes a token.
    gaps: Option<Vec<Nanos>>,
}

impl Ledger {
    pub(super) fn new(arrival: Nanos, keeps_gaps: bool) -> Self {
        Self {
            arrival,
            first: None,
            last: None,
            output_tok: 0,
            prompt_tok: None,
            queued: None,
            fault: String::new(),
            gaps: keeps_gaps.then(Vec::new),
        }
    }

    /// A token of a stream was handed to the connection.
    pub(super) fn token(&mut self, now: Nanos) {
        self.tokens(now, 1);
    }

    /// Tokens of a stream were, in one event.
    pub(super) fn tokens(&mut self, now: Nanos, count: u64) {
        if let (Some(last), Some(gaps)) = (self.last, self.gaps.as_mut()) {
            gaps.push(now.since(last));
        }
        self.first.get_or_insert(now);
        self.last = Some(now);
        self.output_tok += count;
    }

    /// An answer was handed over in one piece: no gaps.
    pub(super) fn whole(&mut self, now: Nanos, output_tok: u64) {
        self.first = Some(now);
        self.last = Some(now);
        self.output_tok = output_tok;
    }

    pub(super) fn row(&mut self, request_id: String, ended: Ended) -> TruthRow {
        let mut gaps = self.gaps.take().unwrap_or_default();
        gaps.sort_unstable();
        TruthRow {
            request_id,
            arrival: self.arrival,
            first: self.first,
            last: self.last,
            output_tok: self.output_tok,
            prompt_tok: self.prompt_tok,
            gap_p50: nearest_rank(&gaps, 50),
            gap_p99: nearest_rank(&gaps, 99),
            gap_max: gaps.last().copied(),
            queued: self.queued,
            ended,
            fault: std::mem::take(&mut self.fault),
        }
    }
}

/// The ⌈p·n/100⌉-th of sorted values.
fn nearest_rank(sorted: &[Nanos], percent: usize) -> Option<Nanos> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::tests::Log;

    #[test]
    fn rows_come_back_as_they_were_written() {
        let mut ledger = Ledger::new(Nanos(5), true);
        ledger.prompt_tok = Some(3);
        ledger.queued = Some(Nanos::ZERO);
        for at in [10, 30, 40, 80] {
            ledger.token(Nanos(at));
        }
        let full = ledger.row("chatcmpl-sim-0".to_owned(), Ended::Done);
        let empty = Ledger::new(Nanos(9), true).row("cmpl-sim-1".to_owned(), Ended::Refused);
        let out = Log::default();
        let mut log = TruthLog::new(Box::new(out.clone()));
        log.write(&full);
        log.write(&empty);
        log.flush();
        assert!(log.take_failure().is_none());
        let text = String::from_utf8(out.0.take()).expect("text");
        let expected = "request_id,arrival_ns,first_ns,last_ns,output_tok,prompt_tok,gap_p50_ns,\
                        gap_p99_ns,gap_max_ns,queued_ns,ended,fault\n\
                        chatcmpl-sim-0,5,10,80,4,3,20,40,40,0,done,\n\
                        cmpl-sim-1,9,,,0,,,,,,refused,\n";
        assert_eq!(text, expected);
        assert_eq!(read(text.as_bytes()).expect("its own output"), [full, empty]);
    }

    #[test]
    fn a_log_without_requests_has_its_header() {
        let out = Log::default();
        TruthLog::new(Box::new(out.clone())).flush();
        assert!(read(out.0.take().as_slice()).expect("a header").is_empty());
    }

    #[test]
    fn a_torn_line_is_named() {
        let mut header = Vec::new();
        write_header(TruthRow::COLUMNS, &mut header);
        let header = String::from_utf8(header).expect("text");
        let text = format!("{header}cmpl-sim-1,9,,,0,,");
        let message = read(text.as_bytes()).expect_err("torn").to_string();
        assert!(message.contains("line 2 is not whole"), "{message}");
        let text = format!("{header}cmpl-sim-1,9,,,x,,,,,,refused,\n");
        let message = read(text.as_bytes()).expect_err("no count").to_string();
        assert!(message.contains("line 2, column `output_tok`: `x` is"), "{message}");
    }

    #[test]
    fn ranks_are_the_nearest() {
        let values: Vec<Nanos> = (1..=100).map(Nanos).collect();
        assert_eq!(nearest_rank(&values, 50), Some(Nanos(50)));
        assert_eq!(nearest_rank(&values, 99), Some(Nanos(99)));
        assert_eq!(nearest_rank(&values[..3], 50), Some(Nanos(2)));
        assert_eq!(nearest_rank(&values[..1], 99), Some(Nanos(1)));
        assert_eq!(nearest_rank(&[], 99), None);
    }
}
