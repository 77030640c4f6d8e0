//! The plan as CSV (`--plan`): what is written is also what the plan's hash is taken over.
//!
//! Prompts, messages and bodies that a trace gives in words are deliberately not in it.

use std::io::{self, Write};

use super::Planned;
use crate::columns::{WriteCell, columns, number, write_header, write_line};
use crate::trace::Request;

columns! {
    /// The columns of a plan, in order.
    pub const PLAN_COLUMNS: |planned: &Planned| {
        /// Row, from 0; of a cloned or repeated trace, counted on.
        "row" = planned.request.row;
        /// Session, as the trace names it. Empty: the trace has none.
        "session" = planned.request.session.as_deref();
        /// Turn in its session, from 1. Empty: the trace has no sessions.
        "turn" = planned.request.turn;
        /// Traffic class. Empty: the trace has none.
        "class" = planned.request.class.as_deref();
        /// When it leaves, from the start of the run. Empty: a finished request decides.
        "due_s" in S = planned.due;
        /// Prompt tokens asked for.
        "input_tok" in Tok = planned.request.input_tok;
        /// Completion tokens asked for. Empty: the answer ends by itself.
        "output_tok" in Tok = planned.request.output_tok;
        /// Ids of the blocks that its prompt begins with, with spaces between. Empty: the trace has none.
        "blocks" = Blocks(&planned.request);
        /// 0-based row of the source.
        "source_row" = planned.request.source_row.unwrap_or(planned.request.row);
    }
}

struct Blocks<'a>(&'a Request);

impl<const U: u8> WriteCell<U> for Blocks<'_> {
    fn write(&self, line: &mut Vec<u8>) {
        for (at, block) in self.0.prefix.iter().flat_map(|prefix| &prefix.blocks).enumerate() {
            if at > 0 {
                line.push(b' ');
            }
            number(*block, 1, line);
        }
    }
}

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
    let mut line = Vec::new();
    write_header(PLAN_COLUMNS, &mut line);
    out.write_all(&line).map_err(PlanWriteError::Write)?;
    for planned in rows {
        line.clear();
        write_line(PLAN_COLUMNS, &planned.map_err(PlanWriteError::Rows)?, &mut line);
        out.write_all(&line).map_err(PlanWriteError::Write)?;
    }
    out.flush().map_err(PlanWriteError::Write)
}
