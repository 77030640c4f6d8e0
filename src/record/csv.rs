//! `requests.csv`: the one place where its rows are written and parsed.
//!
//! The header is fixed; columns may be added at the end and are found by name when read. Milliseconds
//! carry six decimals and seconds nine, so a row read back equals the row written.

use std::io::{Read, Write};
use std::str::FromStr;
use std::sync::Arc;

use super::{Phase, Row, TokenSource};
use crate::units::{NS_PER_MS, Nanos};

/// The columns, in order.
pub const COLUMNS: [&str; 40] = [
    "row",
    "session",
    "turn",
    "class",
    "phase",
    "target",
    "shard",
    "scheduled_s",
    "lag_ms",
    "connect_ms",
    "conn_reused",
    "headers_ms",
    "first_event_ms",
    "ttft_ms",
    "ttft_send_ms",
    "ttfo_ms",
    "tpot_ms",
    "gap_p50_ms",
    "gap_p99_ms",
    "gap_max_ms",
    "stall_ms",
    "stalls",
    "e2e_ms",
    "e2e_send_ms",
    "close_ms",
    "input_tok_asked",
    "input_tok",
    "cached_tok",
    "output_tok_asked",
    "output_tok",
    "reasoning_tok",
    "token_source",
    "chunks",
    "finish_reason",
    "outcome",
    "http_status",
    "error",
    "slo_ok",
    "rx_delay_ms",
    "request_id",
];
/// Stands at the end where requests may be sent again.
pub const ATTEMPTS: &str = "attempts";

/// Writes rows; flushing is the caller's decision.
#[derive(Debug)]
pub struct RowWriter<W: Write> {
    csv: csv::Writer<W>,
    attempts: bool,
}

impl<W: Write> RowWriter<W> {
    /// Starts a file with its header; with `attempts`, its rows tell how often they were sent.
    pub fn new(out: W, attempts: bool) -> Result<Self, csv::Error> {
        let mut csv = csv::Writer::from_writer(out);
        csv.write_record(COLUMNS.into_iter().chain(attempts.then_some(ATTEMPTS)))?;
        Ok(Self { csv, attempts })
    }

    /// Writes one row.
    pub fn write(&mut self, row: &Row) -> Result<(), csv::Error> {
        let csv = &mut self.csv;
        csv.write_field(row.row.to_string())?;
        csv.write_field(row.session.as_deref().unwrap_or(""))?;
        csv.write_field(cell(row.turn))?;
        csv.write_field(row.class.as_deref().unwrap_or(""))?;
        csv.write_field(phase_word(row.phase))?;
        csv.write_field(row.target.to_string())?;
        csv.write_field(cell(row.shard))?;
        csv.write_field(cell(row.scheduled))?;
        for span in [row.lag, row.connect] {
            csv.write_field(ms_cell(span))?;
        }
        csv.write_field(cell(row.conn_reused))?;
        for span in [row.headers, row.first_event, row.ttft, row.ttft_send, row.ttfo, row.tpot] {
            csv.write_field(ms_cell(span))?;
        }
        for span in [row.gap_p50, row.gap_p99, row.gap_max, row.stall] {
            csv.write_field(ms_cell(span))?;
        }
        csv.write_field(cell(row.stalls))?;
        for span in [row.e2e, row.e2e_send, row.close] {
            csv.write_field(ms_cell(span))?;
        }
        csv.write_field(cell(row.input_tok_asked))?;
        csv.write_field(cell(row.input_tok))?;
        csv.write_field(cell(row.cached_tok))?;
        csv.write_field(cell(row.output_tok_asked))?;
        csv.write_field(cell(row.output_tok))?;
        csv.write_field(cell(row.reasoning_tok))?;
        csv.write_field(row.token_source.map_or("", source_word))?;
        csv.write_field(cell(row.chunks))?;
        csv.write_field(row.finish_reason.as_deref().unwrap_or(""))?;
        csv.write_field(row.outcome.to_string())?;
        csv.write_field(cell(row.http_status))?;
        csv.write_field(row.error.as_deref().unwrap_or(""))?;
        csv.write_field(cell(row.slo_ok))?;
        csv.write_field(ms_cell(row.rx_delay))?;
        csv.write_field(row.request_id.as_deref().unwrap_or(""))?;
        if self.attempts {
            csv.write_field(cell(row.attempts))?;
        }
        csv.write_record(None::<&[u8]>)
    }

    /// Hands everything written so far to the operating system.
    pub fn flush(&mut self) -> std::io::Result<()> {
        self.csv.flush()
    }
}

/// Why a `requests.csv` cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    /// Not CSV, or it cannot be read.
    #[error(transparent)]
    Csv(#[from] csv::Error),
    /// A column is missing.
    #[error("column `{0}` is missing: is this a requests.csv?")]
    Missing(&'static str),
    /// A cell does not parse.
    #[error("line {line}, column `{column}`: `{value}` is {problem}")]
    Cell {
        /// 1-based line of the file.
        line: u64,
        /// The column's name.
        column: &'static str,
        /// What stands there.
        value: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

/// Reads a `requests.csv`, row by row.
pub fn read_rows<R: Read>(
    input: R,
) -> Result<impl Iterator<Item = Result<Row, RowError>>, RowError> {
    let mut reader = csv::Reader::from_reader(input);
    let header = reader.headers()?.clone();
    let mut places = [0; COLUMNS.len()];
    for (place, name) in places.iter_mut().zip(COLUMNS) {
        *place = header.iter().position(|h| h == name).ok_or(RowError::Missing(name))?;
    }
    let attempts = header.iter().position(|name| name == ATTEMPTS);
    Ok(reader
        .into_records()
        .map(move |record| parse_row(&Cells { record: record?, places, attempts })))
}

/// One record, with its cells found by column number.
struct Cells {
    record: csv::StringRecord,
    places: [usize; COLUMNS.len()],
    attempts: Option<usize>,
}

impl Cells {
    fn text(&self, column: usize) -> &str {
        self.record.get(self.places[column]).unwrap_or("")
    }

    fn some_text(&self, column: usize) -> Option<&str> {
        Some(self.text(column)).filter(|text| !text.is_empty())
    }

    fn error(&self, column: usize, problem: &'static str) -> RowError {
        self.wrong(COLUMNS[column], self.text(column), problem)
    }

    fn wrong(&self, column: &'static str, value: &str, problem: &'static str) -> RowError {
        let line = self.record.position().map_or(0, csv::Position::line);
        RowError::Cell { line, column, value: value.to_owned(), problem }
    }

    fn attempts(&self) -> Result<Option<u32>, RowError> {
        let text = self.attempts.and_then(|place| self.record.get(place)).unwrap_or("");
        if text.is_empty() {
            return Ok(None);
        }
        text.parse().map(Some).map_err(|_| self.wrong(ATTEMPTS, text, "no such value"))
    }

    fn parse<T: FromStr>(&self, column: usize) -> Result<Option<T>, RowError> {
        self.some_text(column)
            .map(|text| text.parse().map_err(|_| self.error(column, "no such value")))
            .transpose()
    }

    fn require<T: FromStr>(&self, column: usize) -> Result<T, RowError> {
        self.parse(column)?.ok_or_else(|| self.error(column, "empty"))
    }

    fn ms(&self, column: usize) -> Result<Option<Nanos>, RowError> {
        self.some_text(column)
            .map(|text| Nanos::parse_duration(&format!("{text}ms")))
            .transpose()
            .map_err(|_| self.error(column, "no number of milliseconds"))
    }
}

fn parse_row(cells: &Cells) -> Result<Row, RowError> {
    Ok(Row {
        row: cells.require(0)?,
        session: cells.some_text(1).map(Arc::from),
        turn: cells.parse(2)?,
        class: cells.some_text(3).map(Arc::from),
        phase: phase_of(cells.text(4)).ok_or_else(|| cells.error(4, "no phase"))?,
        target: cells.require(5)?,
        shard: cells.parse(6)?,
        scheduled: cells
            .some_text(7)
            .map(Nanos::parse_seconds)
            .transpose()
            .map_err(|_| cells.error(7, "no number of seconds"))?,
        lag: cells.ms(8)?,
        connect: cells.ms(9)?,
        conn_reused: cells.parse(10)?,
        headers: cells.ms(11)?,
        first_event: cells.ms(12)?,
        ttft: cells.ms(13)?,
        ttft_send: cells.ms(14)?,
        ttfo: cells.ms(15)?,
        tpot: cells.ms(16)?,
        gap_p50: cells.ms(17)?,
        gap_p99: cells.ms(18)?,
        gap_max: cells.ms(19)?,
        stall: cells.ms(20)?,
        stalls: cells.parse(21)?,
        e2e: cells.ms(22)?,
        e2e_send: cells.ms(23)?,
        close: cells.ms(24)?,
        input_tok_asked: cells.parse(25)?,
        input_tok: cells.parse(26)?,
        cached_tok: cells.parse(27)?,
        output_tok_asked: cells.parse(28)?,
        output_tok: cells.parse(29)?,
        reasoning_tok: cells.parse(30)?,
        token_source: cells
            .some_text(31)
            .map(|word| source_of(word).ok_or_else(|| cells.error(31, "no token source")))
            .transpose()?,
        chunks: cells.parse(32)?,
        finish_reason: cells.some_text(33).map(str::to_owned),
        outcome: cells.require(34)?,
        http_status: cells.parse(35)?,
        error: cells.some_text(36).map(str::to_owned),
        slo_ok: cells.parse(37)?,
        rx_delay: cells.ms(38)?,
        request_id: cells.some_text(39).map(str::to_owned),
        attempts: cells.attempts()?,
    })
}

fn cell<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn ms_cell(span: Option<Nanos>) -> String {
    span.map_or_else(String::new, |span| {
        format!("{}.{:06}", span.0 / NS_PER_MS, span.0 % NS_PER_MS)
    })
}

const PHASES: [(Phase, &str); 2] = [(Phase::Warmup, "warmup"), (Phase::Measured, "measured")];

const SOURCES: [(TokenSource, &str); 4] = [
    (TokenSource::Usage, "usage"),
    (TokenSource::Running, "running"),
    (TokenSource::Tokenizer, "tokenizer"),
    (TokenSource::Events, "events"),
];

fn phase_word(phase: Phase) -> &'static str {
    PHASES.iter().find(|(p, _)| *p == phase).map_or("", |(_, word)| word)
}

fn phase_of(word: &str) -> Option<Phase> {
    PHASES.iter().find(|(_, w)| *w == word).map(|(phase, _)| *phase)
}

fn source_word(source: TokenSource) -> &'static str {
    SOURCES.iter().find(|(s, _)| *s == source).map_or("", |(_, word)| word)
}

fn source_of(word: &str) -> Option<TokenSource> {
    SOURCES.iter().find(|(_, w)| *w == word).map(|(source, _)| *source)
}

#[cfg(test)]
mod tests {
    use super::super::{Kind, Outcome, StreamRecord, Usage};
    use super::*;

    #[test]
    fn a_row_read_back_equals_the_row_written() {
        let mut record = StreamRecord {
            row: 7,
            session: Some("a,b \"c\"".into()),
            turn: Some(2),
            due: Nanos(1_234_567_891),
            sent: Some(Nanos(1_234_600_000)),
            connect: Some(Nanos(99)),
            conn_reused: Some(false),
            headers: Some(Nanos(1_300_000_000)),
            http_status: Some(200),
            outcome: Outcome::Ok,
            usage: Some(Usage { input_tok: Some(12), output_tok: Some(3), ..Usage::default() }),
            error: Some("said \"no\", twice".to_owned()),
            ..StreamRecord::default()
        };
        for at in [2_000_000_000, 2_000_000_001, 2_500_000_003] {
            record.tokens.push(Nanos(at), Kind::Content, None);
        }
        for attempts in [None, Some(3)] {
            record.attempts = attempts;
            let rows = [Row::of(&record, Nanos::ZERO), Row::of(&StreamRecord::default(), Nanos(1))];
            let mut writer = RowWriter::new(Vec::new(), attempts.is_some()).expect("memory");
            for row in &rows {
                writer.write(row).expect("memory");
            }
            let bytes = writer.csv.into_inner().expect("memory");
            let back: Result<Vec<Row>, _> = read_rows(&bytes[..]).expect("a header").collect();
            assert_eq!(back.expect("rows"), rows);
        }
    }

    #[test]
    fn a_bad_cell_names_line_and_column() {
        let mut text = COLUMNS.join(",");
        text.push_str("\n1,,,,measured,0,,zero,");
        text.push_str(&",".repeat(31));
        let error = read_rows(text.as_bytes()).expect("a header").next().expect("a row");
        assert_eq!(
            error.expect_err("a bad cell").to_string(),
            "line 2, column `scheduled_s`: `zero` is no number of seconds"
        );
        assert!(read_rows(&b"a,b\n"[..]).err().expect("no header").to_string().contains("`row`"));
    }
}
