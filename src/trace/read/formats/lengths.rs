//! Length files of vidur, etalon and sarathi: prompt and completion tokens, and perhaps `arrived_at`.
//!
//! Without that column rows have no times at all; somebody else has to say when they arrive.

use super::super::error::{Fault, TraceError};
use super::super::number::TimeUnit;
use super::super::reader::{Definition, Opening, ReadRow, Reader, Syntax};
use super::super::row::Parsed;
use super::super::table::Table;
use crate::trace::Request;

const NAMES: [&str; 5] =
    ["num_prefill_tokens", "num_decode_tokens", "arrived_at", "num_total_tokens", "pd_ratio"];
const REQUIRED: usize = 2;

pub(super) const FORMAT: Definition = Definition {
    name: "lengths",
    looks: " (vidur, etalon)",
    syntaxes: &[Syntax::Csv],
    signs: &[&["num_prefill_tokens"], &["num_decode_tokens"]],
    has_blocks: false,
    ..Definition::new(Reader::Rows(|opening| Ok(Box::new(Lengths::new(opening)?))))
};

/// Reads rows of one file.
struct Lengths {
    table: Table<5>,
    unit: TimeUnit,
}

impl Lengths {
    fn new(opening: &Opening<'_>) -> Result<Self, TraceError> {
        Ok(Self { table: Table::new(opening, &NAMES, REQUIRED)?, unit: opening.unit })
    }
}

impl ReadRow for Lengths {
    fn ignored(&self) -> Vec<String> {
        self.table.unknown()
    }

    fn has_times(&self) -> bool {
        self.table.has(2)
    }

    fn read(&mut self, line: &[u8]) -> Result<Option<Parsed>, Fault> {
        self.table.split(line)?;
        let at_ns = if self.table.has(2) { self.table.time(line, 2, self.unit)? } else { 0 };
        let request = Request {
            input_tok: self.table.tokens(line, 0)?,
            output_tok: Some(self.table.tokens(line, 1)?),
            ..Request::default()
        };
        Ok(Some(Parsed { at_ns, request }))
    }
}
