//! `BurstGPT`'s traces: columns by name, since the third file inserts two among those of the others.
//!
//! Times are whole seconds from an origin of the recorder's own; the first row becomes trace time 0.
//! A response of 0 tokens is a failed request. The model is the class; elapsed time is end to end, and
//! is not replayed.

use super::super::error::{Fault, TraceError};
use super::super::number::TimeUnit;
use super::super::reader::{Definition, Opening, ReadRow, Reader, Syntax};
use super::super::row::Interner;
use super::super::row::Parsed;
use super::super::table::Table;
use crate::trace::Request;

const NAMES: [&str; 8] = [
    "Timestamp",
    "Request tokens",
    "Response tokens",
    "Model",
    "Session ID",
    "Elapsed time",
    "Total tokens",
    "Log Type",
];
const REQUIRED: usize = 3;

pub(super) const FORMAT: Definition = Definition {
    name: "burstgpt",
    syntaxes: &[Syntax::Csv],
    signs: &[&["Request tokens"], &["Response tokens"]],
    wants_turns: true,
    has_blocks: false,
    ..Definition::new(Reader::Rows(|opening| Ok(Box::new(BurstGpt::new(opening)?))))
};

/// Reads rows of one file.
struct BurstGpt {
    table: Table<8>,
    unit: TimeUnit,
    models: Interner,
}

impl BurstGpt {
    fn new(opening: &Opening<'_>) -> Result<Self, TraceError> {
        let table = Table::new(opening, &NAMES, REQUIRED)?;
        Ok(Self { table, unit: opening.unit, models: Interner::default() })
    }
}

impl ReadRow for BurstGpt {
    fn ignored(&self) -> Vec<String> {
        self.table.unknown()
    }

    fn read(&mut self, line: &[u8]) -> Result<Option<Parsed>, Fault> {
        self.table.split(line)?;
        let at_ns = self.table.time(line, 0, self.unit)?;
        let class = self.table.word(line, 3)?.map(|name| self.models.shared(name));
        let request = Request {
            input_tok: self.table.tokens(line, 1)?,
            output_tok: Some(self.table.tokens(line, 2)?),
            session: self.table.word(line, 4)?.map(Into::into),
            class,
            ..Request::default()
        };
        Ok(Some(Parsed { at_ns, request }))
    }
}
