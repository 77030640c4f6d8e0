//! The plan as CSV (`--plan`): what is written is also what the plan's hash is taken over.
//!
//! Prompts, messages and bodies that a trace gives in words are deliberately not in it.

use std::io::{self, Write};

use super::Planned;

/// The header line.
pub(super) const HEADER: &str =
    "row,session,turn,class,due_s,input_tok,output_tok,blocks,source_row\n";

/// Why a plan could not be written: the rows failed, or the file did.
#[derive(Debug, thiserror::Error)]
pub enum PlanWriteError<E> {
    /// The source of rows failed.
    #[error("{0}")]
    Rows(E),
    /// The file could not be written.
    #[error("cannot write the plan: {0}")]
    Write(#[source] io::Error),
}

/// Writes a plan row by row, as it comes.
///
/// Give `&mut plan` to keep the plan, and its facts, for afterwards; give a buffered `out`.
pub fn write_plan<W, I, E>(mut out: W, rows: I) -> Result<(), PlanWriteError<E>>
where
    W: Write,
    I: IntoIterator<Item = Result<Planned, E>>,
{
    let mut text = RowText::default();
    out.write_all(HEADER.as_bytes()).map_err(PlanWriteError::Write)?;
    for planned in rows {
        let planned = planned.map_err(PlanWriteError::Rows)?;
        out.write_all(text.of(&planned)).map_err(PlanWriteError::Write)?;
    }
    out.flush().map_err(PlanWriteError::Write)
}

/// One row as text, in a buffer that is used again.
#[derive(Debug, Default)]
pub(super) struct RowText {
    line: Vec<u8>,
}

impl RowText {
    /// The row's line, its end included.
    pub(super) fn of(&mut self, planned: &Planned) -> &[u8] {
        let request = &planned.request;
        let line = &mut self.line;
        line.clear();
        number(line, request.row);
        line.push(b',');
        quoted(line, request.session.as_deref());
        line.push(b',');
        if let Some(turn) = request.turn {
            number(line, turn.into());
        }
        line.push(b',');
        quoted(line, request.class.as_deref());
        line.push(b',');
        if let Some(due) = planned.due {
            write!(line, "{due}").expect("a vector grows");
        }
        line.push(b',');
        number(line, request.input_tok.into());
        line.push(b',');
        if let Some(output_tok) = request.output_tok {
            number(line, output_tok.into());
        }
        line.push(b',');
        for (at, &block) in request.prefix.iter().flat_map(|prefix| &prefix.blocks).enumerate() {
            if at > 0 {
                line.push(b' ');
            }
            number(line, block);
        }
        line.push(b',');
        number(line, request.source_row.unwrap_or(request.row));
        line.push(b'\n');
        line
    }
}

/// Decimal digits, without the formatting machinery: a Mooncake row has hundreds of block ids.
fn number(line: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(value % 10).expect("a digit");
        value /= 10;
        if value == 0 {
            break;
        }
    }
    line.extend_from_slice(&digits[at..]);
}

/// Text, in quotes where CSV needs them.
fn quoted(line: &mut Vec<u8>, text: Option<&str>) {
    let bytes = text.unwrap_or_default().as_bytes();
    if !bytes.iter().any(|byte| b",\"\r\n".contains(byte)) {
        line.extend_from_slice(bytes);
        return;
    }
    line.push(b'"');
    for &byte in bytes {
        if byte == b'"' {
            line.push(b'"');
        }
        line.push(byte);
    }
    line.push(b'"');
}
