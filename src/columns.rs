//! A CSV file as one list of columns. A column says its name, its unit, what it means and how its cell comes
//! from a row; from that list come the header, the writer, the reader and `docs/columns.md`, so that none
//! can disagree with another.
//!
//! [`csv_row!`] makes the list from the fields of a struct, which can be read back; [`columns!`] from
//! expressions over any row. In both the doc comment is the meaning, and what follows `Empty:` in it says
//! when the cell is empty. Cells are appended to one line that is used again: none is allocated.
//! Deliberately absent: files, and what any column is about.

use std::io::{Read, Write as _};
use std::sync::Arc;

use crate::units::{NS_PER_MS, NS_PER_S, Nanos};

/// A column of a CSV file. `F` makes its cell: of files that are only written, `fn(&Row, &mut Vec<u8>)`.
#[derive(Clone, Copy, Debug)]
pub struct Column<F> {
    /// As in the header.
    pub name: &'static str,
    /// What the figures are counted in; empty where they are words or plain counts.
    pub unit: &'static str,
    /// The doc comment.
    pub doc: &'static str,
    /// Makes the cell.
    pub cell: F,
}

impl<F> Column<F> {
    /// What stands in it.
    #[must_use]
    pub fn meaning(&self) -> &'static str {
        self.doc.split_once("Empty: ").map_or(self.doc, |(meaning, _)| meaning).trim()
    }

    /// The column without its cells, beside others.
    #[must_use]
    pub fn name_only(&self) -> Column<()> {
        Column { name: self.name, unit: self.unit, doc: self.doc, cell: () }
    }

    /// When the cell is empty; itself empty where it never is.
    #[must_use]
    pub fn empty(&self) -> &'static str {
        self.doc.split_once("Empty: ").map_or("", |(_, empty)| empty)
    }
}

/// The header, its line end included.
pub fn write_header<F>(columns: &[Column<F>], line: &mut Vec<u8>) {
    write_cells(columns, line, |column, line| text(column.name, line));
}

/// The line of a row, its end included.
pub fn write_line<R: ?Sized, F: Fn(&R, &mut Vec<u8>)>(
    columns: &[Column<F>],
    row: &R,
    line: &mut Vec<u8>,
) {
    write_cells(columns, line, |column, line| (column.cell)(row, line));
}

/// A line of any items, its end included.
pub fn write_cells<T>(items: &[T], line: &mut Vec<u8>, cell: impl Fn(&T, &mut Vec<u8>)) {
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            line.push(b',');
        }
        cell(item, line);
    }
    line.push(b'\n');
}

/// A struct whose fields are the columns of a file.
pub trait CsvRow: Sized + 'static {
    /// The columns, in order.
    const COLUMNS: &'static [Column<fn(&Self, &mut Vec<u8>)>];

    /// Reads a row back, cell by cell in the order of the columns.
    fn read(cells: &mut Cells<'_>) -> Result<Self, BadCell>;
}

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

/// A cell that does not parse.
#[derive(Clone, Copy, Debug)]
pub struct BadCell {
    /// The column's name.
    pub column: &'static str,
    /// What is wrong with the cell.
    pub problem: &'static str,
}

impl BadCell {
    /// A cell with a value that the column does not have.
    #[must_use]
    pub fn of(column: &'static str) -> Self {
        Self { column, problem: NO_VALUE }
    }
}

const NO_VALUE: &str = "no such value";

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
    pub fn read<U, T: ReadCell<U>>(&mut self) -> Result<T, BadCell> {
        let (column, place) = self.places[self.next];
        self.next += 1;
        T::read(self.text(place)).map_err(|problem| BadCell { column, problem })
    }

    fn text(&self, place: Option<usize>) -> &str {
        place.and_then(|place| self.record.get(place)).unwrap_or("")
    }

    fn error(&self, BadCell { column, problem }: BadCell) -> ReadError {
        let place = self.places.iter().find(|(name, _)| *name == column).and_then(|(_, at)| *at);
        let line = self.record.position().map_or(0, csv::Position::line);
        ReadError::Cell { line, column, value: self.text(place).to_owned(), problem }
    }
}

/// Reads `file` (told with its article), line by line, with [`CsvRow::read`] or what is built on it. Columns
/// are found by name, others are passed over, and the last `optional` of ours may be missing.
pub fn read_lines<T, F>(
    input: impl Read,
    file: &'static str,
    columns: &'static [Column<F>],
    optional: usize,
    read: impl Fn(&mut Cells<'_>) -> Result<T, BadCell>,
) -> Result<impl Iterator<Item = Result<T, ReadError>>, ReadError> {
    let mut reader = csv::Reader::from_reader(input);
    let header = reader.headers()?;
    let find = |name: &str| header.iter().position(|found| found == name);
    let places: Vec<_> = columns.iter().map(|column| (column.name, find(column.name))).collect();
    let mut needed = places[..places.len() - optional].iter();
    if let Some((column, _)) = needed.find(|(_, place)| place.is_none()) {
        return Err(ReadError::Missing { column, file });
    }
    Ok(reader.into_records().map(move |record| {
        let mut cells = Cells { record: &record?, places: &places, next: 0 };
        read(&mut cells).map_err(|bad| cells.error(bad))
    }))
}

/// Units that a column may have. They also say how a time is written.
pub mod unit {
    /// What a column's figures are counted in.
    pub trait Unit {
        /// As in the documentation.
        const NAME: &'static str;
    }

    macro_rules! units {
        ($($(#[$meta:meta])+ $name:ident: $text:literal),+ $(,)?) => { $(
            $(#[$meta])+
            #[derive(Clone, Copy, Debug)]
            pub enum $name {}

            impl Unit for $name {
                const NAME: &'static str = $text;
            }
        )+ };
    }

    units! {
        /// Words, yes or no, plain counts.
        Plain: "",
        /// Tokens.
        Tok: "tok",
        /// Tokens per second.
        TokS: "tok/s",
        /// Requests per second.
        ReqS: "req/s",
        /// A share of one.
        Share: "share",
        /// Cores of the processor.
        Cores: "cores",
        /// Seconds; a time carries nine decimals.
        S: "s",
        /// Milliseconds; a time carries six decimals.
        Ms: "ms",
        /// Nanoseconds.
        Ns: "ns",
        /// Squared nanoseconds.
        Ns2: "ns²",
        /// Millions of bytes.
        Mb: "MB",
    }
}

/// A value as the cell of a column in unit `U`.
pub trait WriteCell<U> {
    /// Appends its text, in quotes where CSV needs them.
    fn write(&self, line: &mut Vec<u8>);
}

/// A value that can be read back from a cell; the error completes "`3` is …".
pub trait ReadCell<U>: Sized {
    /// Reads the cell's text.
    fn read(text: &str) -> Result<Self, &'static str>;
}

/// An enumeration whose values are words.
pub trait Word: Copy + PartialEq + 'static {
    /// Its values, and the word for each.
    const WORDS: &'static [(Self, &'static str)];
    /// What any other word is.
    const NONE: &'static str = NO_VALUE;

    /// The word.
    #[must_use]
    fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(value, _)| *value == self).map_or("", |(_, word)| word)
    }

    /// Reads it back.
    #[must_use]
    fn parse(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(_, w)| *w == word).map(|(value, _)| *value)
    }
}

impl<U, T: Word> WriteCell<U> for T {
    fn write(&self, line: &mut Vec<u8>) {
        line.extend_from_slice(self.word().as_bytes());
    }
}

impl<U, T: Word> ReadCell<U> for T {
    fn read(text: &str) -> Result<Self, &'static str> {
        T::parse(text).ok_or(T::NONE)
    }
}

impl<U, T: WriteCell<U>> WriteCell<U> for Option<T> {
    fn write(&self, line: &mut Vec<u8>) {
        if let Some(value) = self {
            value.write(line);
        }
    }
}

impl<U, T: ReadCell<U>> ReadCell<U> for Option<T> {
    fn read(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() { Ok(None) } else { T::read(text).map(Some) }
    }
}

impl<U> WriteCell<U> for &str {
    fn write(&self, line: &mut Vec<u8>) {
        text(self, line);
    }
}

macro_rules! texts {
    ($($type:ty),+) => { $(
        impl<U> WriteCell<U> for $type {
            fn write(&self, line: &mut Vec<u8>) {
                text(self, line);
            }
        }

        impl<U> ReadCell<U> for $type {
            fn read(text: &str) -> Result<Self, &'static str> {
                Ok(text.into())
            }
        }
    )+ };
}
texts!(String, Arc<str>);

/// Cells of values that Rust itself writes as CSV wants them.
macro_rules! displayed {
    ($($type:ty: |$value:ident, $line:ident| $write:expr),+ $(,)?) => { $(
        impl<U> WriteCell<U> for $type {
            fn write(&self, $line: &mut Vec<u8>) {
                let $value = self;
                $write;
            }
        }

        impl<U> ReadCell<U> for $type {
            fn read(text: &str) -> Result<Self, &'static str> {
                read_value(text)
            }
        }
    )+ };
}
displayed!(
    bool: |value, line| line.extend_from_slice(if *value { b"true" } else { b"false" }),
    u16: |value, line| number((*value).into(), 1, line),
    u32: |value, line| number((*value).into(), 1, line),
    u64: |value, line| number(*value, 1, line),
    usize: |value, line| number(*value as u64, 1, line),
    u128: |value, line| shown(value, line),
    f64: |value, line| shown(value, line),
);

macro_rules! times {
    ($($unit:ident: $ns:expr, $digits:literal, $parse:expr, $problem:literal);+ $(;)?) => { $(
        impl WriteCell<unit::$unit> for Nanos {
            fn write(&self, line: &mut Vec<u8>) {
                number(self.0 / $ns, 1, line);
                line.push(b'.');
                number(self.0 % $ns, $digits, line);
            }
        }

        impl ReadCell<unit::$unit> for Nanos {
            fn read(text: &str) -> Result<Self, &'static str> {
                $parse(text).map_err(|_| $problem)
            }
        }
    )+ };
}
times!(
    S: NS_PER_S, 9, Self::parse_seconds, "no number of seconds";
    Ms: NS_PER_MS, 6, Self::parse_millis, "no number of milliseconds";
);

impl WriteCell<unit::Ns> for Nanos {
    fn write(&self, line: &mut Vec<u8>) {
        number(self.0, 1, line);
    }
}

impl ReadCell<unit::Ns> for Nanos {
    fn read(text: &str) -> Result<Self, &'static str> {
        read_value(text).map(Self)
    }
}

/// Reads a value that has no empty form.
pub fn read_value<T: std::str::FromStr>(text: &str) -> Result<T, &'static str> {
    text.parse().map_err(|_| if text.is_empty() { "empty" } else { NO_VALUE })
}

/// Appends a value as it prints itself, which needs no quotes.
pub fn shown(value: impl std::fmt::Display, line: &mut Vec<u8>) {
    write!(line, "{value}").expect("a vector grows");
}

/// Appends decimal digits, with zeros before them up to `width`: without the formatting machinery, since a
/// plan's row may have hundreds of block ids and a stream thousands of events.
pub fn number(mut value: u64, width: usize, line: &mut Vec<u8>) {
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    while value > 0 {
        at -= 1;
        digits[at] = b'0' + u8::try_from(value % 10).expect("a digit");
        value /= 10;
    }
    line.extend_from_slice(&digits[at.min(digits.len() - width)..]);
}

/// Appends text, in quotes where CSV needs them.
fn text(text: &str, line: &mut Vec<u8>) {
    if !text.bytes().any(|byte| b",\"\r\n".contains(&byte)) {
        line.extend_from_slice(text.as_bytes());
        return;
    }
    line.push(b'"');
    for byte in text.bytes() {
        if byte == b'"' {
            line.push(b'"');
        }
        line.push(byte);
    }
    line.push(b'"');
}

/// A unit's type; [`unit::Plain`] where none is named.
macro_rules! unit_of {
    () => {
        $crate::columns::unit::Plain
    };
    ($unit:ident) => {
        $crate::columns::unit::$unit
    };
}

/// One [`Column`].
macro_rules! column {
    ($name:literal, $($unit:ident)?, [$($doc:literal)+], $cell:expr) => {
        $crate::columns::Column {
            name: $name,
            unit: <$crate::columns::unit_of!($($unit)?) as $crate::columns::unit::Unit>::NAME,
            doc: concat!($($doc),+),
            cell: $cell,
        }
    };
}

/// Defines a struct whose fields are the columns of a file: `field: type => "column" in Unit`.
macro_rules! csv_row {
    (
        $(#[$meta:meta])*
        $vis:vis struct $Row:ident {
            $(
                $(#[doc = $doc:literal])+
                $field_vis:vis $field:ident: $type:ty => $name:literal $(in $unit:ident)?
            ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        $vis struct $Row {
            $($(#[doc = $doc])+ $field_vis $field: $type),+
        }

        impl $crate::columns::CsvRow for $Row {
            const COLUMNS: &'static [$crate::columns::Column<fn(&Self, &mut Vec<u8>)>] = &[$(
                $crate::columns::column!($name, $($unit)?, [$($doc)+], |row, line| {
                    $crate::columns::WriteCell::<$crate::columns::unit_of!($($unit)?)>::write(
                        &row.$field,
                        line,
                    );
                }),
            )+];

            fn read(
                cells: &mut $crate::columns::Cells<'_>,
            ) -> Result<Self, $crate::columns::BadCell> {
                Ok(Self {
                    $($field: cells.read::<$crate::columns::unit_of!($($unit)?), _>()?),+
                })
            }
        }
    };
}

/// Defines the columns of a file that is only written: `"column" in Unit = expression over the row;`. With
/// `-> Type` the expression is the cell as it stands, for files that CSV is only one form of.
macro_rules! columns {
    (
        $(#[$meta:meta])*
        $vis:vis const $COLUMNS:ident: |$row:ident: &$Row:ty| {
            $($(#[doc = $doc:literal])+ $name:literal $(in $unit:ident)? = $value:expr;)+
        }
    ) => {
        $(#[$meta])*
        $vis const $COLUMNS: &[$crate::columns::Column<fn(&$Row, &mut Vec<u8>)>] = &[$(
            $crate::columns::column!($name, $($unit)?, [$($doc)+], {
                fn cell($row: &$Row, line: &mut Vec<u8>) {
                    $crate::columns::WriteCell::<$crate::columns::unit_of!($($unit)?)>::write(
                        &$value,
                        line,
                    );
                }
                cell
            }),
        )+];
    };
    (
        $(#[$meta:meta])*
        $vis:vis const $COLUMNS:ident: |$row:ident: &$Row:ty| -> $Cell:ty {
            $($(#[doc = $doc:literal])+ $name:literal $(in $unit:ident)? = $value:expr;)+
        }
    ) => {
        $(#[$meta])*
        $vis const $COLUMNS: &[$crate::columns::Column<fn(&$Row) -> $Cell>] = &[$(
            $crate::columns::column!($name, $($unit)?, [$($doc)+], {
                fn cell($row: &$Row) -> $Cell {
                    $value
                }
                cell
            }),
        )+];
    };
}

pub(crate) use {column, columns, csv_row, unit_of};
