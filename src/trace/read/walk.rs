//! Every line of a trace in the order of the file, the bad ones too: for whoever lists all faults.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use super::documents::{Documents, read_folder};
use super::error::TraceError;
use super::formats::Format;
use super::lines::LineReader;
use super::open::{folder, sniff};
use super::options::{Input, ReadOptions};
use super::rows::RowReader;
use super::source::{Bytes, open_file, unpack};
use crate::trace::Request;
use crate::units::Nanos;

/// A row in its place, or what is wrong with its line.
pub type Walked = Result<(u64, Request), TraceError>;

/// Reads a trace once from start to end, going on after lines that cannot be read. In `at`, rows have what
/// orders them by time, and no trace time: where that begins is not known before the end. What ends the
/// reading (a damaged file, a line without end) is told and is the last. A document's faults are told up to
/// the first.
pub fn walk(
    input: &Input,
    options: &ReadOptions,
    on_row: &mut dyn FnMut(Walked) -> ControlFlow<()>,
) -> Result<Format, TraceError> {
    let (path, name) = match input {
        Input::File(path) if path != Path::new("-") => (Some(path), path.display().to_string()),
        _ => (None, "standard input".to_owned()),
    };
    let raw: Bytes = match path {
        None => Box::new(std::io::stdin()),
        Some(path) => {
            let (file, metadata) = open_file(path, &name)?;
            if metadata.is_dir() {
                let (format, mut documents, files) = folder(path, &name, options)?;
                let read = read_folder(&files, &mut documents);
                hand_out(documents, read, on_row);
                return Ok(format);
            }
            Box::new(file)
        }
    };
    let (bytes, _) = unpack(raw, &name)?;
    let mut lines = LineReader::new(bytes);
    let format = sniff(&mut lines, &name, options.format)?;
    if let Some(mut documents) = Documents::new(format, options) {
        let read = documents.read(lines.into_rest(), &name);
        hand_out(documents, read, on_row);
        return Ok(format);
    }
    let mut reader = RowReader::start(lines, format, options, Arc::from(name))?;
    loop {
        let walked = match reader.next_row() {
            Ok(None) => return Ok(format),
            Ok(Some(mut row)) => {
                row.request.at = ordinal(row.at_ns);
                Ok((row.line, row.request))
            }
            Err(error) => Err(error),
        };
        let goes_on = matches!(
            walked,
            Ok(_)
                | Err(TraceError::Row { .. }
                    | TraceError::TooLong { .. }
                    | TraceError::Torn { .. })
        );
        if on_row(walked).is_break() || !goes_on {
            return Ok(format);
        }
    }
}

/// Orders as the file's times do, those before 1970 too.
fn ordinal(at_ns: i64) -> Nanos {
    Nanos(at_ns.cast_unsigned() ^ (1 << 63))
}

fn hand_out(
    documents: Documents,
    read: Result<(), TraceError>,
    on_row: &mut dyn FnMut(Walked) -> ControlFlow<()>,
) {
    let mut rows = documents.finish().held.rows;
    rows.sort_by_key(|(row, _)| row.at_ns);
    for (mut row, blocks) in rows {
        row.request.prefix = blocks.prefix();
        row.request.at = ordinal(row.at_ns);
        if on_row(Ok((row.line, row.request))).is_break() {
            return;
        }
    }
    if let Err(error) = read {
        let _ = on_row(Err(error));
    }
}
