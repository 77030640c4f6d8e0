//! `BurstGPT`'s traces: columns by name, since the third file inserts two among those of the others.
//!
//! Times are whole seconds from an origin of the recorder's own; the first row becomes trace time 0.
//! A response of 0 tokens is a failed request. The model is the class; elapsed time is end to end, and
//! is not replayed.

use super::TimeUnit;
use super::error::{Fault, TraceError};
use super::number::float_time_ns;
use super::rows::{Parsed, ReadRow};
use super::table::Table;
use super::words::Words;
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

/// Reads rows of one file.
pub(super) struct BurstGpt {
    table: Table<8>,
    unit: TimeUnit,
    models: Words,
}

impl BurstGpt {
    pub(super) fn new(
        header: &[u8],
        file: &str,
        line: u64,
        unit: TimeUnit,
    ) -> Result<Self, TraceError> {
        let table = Table::new(header, &NAMES, REQUIRED, file, line)?;
        Ok(Self { table, unit, models: Words::default() })
    }
}

impl ReadRow for BurstGpt {
    fn ignored(&self) -> Vec<String> {
        self.table.unknown()
    }

    fn read(&mut self, line: &[u8]) -> Result<Option<Parsed>, Fault> {
        self.table.split(line)?;
        let at_ns = self.table.read(line, 0, |text| float_time_ns(text, self.unit))?;
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
