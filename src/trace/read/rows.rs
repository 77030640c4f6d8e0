//! Lines into rows: the format's reader, the row's number, and the place of every fault.
//!
//! Rows come in the order of the file, with the times of the file; sorting and the trace's zero are
//! [`super::order`]'s, counting is [`super::scan`]'s.

use std::io::{Read, Seek};
use std::sync::Arc;

use super::error::{Fault, TraceError};
use super::formats::Format;
use super::lines::LineReader;
use super::number::TimeUnit;
use super::options::{Failed, ReadOptions};
use super::reader::{Opening, ReadRow, Reader};
use super::row::Row;
use super::sniff::syntax_of;
use super::source::line_error;

/// Reads rows of one format from lines.
pub(super) struct RowReader<R> {
    lines: LineReader<R>,
    parser: Box<dyn ReadRow>,
    name: Arc<str>,
    next_row: u64,
    skipped: u64,
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
        let (definition, syntax) = (format.definition(), syntax_of(&first.0));
        let Reader::Rows(new) = definition.reader else {
            unreachable!("a format of documents is opened as one");
        };
        let parser = new(&Opening {
            first: &first.0,
            line: first.1,
            file: &name,
            syntax,
            unit: options.time_unit.or(definition.unit).unwrap_or(TimeUnit::S),
            block_tok: options.block_tok,
        })?;
        if !definition.has_header(syntax) {
            lines.unread();
        }
        Ok(Self { lines, parser, name, next_row: 0, skipped: 0 })
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
                Ok(Some(parsed)) => parsed,
                Ok(None) => {
                    self.next_row += 1;
                    self.skipped += 1;
                    continue;
                }
                Err(fault) => {
                    let is_torn = !line.whole && looks_cut(line.bytes, &fault);
                    return Err(fault.located(&self.name, number, is_torn));
                }
            };
            if !line.whole && parsed.request.output_tok.is_none() && line.bytes.ends_with(b",") {
                // Whether the row ends here, or the file was cut before its length, nobody can tell.
                let what = "is empty in a last line without a line break: end the line with one, or the file \
                            was cut here";
                return Err(Fault::at("output_tok", what).located(&self.name, number, true));
            }
            let tok = parsed.request.input_tok.max(parsed.request.output_tok.unwrap_or(0));
            if tok > LIMIT_TOK {
                let file = self.name.to_string();
                return Err(TraceError::TooLong { file, line: number, tok, limit: LIMIT_TOK });
            }
            let mut row =
                Row { at_ns: parsed.at_ns, line: number, offset, request: parsed.request };
            // A file that was made of another says which row of that each of its own was.
            row.request.row = row.request.source_row.take().unwrap_or(self.next_row);
            self.next_row += 1;
            return Ok(Some(row));
        }
    }

    /// What the format makes of its lines, so far.
    pub(super) fn format(&self) -> &dyn ReadRow {
        &*self.parser
    }

    /// Lines so far that are no request.
    pub(super) fn skipped(&self) -> u64 {
        self.skipped
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
    /// Rows that ask for no completion length.
    pub(super) rows_natural: u64,
    /// Kept rows whose prompt was raised from 0 to 1 token.
    pub(super) rows_raised: u64,
    /// Line of the first of those.
    pub(super) first_raised_line: u64,
}

impl Tally {
    /// Applies what holds for rows of every format. False: the row is dropped.
    pub(super) fn admit(&mut self, row: &mut Row, failed: Failed) -> bool {
        self.rows_read += 1;
        self.rows_natural += u64::from(row.request.output_tok.is_none());
        if row.request.output_tok == Some(0) {
            self.rows_failed += 1;
            match failed {
                Failed::Drop => return false,
                Failed::Keep => row.request.output_tok = Some(1),
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
