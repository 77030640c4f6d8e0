//! Azure's public traces: `TIMESTAMP,ContextTokens,GeneratedTokens`, with or without `NumImages`.
//!
//! One reader for the files of 2023, 2024 and 2025, whose time stamps differ (see [`DateReader`]). No
//! sessions, classes or prefixes: the files hold none. No allocation per row.

use super::super::date::DateReader;
use super::super::error::{Fault, TraceError};
use super::super::number::token_count;
use super::super::reader::{Definition, Opening, ReadRow, Reader, Syntax};
use super::super::row::Parsed;
use super::super::table::{Columns, Fields};
use crate::trace::Request;

const NAMES: [&str; 4] = ["TIMESTAMP", "ContextTokens", "GeneratedTokens", "NumImages"];
const REQUIRED: usize = 3;

pub(super) const FORMAT: Definition = Definition {
    name: "azure",
    looks: " (CSV with TIMESTAMP,ContextTokens,GeneratedTokens)",
    syntaxes: &[Syntax::Csv],
    signs: &[&["TIMESTAMP"], &["ContextTokens"]],
    unit: None,
    has_blocks: false,
    ..Definition::new(Reader::Rows(|opening| Ok(Box::new(Azure::new(opening)?))))
};

/// Reads rows of one file.
struct Azure {
    columns: Columns<4>,
    /// Places of the required columns.
    places: [usize; REQUIRED],
    fields: Fields,
    dates: DateReader,
}

impl Azure {
    fn new(opening: &Opening<'_>) -> Result<Self, TraceError> {
        let columns = Columns::read(opening, &NAMES, REQUIRED)?;
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
