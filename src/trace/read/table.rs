//! One CSV line into fields, a CSV header into column places, and cells by the names of their columns.
//!
//! A row is one line: a quoted field may hold commas and doubled quotes, but no line break. Lines
//! without a quote, which is all of Azure's, are split by looking for commas alone.

use std::ops::Range;

use csv_core::ReadRecordResult;

use super::error::{Fault, TraceError, shorten};
use super::number::{TimeUnit, float_time_ns, token_count};
use super::reader::Opening;

/// Splits lines into fields; keeps its buffers from row to row.
pub(super) struct Fields {
    ranges: Vec<Range<usize>>,
    /// Unquoted text, where the line held quotes.
    unquoted: Vec<u8>,
    ends: Vec<usize>,
    is_unquoted: bool,
    /// Boxed: its tables are larger than all else in a row reader.
    parser: Box<csv_core::Reader>,
}

impl Fields {
    pub(super) fn new() -> Self {
        Self {
            ranges: Vec::new(),
            unquoted: Vec::new(),
            ends: Vec::new(),
            is_unquoted: false,
            parser: Box::new(csv_core::Reader::new()),
        }
    }

    /// Splits `line`; the fields are then given by [`Self::get`], with the same line.
    pub(super) fn split(&mut self, line: &[u8]) -> Result<(), Fault> {
        self.ranges.clear();
        self.is_unquoted = memchr::memchr(b'"', line).is_some();
        if self.is_unquoted {
            return self.split_quoted(line);
        }
        let mut begin = 0;
        for comma in memchr::memchr_iter(b',', line) {
            self.ranges.push(begin..comma);
            begin = comma + 1;
        }
        self.ranges.push(begin..line.len());
        Ok(())
    }

    /// Number of fields in the line.
    pub(super) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Field `place` of the line last split, without surrounding blanks.
    pub(super) fn get<'a>(&'a self, line: &'a [u8], place: usize) -> &'a [u8] {
        let text = if self.is_unquoted { &self.unquoted } else { line };
        text[self.ranges[place].clone()].trim_ascii()
    }

    fn split_quoted(&mut self, line: &[u8]) -> Result<(), Fault> {
        self.parser.reset();
        // Unquoting never lengthens, and a field needs at least its comma.
        self.unquoted.resize(line.len() + 1, 0);
        self.ends.resize(line.len() + 2, 0);
        let (result, read, written, fields) =
            self.parser.read_record(line, &mut self.unquoted, &mut self.ends);
        let stray = result == ReadRecordResult::Record || read < line.len();
        let (result, _, _, last) =
            self.parser.read_record(b"\n", &mut self.unquoted[written..], &mut self.ends[fields..]);
        if stray {
            return Err(Fault::row(
                "a carriage return stands inside the line; write LF or CRLF line breaks",
            ));
        }
        if result != ReadRecordResult::Record {
            return Err(Fault::row(
                "a quoted field is not closed on this line; a row is one line, so write no line \
                 breaks inside quotes",
            ));
        }
        let mut begin = 0;
        for &end in &self.ends[..fields + last] {
            self.ranges.push(begin..end);
            begin = end;
        }
        Ok(())
    }
}

/// A CSV file's rows by the names of their columns.
pub(super) struct Table<const N: usize> {
    names: &'static [&'static str; N],
    /// Place of each known column.
    places: [Option<usize>; N],
    unknown: Vec<String>,
    count: usize,
    fields: Fields,
}

impl<const N: usize> Table<N> {
    /// Reads a header, in which the first `required` names must stand.
    pub(super) fn new(
        opening: &Opening<'_>,
        names: &'static [&'static str; N],
        required: usize,
    ) -> Result<Self, TraceError> {
        let header = opening.first;
        let fail = |problem: String| TraceError::Header {
            file: opening.file.to_owned(),
            line: opening.line,
            problem,
            seen: shorten(header),
        };
        let mut fields = Fields::new();
        fields.split(header).map_err(|fault| fail(fault.problem))?;
        let mut places = [None; N];
        let mut unknown = Vec::new();
        for place in 0..fields.len() {
            let text = fields.get(header, place);
            match names.iter().position(|name| name.as_bytes() == text) {
                Some(known) if places[known].is_some() => {
                    return Err(fail(format!("column `{}` stands twice; keep one", names[known])));
                }
                Some(known) => places[known] = Some(place),
                None => unknown.push(shorten(text)),
            }
        }
        if let Some(missing) = (0..required).find(|&known| places[known].is_none()) {
            return Err(fail(format!("column `{}` is missing; add or rename it", names[missing])));
        }
        Ok(Self { names, places, unknown, count: fields.len(), fields })
    }

    /// Columns that the format does not know.
    pub(super) fn unknown(&self) -> Vec<String> {
        self.unknown.clone()
    }

    pub(super) fn has(&self, name: usize) -> bool {
        self.places[name].is_some()
    }

    /// Splits a row; the cells are then asked for with the same line.
    pub(super) fn split(&mut self, line: &[u8]) -> Result<(), Fault> {
        self.fields.split(line)?;
        if self.fields.len() == self.count {
            return Ok(());
        }
        Err(Fault::row(format!(
            "the row has {} fields, the header {}; check commas and quotes",
            self.fields.len(),
            self.count
        )))
    }

    /// A cell; `None` where it is empty or the column absent.
    pub(super) fn cell<'a>(&'a self, line: &'a [u8], name: usize) -> Option<&'a [u8]> {
        let place = self.places[name]?;
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

    /// A time that must be there.
    pub(super) fn time(&self, line: &[u8], name: usize, unit: TimeUnit) -> Result<i64, Fault> {
        self.read(line, name, |text| float_time_ns(text, unit))
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(line: &str) -> Result<Vec<String>, String> {
        let mut fields = Fields::new();
        fields.split(line.as_bytes()).map_err(|fault| fault.problem)?;
        Ok((0..fields.len())
            .map(|place| String::from_utf8_lossy(fields.get(line.as_bytes(), place)).into_owned())
            .collect())
    }

    #[test]
    fn fields_of_a_line() {
        let check =
            |line: &str, expect: &[&str]| assert_eq!(split(line).unwrap(), expect, "{line}");
        check("a,b,c", &["a", "b", "c"]);
        check("a,,c,", &["a", "", "c", ""]);
        check(" a , b ", &["a", "b"]);
        check("\"a,b\",c", &["a,b", "c"]);
        check("\"say \"\"hi\"\"\",2", &["say \"hi\"", "2"]);
        check("\"\",\"\"", &["", ""]);
        check(",\"\"", &["", ""]);
        check("\"x\"", &["x"]);
        assert!(split("1,\"open,2").unwrap_err().contains("not closed on this line"));
        assert!(split("1,\"a\"\r2").unwrap_err().contains("carriage return"));
    }

    #[test]
    fn a_header_finds_its_columns_in_any_order() {
        const NAMES: [&str; 3] = ["at_s", "input_tok", "session"];
        let read = |header: &str| Table::new(&Opening::of_header(header.as_bytes()), &NAMES, 2);
        let found = read("x,\"input_tok\", at_s ,y").unwrap();
        assert_eq!(found.places, [Some(2), Some(1), None]);
        assert_eq!(found.unknown, ["x", "y"]);
        let check = |header: &str, part: &str| {
            let message = read(header).err().unwrap().to_string();
            assert!(message.contains(part) && message.contains(header), "{message}");
        };
        check("at_s,session", "column `input_tok` is missing");
        check("at_s,input_tok,at_s", "column `at_s` stands twice");
    }

    proptest! {
        /// Against the csv crate, which is the reference for what quotes mean.
        #[test]
        fn quoting_agrees_with_the_csv_crate(cells in proptest::collection::vec("[a\", ]{0,6}", 1..6)) {
            let mut writer = csv::WriterBuilder::new()
                .quote_style(csv::QuoteStyle::Always)
                .from_writer(Vec::new());
            writer.write_record(&cells).unwrap();
            let line = String::from_utf8(writer.into_inner().unwrap()).unwrap();
            let expect: Vec<_> = cells.iter().map(|cell| cell.trim().to_owned()).collect();
            prop_assert_eq!(split(line.trim_end_matches('\n')).unwrap(), expect);
        }

        #[test]
        fn no_line_panics(line in "[a\",\r ]{0,20}") {
            let _ = split(&line);
        }
    }
}
