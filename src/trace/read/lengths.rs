//! Length files of vidur, etalon and sarathi: prompt and completion tokens, and perhaps `arrived_at`.
//!
//! Without that column rows have no times at all; somebody else has to say when they arrive.

use super::TimeUnit;
use super::error::{Fault, TraceError};
use super::number::float_time_ns;
use super::rows::{Parsed, ReadRow};
use super::table::Table;
use crate::trace::Request;

const NAMES: [&str; 5] =
    ["num_prefill_tokens", "num_decode_tokens", "arrived_at", "num_total_tokens", "pd_ratio"];
const REQUIRED: usize = 2;

/// Reads rows of one file.
pub(super) struct Lengths {
    table: Table<5>,
    unit: TimeUnit,
}

impl Lengths {
    pub(super) fn new(
        header: &[u8],
        file: &str,
        line: u64,
        unit: TimeUnit,
    ) -> Result<Self, TraceError> {
        Ok(Self { table: Table::new(header, &NAMES, REQUIRED, file, line)?, unit })
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
        let at_ns = if self.table.has(2) {
            self.table.read(line, 2, |text| float_time_ns(text, self.unit))?
        } else {
            0
        };
        let request = Request {
            input_tok: self.table.tokens(line, 0)?,
            output_tok: Some(self.table.tokens(line, 1)?),
            ..Request::default()
        };
        Ok(Some(Parsed { at_ns, request }))
    }
}
