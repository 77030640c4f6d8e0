//! What a format is to the reader of traces: what tells it, how its rows hang together, and who reads them.
//!
//! Each format has a file of its own in [`super::formats`] with one [`Definition`]; what it says holds for
//! every file of the format, and what differs from file to file is its [`ReadRow`]'s or [`ReadDocument`]'s.

use serde_json::value::RawValue;

use super::error::{Fault, TraceError};
use super::held::Held;
use super::number::TimeUnit;
use super::row::Parsed;

/// How the rows of a file are written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    Csv,
    Json,
}

/// A format.
#[expect(clippy::struct_excessive_bools, reason = "each answers a question of its own")]
pub(super) struct Definition {
    /// As `--format` takes it.
    pub(super) name: &'static str,
    /// What its content looks like, for who gave a file of no known format.
    pub(super) looks: &'static str,
    pub(super) syntaxes: &'static [Syntax],
    /// Columns or keys that tell it by the first line: all of one of these sets. `key=start` is a key whose
    /// value begins so. Without any, only `--format` names it.
    pub(super) signs: &'static [&'static [&'static str]],
    /// Whether other formats have these keys too, beside some of their own, which are looked for first.
    pub(super) shares_signs: bool,
    /// The unit of times that are bare numbers; `None` where rows hold dates.
    pub(super) unit: Option<TimeUnit>,
    /// Whether times count from the trace's own zero; all else counts from its earliest row.
    pub(super) has_own_zero: bool,
    /// Whether rows name sessions, but not the turn.
    pub(super) wants_turns: bool,
    /// Whether rows can hold ids of prefix blocks.
    pub(super) has_blocks: bool,
    pub(super) reader: Reader,
}

/// How a format is read.
pub(super) enum Reader {
    /// Line by line.
    Rows(fn(&Opening<'_>) -> Result<Box<dyn ReadRow>, TraceError>),
    /// As a whole, since rows are spread over the file.
    Documents {
        /// Keys that tell a document which is spread over many lines: all of one of these sets.
        signs: &'static [&'static [&'static str]],
        /// With the unit of times, and `--block-tok`.
        new: fn(TimeUnit, Option<u32>) -> Box<dyn ReadDocument>,
    },
}

impl Definition {
    /// What most formats are like; a name, a syntax and signs are still to be given.
    pub(super) const fn new(reader: Reader) -> Self {
        Self {
            name: "",
            looks: "",
            syntaxes: &[Syntax::Json],
            signs: &[],
            shares_signs: false,
            unit: Some(TimeUnit::S),
            has_own_zero: false,
            wants_turns: false,
            has_blocks: true,
            reader,
        }
    }

    /// Whether the first line of a file is a header.
    pub(super) fn has_header(&self, syntax: Syntax) -> bool {
        self.syntaxes.contains(&Syntax::Csv)
            && (syntax == Syntax::Csv || !self.syntaxes.contains(&Syntax::Json))
    }
}

/// A file whose rows are about to be read.
pub(super) struct Opening<'a> {
    /// Its first line that is not blank: the header, where the format has one.
    pub(super) first: &'a [u8],
    /// That line's number.
    pub(super) line: u64,
    /// As the user wrote it.
    pub(super) file: &'a str,
    pub(super) syntax: Syntax,
    /// Of times that are bare numbers.
    pub(super) unit: TimeUnit,
    /// `--block-tok`.
    pub(super) block_tok: Option<u32>,
}

#[cfg(test)]
impl<'a> Opening<'a> {
    pub(super) fn of_header(first: &'a [u8]) -> Self {
        let (syntax, unit) = (Syntax::Csv, TimeUnit::S);
        Self { first, line: 1, file: "f", syntax, unit, block_tok: None }
    }
}

/// What a format makes of its lines.
pub(super) trait ReadRow: Send {
    /// Reads one line; `None` where it is no request.
    fn read(&mut self, line: &[u8]) -> Result<Option<Parsed>, Fault>;

    /// Columns or keys met so far that are not replayed.
    fn ignored(&self) -> Vec<String> {
        Vec::new()
    }

    /// What else should be known of the rows read so far, a line each.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether a row may depend on lines before it, so that none can be read by itself.
    fn needs_earlier_rows(&self) -> bool {
        false
    }

    /// Whether rows have times at all.
    fn has_times(&self) -> bool {
        true
    }

    /// Whether times of all rows count from one origin, and not each session's from its own start.
    fn has_common_clock(&self) -> bool {
        true
    }
}

/// What a format makes of its documents, one after another.
pub(super) trait ReadDocument {
    /// Reads one document into rows.
    fn read(&mut self, document: &RawValue, held: &mut Held) -> Result<(), Fault>;

    /// What should be known of the documents read so far, a line each.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether all rows count from one origin.
    fn has_common_clock(&self) -> bool {
        true
    }
}
