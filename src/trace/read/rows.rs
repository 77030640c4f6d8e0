//! Lines into rows: the format's reader, the row's number, and the place of every fault.
//!
//! Rows come in the order of the file, with the times of the file; sorting and the trace's zero are
//! [`super::order`]'s, counting is [`super::scan`]'s.

use std::io::{Read, Seek};
use std::sync::Arc;

use super::azure::Azure;
use super::bailian::{self, Bailian};
use super::blocks::Fit;
use super::burstgpt::BurstGpt;
use super::dynamo::Dynamo;
use super::error::{Fault, TraceError};
use super::lengths::Lengths;
use super::lines::LineReader;
use super::litellm::LiteLlm;
use super::mooncake::{self, Mooncake};
use super::native::{NativeCsv, NativeJson};
use super::ragpulse::RagPulse;
use super::sglang::SgLang;
use super::sniff::{Dress, dress};
use super::source::line_error;
use super::tracelab::{self, Replay, Rounds};
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

/// What a format makes of its lines.
pub(super) trait ReadRow: Send {
    /// Reads one line; `None` where it is no request.
    fn read(&mut self, line: &[u8]) -> Result<Option<Parsed>, Fault>;

    /// Columns or keys met so far that are not replayed.
    fn ignored(&self) -> Vec<String>;

    /// What else should be known of the rows read so far, a line each.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether a row may depend on lines before it, so that none can be read by itself.
    fn leans(&self) -> bool {
        false
    }

    /// Whether rows have times at all.
    fn has_times(&self) -> bool {
        true
    }

    /// Whether times of all rows count from one origin, and not each session's from its own start.
    fn has_common_clock(&self) -> bool {
        true
    }
}

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
        let (first, number) = (&first.0[..], first.1);
        let dress = dress(first);
        let parser = parser(format, dress, first, options, &name, number)?;
        if !has_header(format, dress) {
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

/// Whether the first line is a header.
fn has_header(format: Format, dress: Dress) -> bool {
    match format {
        Format::Azure | Format::BurstGpt | Format::Lengths | Format::TraceLabReplay => true,
        Format::Native | Format::LiteLlm => dress == Dress::Csv,
        _ => false,
    }
}

/// The reader of a format, which gets the first line where that is a header.
fn parser(
    format: Format,
    dress: Dress,
    first: &[u8],
    options: &ReadOptions,
    file: &str,
    line: u64,
) -> Result<Box<dyn ReadRow>, TraceError> {
    let unit = options.time_unit.or(format.unit()).unwrap_or(TimeUnit::S);
    let block_tok = options.block_tok;
    let mooncake = |usual: u32, fit| Mooncake::new(unit, block_tok.unwrap_or(usual), fit);
    Ok(match format {
        Format::Azure => Box::new(Azure::new(first, file, line)?),
        Format::BurstGpt => Box::new(BurstGpt::new(first, file, line, unit)?),
        Format::Lengths => Box::new(Lengths::new(first, file, line, unit)?),
        Format::Mooncake => Box::new(mooncake(mooncake::BLOCK_TOK, Fit::Partial)),
        Format::TimedTrace => Box::new(mooncake(bailian::BLOCK_TOK, Fit::Either)),
        Format::Bailian => Box::new(Bailian::new(unit, block_tok.unwrap_or(bailian::BLOCK_TOK))),
        Format::RagPulse => Box::new(RagPulse::new(unit, block_tok)),
        Format::TraceLab => Box::new(Rounds::new(block_tok.unwrap_or(tracelab::BLOCK_TOK))),
        Format::TraceLabReplay => {
            let block_tok = block_tok.unwrap_or(tracelab::BLOCK_TOK);
            Box::new(Replay::new(first, file, line, unit, block_tok)?)
        }
        Format::LiteLlm if dress == Dress::Csv => Box::new(LiteLlm::csv(first, file, line)?),
        Format::LiteLlm => Box::new(LiteLlm::json()),
        Format::Dynamo => Box::new(Dynamo::new(unit, block_tok)),
        Format::SgLang => Box::new(SgLang::default()),
        Format::Native if dress == Dress::Csv => {
            Box::new(NativeCsv::new(first, file, line, unit, block_tok)?)
        }
        // Those that are read as a whole never come here.
        Format::Native | Format::Weka | Format::Otel => Box::new(NativeJson::new(unit, block_tok)),
    })
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

/// Trace time of a file time. `zero_ns` is never later where the caller kept its promise.
pub(super) fn trace_time(at_ns: i64, zero_ns: i64) -> Nanos {
    Nanos(at_ns.saturating_sub(zero_ns).max(0).unsigned_abs())
}
