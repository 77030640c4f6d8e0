//! Azure's public traces: `TIMESTAMP,ContextTokens,GeneratedTokens`, with or without `NumImages`.
//!
//! One reader for the files of 2023, 2024 and 2025, whose time stamps differ (see [`DateReader`]). No
//! sessions, classes or prefixes: the files hold none. No allocation per row.

use super::super::date::DateReader;
use super::super::error::Fault;
use super::super::reader::{Definition, ReadRow, Reader, Syntax};
use super::super::row::Parsed;
use super::super::table::Table;
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
    ..Definition::new(Reader::Rows(|opening| {
        let table = Table::new(opening, &NAMES, REQUIRED)?;
        Ok(Box::new(Azure { table, dates: DateReader::default() }))
    }))
};

/// Reads rows of one file.
struct Azure {
    table: Table<4>,
    dates: DateReader,
}

impl ReadRow for Azure {
    fn ignored(&self) -> Vec<String> {
        let images = self.table.has(3).then(|| NAMES[3].to_owned());
        images.into_iter().chain(self.table.unknown()).collect()
    }

    fn read(&mut self, line: &[u8]) -> Result<Option<Parsed>, Fault> {
        let Self { table, dates } = self;
        table.split(line)?;
        let at_ns = table.read(line, 0, |text| dates.read_alike(text))?;
        let request = Request {
            input_tok: table.tokens(line, 1)?,
            output_tok: Some(table.tokens(line, 2)?),
            ..Request::default()
        };
        Ok(Some(Parsed { at_ns, request }))
    }
}
