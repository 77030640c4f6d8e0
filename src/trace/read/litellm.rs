//! `LiteLLM`'s spend logs: rows of its table as JSONL or CSV, or the payload that its loggers get.
//!
//! Only calls that generate text are rows; embeddings, images and the like are passed over and counted. A
//! call that failed is one with output 0, whatever it says. Words are never taken from a log.

use super::TimeUnit;
use super::date::DateReader;
use super::error::{Fault, TraceError};
use super::json::{JsonRow, text};
use super::number::{float_time_ns, token_count};
use super::rows::{Parsed, ReadRow};
use super::table::Table;
use super::words::Words;
use crate::trace::Request;

const NAMES: [&str; 9] = [
    "startTime",
    "prompt_tokens",
    "completion_tokens",
    "call_type",
    "status",
    "model_group",
    "model",
    "session_id",
    "end_user",
];
const REQUIRED: usize = 3;

/// What a row says, as text; `None` where the cell is empty.
type Cells<'a> = [Option<&'a [u8]>; 9];

/// Reads rows of one file.
pub(super) struct LiteLlm {
    /// Of a CSV file.
    table: Option<Table<9>>,
    dates: DateReader,
    models: Words,
}

impl LiteLlm {
    pub(super) fn json() -> Self {
        Self { table: None, dates: DateReader::default(), models: Words::default() }
    }

    pub(super) fn csv(header: &[u8], file: &str, line: u64) -> Result<Self, TraceError> {
        let table = Table::new(header, &NAMES, REQUIRED, file, line)?;
        Ok(Self { table: Some(table), ..Self::json() })
    }

    fn row(&mut self, cells: &Cells<'_>) -> Result<Option<Parsed>, Fault> {
        let word = |name: usize| {
            let text = cells[name].map(std::str::from_utf8).transpose();
            text.map_err(|_| Fault::at(NAMES[name], "is not UTF-8; save the file as UTF-8"))
        };
        if word(3)?.is_some_and(|kind| !generates(kind)) {
            return Ok(None);
        }
        let time = cells[0].unwrap_or_default();
        let is_number = time.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
        let at_ns =
            if is_number { float_time_ns(time, TimeUnit::S) } else { self.dates.read_alike(time) };
        let count = |name: usize| {
            token_count(cells[name].unwrap_or_default())
                .map_err(|what| Fault::at(NAMES[name], what))
        };
        let failed = word(4)?.is_some_and(|status| status == "failure");
        let model = word(5)?.or(word(6)?);
        let request = Request {
            input_tok: count(1)?,
            output_tok: Some(if failed { 0 } else { count(2)? }),
            session: word(7)?.map(Into::into),
            class: model.map(|name| self.models.shared(name)),
            ..Request::default()
        };
        let at_ns = at_ns.map_err(|what| Fault::at(NAMES[0], what))?;
        Ok(Some(Parsed { at_ns, request }))
    }
}

/// Whether a kind of call generates text.
fn generates(kind: &str) -> bool {
    ["completion", "responses", "messages", "generate"].iter().any(|word| kind.contains(word))
}

impl ReadRow for LiteLlm {
    fn ignored(&self) -> Vec<String> {
        Vec::new()
    }

    fn read(&mut self, line: &[u8]) -> Result<Option<Parsed>, Fault> {
        if let Some(mut table) = self.table.take() {
            let split = table.split(line);
            let row = split.and_then(|()| {
                let cells = std::array::from_fn(|name| table.cell(line, name));
                self.row(&cells)
            });
            self.table = Some(table);
            return row;
        }
        let row = JsonRow::read(line, &NAMES, &mut Vec::new())?;
        let mut texts: [Option<String>; 9] = Default::default();
        for ((slot, raw), name) in texts.iter_mut().zip(row.slots).zip(NAMES) {
            *slot = match raw {
                Some(raw) if raw.starts_with('"') => Some(text(raw, name)?),
                other => other.map(str::to_owned),
            }
            .filter(|text| !text.is_empty());
        }
        self.row(&std::array::from_fn(|name| texts[name].as_deref().map(str::as_bytes)))
    }
}
