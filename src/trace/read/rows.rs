//! Lines into rows: the format's reader, the row's number, and the place of every fault.
//!
//! Rows come in the order of the file, with the times of the file; sorting and the trace's zero are
//! [`super::order`]'s, counting is [`super::scan`]'s.

use std::io::{Read, Seek};
use std::sync::Arc;

use super::azure::Azure;
use super::error::{Fault, TraceError};
use super::lines::LineReader;
use super::mooncake::{self, Mooncake};
use super::native::{NativeCsv, NativeJson};
use super::sniff::{Dress, dress};
use super::source::line_error;
use super::{Failed, Format, ReadOptions, TimeUnit};
use crate::trace::Request;
use crate::units::Nanos;

/// What a format's reader makes of one line: lengths as written, `row` and `at` still unset.
#[derive(Debug)]
pub(super) struct Parsed {
    /// Time on the file's own scale.
    pub(super) at_ns: i64,
    pub(super) request: Request,
}

/// A row in its place.
#[derive(Debug)]
pub(super) struct Row {
    /// Time on the file's own scale.
    pub(super) at_ns: i64,
    pub(super) line: u64,
    /// Where its line starts.
    pub(super) offset: u64,
    pub(super) request: Request,
}

enum Parser {
    Azure(Azure),
    Mooncake(Mooncake),
    NativeCsv(Box<NativeCsv>),
    NativeJson(NativeJson),
}

impl Parser {
    fn read(&mut self, line: &[u8]) -> Result<Parsed, Fault> {
        match self {
            Self::Azure(reader) => reader.read(line),
            Self::Mooncake(reader) => reader.read(line),
            Self::NativeCsv(reader) => reader.read(line),
            Self::NativeJson(reader) => reader.read(line),
        }
    }
}

/// Reads rows of one format from lines.
pub(super) struct RowReader<R> {
    lines: LineReader<R>,
    parser: Parser,
    name: Arc<str>,
    next_row: u64,
}

impl<R: Read> RowReader<R> {
    /// Reads the header where the format has one. `lines` stands at its start.
    pub(super) fn start(
        mut lines: LineReader<R>,
        format: Format,
        options: &ReadOptions,
        name: Arc<str>,
    ) -> Result<Self, TraceError> {
        let first = match first_line(&mut lines, &name)? {
            Some((first, number)) => (first.to_vec(), number),
            None => return Err(TraceError::Empty { file: name.to_string() }),
        };
        let (first, number) = (&first.0[..], first.1);
        let seconds = options.time_unit.unwrap_or(TimeUnit::S);
        let parser = match (format, dress(first)) {
            (Format::Azure, _) => Parser::Azure(Azure::new(first, &name, number)?),
            (Format::Mooncake, _) => Parser::Mooncake(Mooncake::new(
                options.time_unit.unwrap_or(TimeUnit::Ms),
                options.block_tok.unwrap_or(mooncake::BLOCK_TOK),
            )),
            (Format::Native, Dress::Json) => {
                Parser::NativeJson(NativeJson::new(seconds, options.block_tok))
            }
            (Format::Native, Dress::Csv) => Parser::NativeCsv(Box::new(NativeCsv::new(
                first,
                &name,
                number,
                seconds,
                options.block_tok,
            )?)),
        };
        if matches!(parser, Parser::Mooncake(_) | Parser::NativeJson(_)) {
            lines.unread();
        }
        Ok(Self { lines, parser, name, next_row: 0 })
    }

    /// The next row of the file.
    pub(super) fn next_row(&mut self) -> Result<Option<Row>, TraceError> {
        loop {
            let line = match self.lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => return Ok(None),
                Err(fault) => return Err(line_error(fault, &self.lines, &self.name)),
            };
            if line.bytes.trim_ascii_start().is_empty() {
                continue;
            }
            let (number, offset) = (line.number, line.offset);
            let parsed = match self.parser.read(line.bytes) {
                Ok(parsed) => parsed,
                Err(fault) => {
                    let is_torn = !line.whole && looks_cut(line.bytes, &fault);
                    return Err(fault.located(&self.name, number, is_torn));
                }
            };
            let tok = parsed.request.input_tok.max(parsed.request.output_tok);
            if tok > LIMIT_TOK {
                let file = self.name.to_string();
                return Err(TraceError::TooLong { file, line: number, tok, limit: LIMIT_TOK });
            }
            let mut row =
                Row { at_ns: parsed.at_ns, line: number, offset, request: parsed.request };
            row.request.row = self.next_row;
            self.next_row += 1;
            return Ok(Some(row));
        }
    }

    /// Columns or keys met so far that are not replayed.
    pub(super) fn ignored(&self) -> Vec<String> {
        match &self.parser {
            Parser::Azure(reader) => reader.ignored(),
            Parser::Mooncake(reader) => reader.unknown.clone(),
            Parser::NativeCsv(reader) => reader.ignored(),
            Parser::NativeJson(reader) => reader.unknown.clone(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl<R: Read + Seek> RowReader<R> {
    /// The row whose line starts at `offset`. Neither its number nor its line's is known here.
    pub(super) fn row_at(&mut self, offset: u64) -> Result<Option<Row>, TraceError> {
        match self.lines.jump(offset) {
            Ok(()) => self.next_row(),
            Err(cause) => {
                let (file, line) = (self.name.to_string(), self.lines.number());
                Err(TraceError::Read { file, line, cause, hint: "" })
            }
        }
    }
}

/// Tokens of the longest prompt or completion that is read: ten times the longest context of any
/// model, and 60 MB of words.
const LIMIT_TOK: u32 = 10_000_000;

/// Whether a bad last line without a line break is one that breaks off, rather than a whole row with a bad
/// value: Azure's files of 2023 have no last line break either.
fn looks_cut(line: &[u8], fault: &Fault) -> bool {
    let line = line.trim_ascii_end();
    (fault.column.is_none() || line.ends_with(b",")) && !line.ends_with(b"}")
}

/// The first line that is not blank, and its number. `LineReader::unread` puts it back.
pub(super) fn first_line<'a, R: Read>(
    lines: &'a mut LineReader<R>,
    name: &str,
) -> Result<Option<(&'a [u8], u64)>, TraceError> {
    loop {
        match lines.next_line() {
            Ok(Some(line)) if line.bytes.trim_ascii().is_empty() => {}
            Ok(Some(_)) => {
                // Read it again: the borrow of a line that is returned would span the whole loop.
                lines.unread();
                break;
            }
            Ok(None) => return Ok(None),
            Err(fault) => return Err(line_error(fault, lines, name)),
        }
    }
    match lines.next_line() {
        Ok(line) => Ok(line.map(|line| (line.bytes, line.number))),
        Err(_) => Ok(None),
    }
}

/// What became of rows on the way: counted, so that nothing is changed without a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) rows_read: u64,
    /// Recorded with output 0, whether kept or not.
    pub(super) rows_failed: u64,
    /// Kept rows whose prompt was raised from 0 to 1 token.
    pub(super) rows_raised: u64,
    /// Line of the first of those.
    pub(super) first_raised_line: u64,
}

impl Tally {
    /// Applies what holds for rows of every format. False: the row is dropped.
    pub(super) fn admit(&mut self, row: &mut Row, failed: Failed) -> bool {
        self.rows_read += 1;
        if row.request.output_tok == 0 {
            self.rows_failed += 1;
            match failed {
                Failed::Drop => return false,
                Failed::Keep => row.request.output_tok = 1,
            }
        }
        if row.request.input_tok == 0 {
            if self.rows_raised == 0 {
                self.first_raised_line = row.line;
            }
            self.rows_raised += 1;
            row.request.input_tok = 1;
        }
        true
    }
}

/// Trace time of a file time. `zero_ns` is never later where the caller kept its promise.
pub(super) fn trace_time(at_ns: i64, zero_ns: i64) -> Nanos {
    Nanos(at_ns.saturating_sub(zero_ns).max(0).unsigned_abs())
}
