//! `LiteLLM`'s spend logs: rows of its table as JSONL or CSV, or the payload that its loggers get.
//!
//! Only calls that generate text are rows; embeddings, images and the like are passed over and counted. A
//! call that failed is one with output 0, whatever it says. Words are never taken from a log.

use super::super::date::DateReader;
use super::super::error::{Fault, TraceError};
use super::super::json::{JsonRow, text};
use super::super::number::TimeUnit;
use super::super::number::{float_time_ns, token_count};
use super::super::reader::{Definition, Opening, ReadRow, Reader, Syntax};
use super::super::row::Interner;
use super::super::row::Parsed;
use super::super::table::Table;
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

pub(super) const FORMAT: Definition = Definition {
    name: "litellm",
    syntaxes: &[Syntax::Csv, Syntax::Json],
    signs: &[&["startTime", "prompt_tokens"]],
    unit: None,
    wants_turns: true,
    has_blocks: false,
    ..Definition::new(Reader::Rows(|opening| Ok(Box::new(LiteLlm::new(opening)?))))
};

/// Reads rows of one file.
struct LiteLlm {
    /// Of a CSV file.
    table: Option<Table<9>>,
    dates: DateReader,
    models: Interner,
}

impl LiteLlm {
    fn new(opening: &Opening<'_>) -> Result<Self, TraceError> {
        let is_csv = opening.syntax == Syntax::Csv;
        let table = is_csv.then(|| Table::new(opening, &NAMES, REQUIRED)).transpose()?;
        Ok(Self { table, dates: DateReader::default(), models: Interner::default() })
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
