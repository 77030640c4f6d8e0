//! `requests.csv`: its rows written, and read back.
//!
//! The columns are the fields of [`Row`]. The header is fixed; columns may be added at the end and are found
//! by name when read. Milliseconds carry six decimals and seconds nine, so a row read back equals the row
//! written.

use std::io::{self, Read, Write};

use super::Row;
use crate::columns::{Column, CsvRow, ReadError, WriteFn, read_lines, write_header, write_line};

/// Columns at the end that are there only where requests may be sent again: `attempts`.
const OPTIONAL: usize = 1;

/// Writes rows; flushing is the caller's decision.
#[derive(Debug)]
pub struct RowWriter<W: Write> {
    out: W,
    columns: &'static [Column<WriteFn<Row>>],
    /// The line being written, used again.
    line: Vec<u8>,
}

impl<W: Write> RowWriter<W> {
    /// Starts a file with its header; with `attempts`, its rows tell how often they were sent.
    pub fn new(mut out: W, attempts: bool) -> io::Result<Self> {
        let kept = Row::COLUMNS.len() - if attempts { 0 } else { OPTIONAL };
        let columns = &Row::COLUMNS[..kept];
        let mut line = Vec::new();
        write_header(columns, &mut line);
        out.write_all(&line)?;
        Ok(Self { out, columns, line })
    }

    /// Writes one row.
    pub fn write(&mut self, row: &Row) -> io::Result<()> {
        self.line.clear();
        write_line(self.columns, row, &mut self.line);
        self.out.write_all(&self.line)
    }

    /// Hands everything written so far to the operating system.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Reads a `requests.csv`, row by row.
pub fn read_rows<R: Read>(
    input: R,
) -> Result<impl Iterator<Item = Result<Row, ReadError>>, ReadError> {
    read_lines(input, "a requests.csv", Row::COLUMNS, OPTIONAL, Row::read)
}

#[cfg(test)]
mod tests {
    use super::super::{Kind, Outcome, StreamRecord, Usage};
    use super::*;
    use crate::units::Nanos;

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
            let bytes = writer.out;
            let back: Result<Vec<Row>, _> = read_rows(&bytes[..]).expect("a header").collect();
            assert_eq!(back.expect("rows"), rows);
        }
    }

    #[test]
    fn a_bad_cell_names_line_and_column() {
        let mut line = Vec::new();
        write_header(Row::COLUMNS, &mut line);
        let mut text = String::from_utf8(line).expect("text");
        text.push_str("1,,,,measured,0,,zero,");
        text.push_str(&",".repeat(32));
        let error = read_rows(text.as_bytes()).expect("a header").next().expect("a row");
        assert_eq!(
            error.expect_err("a bad cell").to_string(),
            "line 2, column `scheduled_s`: `zero` is no number of seconds"
        );
        assert!(read_rows(&b"a,b\n"[..]).err().expect("no header").to_string().contains("`row`"));
    }
}
