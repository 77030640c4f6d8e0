//! Azure's public traces: `TIMESTAMP,ContextTokens,GeneratedTokens`, with or without `NumImages`.
//!
//! One reader for the files of 2023, 2024 and 2025, whose time stamps differ (see [`super::date`]). No
//! sessions, classes or prefixes: the files hold none. No allocation per row.

use super::date::DateReader;
use super::error::{Fault, TraceError};
use super::fields::{Columns, Fields};
use super::number::token_count;
use super::rows::{Parsed, ReadRow};
use crate::trace::Request;

const NAMES: [&str; 4] = ["TIMESTAMP", "ContextTokens", "GeneratedTokens", "NumImages"];
const REQUIRED: usize = 3;

/// Reads rows of one file.
pub(super) struct Azure {
    columns: Columns<4>,
    /// Places of the required columns.
    places: [usize; REQUIRED],
    fields: Fields,
    dates: DateReader,
}

impl Azure {
    pub(super) fn new(header: &[u8], file: &str, line: u64) -> Result<Self, TraceError> {
        let columns = Columns::read(header, &NAMES, REQUIRED, file, line)?;
        let places = [0, 1, 2].map(|known| {
            columns.places[known].expect("Columns::read refuses a header without these")
        });
        Ok(Self { columns, places, fields: Fields::new(), dates: DateReader::default() })
    }
}

impl ReadRow for Azure {
    fn ignored(&self) -> Vec<String> {
        let images = self.columns.places[3].map(|_| NAMES[3].to_owned());
        images.into_iter().chain(self.columns.unknown.iter().cloned()).collect()
    }

    fn read(&mut self, line: &[u8]) -> Result<Option<Parsed>, Fault> {
        self.fields.split(line)?;
        self.columns.check_count(&self.fields)?;
        let [time, input, output] = self.places.map(|place| self.fields.get(line, place));
        let at_ns = self.dates.read_alike(time).map_err(|what| Fault::at(NAMES[0], what))?;
        let input_tok = token_count(input).map_err(|what| Fault::at(NAMES[1], what))?;
        let output_tok = token_count(output).map_err(|what| Fault::at(NAMES[2], what))?;
        Ok(Some(Parsed {
            at_ns,
            request: Request { input_tok, output_tok: Some(output_tok), ..Request::default() },
        }))
    }
}
