//! A CSV file read back: its columns found by name, its cells by the order of the definition.
//!
//! Deliberately absent: what a cell's text means (see [`super::cell`]).

use std::io::Read;

use super::{Column, ReadCell};

/// Why a CSV file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Not CSV, or it cannot be read.
    #[error(transparent)]
    Csv(#[from] csv::Error),
    /// A column is missing.
    #[error("column `{column}` is missing: is this {file}?")]
    Missing {
        /// The column's name.
        column: &'static str,
        /// What the file should be, with its article.
        file: &'static str,
    },
    /// A cell does not parse.
    #[error("line {line}, column `{column}`: `{value}` is {problem}")]
    Cell {
        /// 1-based line of the file.
        line: u64,
        /// The column's name.
        column: &'static str,
        /// What stands there.
        value: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

/// The cells of one line of a file, read one after the other.
#[derive(Debug)]
pub struct Cells<'a> {
    record: &'a csv::StringRecord,
    /// The columns, and where in the file they stand.
    places: &'a [(&'static str, Option<usize>)],
    next: usize,
}

impl Cells<'_> {
    /// The next cell, of a figure in unit `U`.
    pub fn read<const U: u8, T: ReadCell<U>>(&mut self) -> Result<T, ReadError> {
        let (column, place) = self.places[self.next];
        self.next += 1;
        T::read(self.text(place)).map_err(|problem| self.bad(column, problem))
    }

    fn text(&self, place: Option<usize>) -> &str {
        place.and_then(|place| self.record.get(place)).unwrap_or("")
    }

    /// The error of a cell.
    #[must_use]
    pub fn bad(&self, column: &'static str, problem: &'static str) -> ReadError {
        let place = self.places.iter().find(|(name, _)| *name == column).and_then(|(_, at)| *at);
        let line = self.record.position().map_or(0, csv::Position::line);
        ReadError::Cell { line, column, value: self.text(place).to_owned(), problem }
    }
}

/// Reads `file` (told with its article), line by line, with [`CsvRow::read`](super::CsvRow::read) or what is built on it. Columns
/// are found by name, others are passed over, and the last `optional` of ours may be missing.
pub fn read_lines<T, F>(
    input: impl Read,
    file: &'static str,
    columns: &'static [Column<F>],
    optional: usize,
    read: impl Fn(&mut Cells<'_>) -> Result<T, ReadError>,
) -> Result<impl Iterator<Item = Result<T, ReadError>>, ReadError> {
    let mut reader = csv::Reader::from_reader(input);
    let header = reader.headers()?;
    let find = |name: &str| header.iter().position(|found| found == name);
    let places: Vec<_> = columns.iter().map(|column| (column.name, find(column.name))).collect();
    let mut needed = places[..places.len() - optional].iter();
    if let Some((column, _)) = needed.find(|(_, place)| place.is_none()) {
        return Err(ReadError::Missing { column, file });
    }
    Ok(reader
        .into_records()
        .map(move |record| read(&mut Cells { record: &record?, places: &places, next: 0 })))
}
