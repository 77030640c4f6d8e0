//! A CSV file's rows by the names of their columns: places, cells, and faults that name the column.

use super::error::{Fault, TraceError};
use super::fields::{Columns, Fields};
use super::number::token_count;

/// Splits rows, and hands out cells by the place of their name.
pub(super) struct Table<const N: usize> {
    columns: Columns<N>,
    fields: Fields,
    names: &'static [&'static str; N],
}

impl<const N: usize> Table<N> {
    /// Reads a header, in which the first `required` names must stand.
    pub(super) fn new(
        header: &[u8],
        names: &'static [&'static str; N],
        required: usize,
        file: &str,
        line: u64,
    ) -> Result<Self, TraceError> {
        let columns = Columns::read(header, names, required, file, line)?;
        Ok(Self { columns, fields: Fields::new(), names })
    }

    pub(super) fn unknown(&self) -> Vec<String> {
        self.columns.unknown.clone()
    }

    pub(super) fn has(&self, name: usize) -> bool {
        self.columns.places[name].is_some()
    }

    /// Splits a row; the cells are then asked for with the same line.
    pub(super) fn split(&mut self, line: &[u8]) -> Result<(), Fault> {
        self.fields.split(line)?;
        self.columns.check_count(&self.fields)
    }

    /// A cell; `None` where it is empty or the column absent.
    pub(super) fn cell<'a>(&'a self, line: &'a [u8], name: usize) -> Option<&'a [u8]> {
        let place = self.columns.places[name]?;
        Some(self.fields.get(line, place)).filter(|text| !text.is_empty())
    }

    /// A cell as text.
    pub(super) fn word<'a>(
        &'a self,
        line: &'a [u8],
        name: usize,
    ) -> Result<Option<&'a str>, Fault> {
        let Some(cell) = self.cell(line, name) else { return Ok(None) };
        let text = std::str::from_utf8(cell);
        text.map(Some)
            .map_err(|_| Fault::at(self.names[name], "is not UTF-8; save the file as UTF-8"))
    }

    /// A token count that must be there.
    pub(super) fn tokens(&self, line: &[u8], name: usize) -> Result<u32, Fault> {
        self.read(line, name, token_count)
    }

    /// A cell, empty or not, by a reader of numbers or dates.
    pub(super) fn read<T>(
        &self,
        line: &[u8],
        name: usize,
        read: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> Result<T, Fault> {
        read(self.cell(line, name).unwrap_or_default())
            .map_err(|what| Fault::at(self.names[name], what))
    }
}
