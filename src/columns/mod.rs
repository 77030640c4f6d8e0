//! A CSV file as one list of columns. A column says its name, its unit, what it means and how its cell comes
//! from a row; from that list come the header, the writer, the reader and `docs/columns.md`, so that none
//! can disagree with another.
//!
//! `csv_row!` makes the list from the fields of a struct, which can be read back; `columns!` from
//! expressions over any row. In both the doc comment is the meaning, and what follows `Empty:` in it says
//! when the cell is empty. Cells are appended to one line that is used again: none is allocated.
//! Deliberately absent: files, and what any column is about.

mod cell;
mod read;

pub use cell::{NO_SUCH_VALUE, PLAIN, ReadCell, Unit, Word, WriteCell};
pub(crate) use cell::{number, read_value, shown};
pub use read::{Cells, ReadError, read_lines};

/// Appends the cell that comes from a row.
pub type WriteFn<R> = fn(&R, &mut Vec<u8>);

/// A column of a CSV file. `F` makes its cell, in most files as a [`WriteFn`].
#[derive(Clone, Copy, Debug)]
pub struct Column<F> {
    /// As in the header.
    pub name: &'static str,
    /// What the figures are counted in.
    pub unit: Unit,
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
    write_cells(columns, line, |column, line| cell::text(column.name, line));
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
    const COLUMNS: &'static [Column<WriteFn<Self>>];

    /// Reads a row back, cell by cell in the order of the columns.
    fn read(cells: &mut Cells<'_>) -> Result<Self, ReadError>;
}

/// A [`Unit`]; none where none is named.
macro_rules! unit_of {
    () => {
        $crate::columns::Unit::Plain
    };
    ($unit:ident) => {
        $crate::columns::Unit::$unit
    };
}

/// One [`Column`].
macro_rules! column {
    ($name:literal, $($unit:ident)?, [$($doc:literal)+], $cell:expr) => {
        $crate::columns::Column {
            name: $name,
            unit: $crate::columns::unit_of!($($unit)?),
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
            $crate::columns::columns! {
                const COLUMNS: |row: &$Row| {
                    $($(#[doc = $doc])+ $name $(in $unit)? = row.$field;)+
                }
            }

            fn read(
                cells: &mut $crate::columns::Cells<'_>,
            ) -> Result<Self, $crate::columns::ReadError> {
                Ok(Self {
                    $($field: cells.read::<{ $crate::columns::unit_of!($($unit)?) as u8 }, _>()?),+
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
        $vis const $COLUMNS: &'static [$crate::columns::Column<fn(&$Row, &mut Vec<u8>)>] = &[$(
            $crate::columns::column!($name, $($unit)?, [$($doc)+], {
                fn cell($row: &$Row, line: &mut Vec<u8>) {
                    $crate::columns::WriteCell::<{ $crate::columns::unit_of!($($unit)?) as u8 }>::write(
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
        $vis const $COLUMNS: &'static [$crate::columns::Column<fn(&$Row) -> $Cell>] = &[$(
            $crate::columns::column!($name, $($unit)?, [$($doc)+], {
                #[allow(clippy::unnecessary_wraps, reason = "all cells are of one type")]
                fn cell($row: &$Row) -> $Cell {
                    $value
                }
                cell
            }),
        )+];
    };
}

/// Defines an enumeration whose values are words: `Variant = "word"`. With `: "noun"`, an error calls any
/// other word no such noun.
macro_rules! words {
    (
        $(#[$meta:meta])*
        $vis:vis enum $Name:ident $(: $noun:literal)? {
            $($(#[$doc:meta])* $Variant:ident = $word:literal),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $Name {
            $($(#[$doc])* $Variant),+
        }

        impl $crate::columns::Word for $Name {
            const ALL: &'static [Self] = &[$(Self::$Variant),+];
            const NONE: &'static str = $crate::columns::none_of!($($noun)?);

            fn word(self) -> &'static str {
                match self {
                    $(Self::$Variant => $word),+
                }
            }
        }
    };
}

/// What a word that is none of an enumeration's is called.
macro_rules! none_of {
    () => {
        $crate::columns::NO_SUCH_VALUE
    };
    ($noun:literal) => {
        concat!("no ", $noun)
    };
}

pub(crate) use {column, columns, csv_row, none_of, unit_of, words};
