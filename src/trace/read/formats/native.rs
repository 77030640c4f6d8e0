//! The native format: `at_s,input_tok,output_tok` and what may stand beside them, as CSV or JSONL.
//!
//! Both forms fill the same cells, and one function makes a row of them, so that they cannot drift
//! apart. What spans rows (turns in order, sessions complete) is not checked here.

use std::borrow::Cow;
use std::sync::Arc;

use super::super::blocks::MOONCAKE_BLOCK_TOK;
use super::super::error::Fault;
use super::super::json::{id_list, number_text, raw_value, read_object, text, word};
use super::super::number::TimeUnit;
use super::super::number::{block_id, time_ns, token_count};
use super::super::reader::{Definition, Opening, ReadRow, Reader, Syntax};
use super::super::row::Interner;
use super::super::row::Parsed;
use super::super::table::Table;
use crate::trace::{Content, Prefix, Request};
use crate::units::Nanos;

const REQUIRED: usize = 3;
/// Keys; `row` is the number of the row whose words these are, where a file keeps those of another.
const JSON_NAMES: [&str; 13] = [
    "at_s",
    "input_tok",
    "output_tok",
    "session",
    "turn",
    "think_s",
    "class",
    "blocks",
    "block_tok",
    "row",
    "prompt",
    "messages",
    "body",
];

/// CSV has no columns for the last three.
const NAMES: [&str; 10] = *JSON_NAMES.first_chunk().expect("there are more");

pub(super) const FORMAT: Definition = Definition {
    name: "native",
    looks: " (CSV or JSONL with at_s,input_tok,output_tok)",
    syntaxes: &[Syntax::Csv, Syntax::Json],
    signs: &[&["at_s"], &["input_tok"]],
    has_own_zero: true,
    ..Definition::new(Reader::Rows(|opening| match opening.syntax {
        Syntax::Csv => {
            let table = Table::new(opening, &NAMES, REQUIRED)?;
            Ok(Box::new(NativeCsv { table, rules: Rules::new(opening) }))
        }
        Syntax::Json => {
            Ok(Box::new(NativeJson { rules: Rules::new(opening), unknown: Vec::new() }))
        }
    }))
};

/// What a row says, cell by cell; `None` where the cell is empty or the column absent.
#[derive(Default)]
struct Cells<'a> {
    at: Option<&'a [u8]>,
    input: Option<&'a [u8]>,
    output: Option<&'a [u8]>,
    session: Option<Cow<'a, str>>,
    turn: Option<&'a [u8]>,
    think: Option<&'a [u8]>,
    class: Option<Cow<'a, str>>,
    blocks: Vec<u64>,
    block_tok: Option<&'a [u8]>,
    row: Option<&'a [u8]>,
    content: Option<Box<Content>>,
}

/// What holds for all rows of a file.
struct Rules {
    unit: TimeUnit,
    /// `--block-tok`, which overrules the rows.
    block_tok: Option<u32>,
    classes: Interner,
}

impl Rules {
    fn new(opening: &Opening<'_>) -> Self {
        Self { unit: opening.unit, block_tok: opening.block_tok, classes: Interner::default() }
    }

    fn row(&mut self, cells: Cells<'_>) -> Result<Parsed, Fault> {
        let at = cells.at.unwrap_or_default();
        let at_ns = time_ns(at, self.unit).map_err(|what| Fault::at(NAMES[0], what))?;
        let length = |cell: Option<&[u8]>, name: usize| {
            token_count(cell.unwrap_or_default()).map_err(|what| Fault::at(NAMES[name], what))
        };
        let input_tok = length(cells.input, 1)?;
        let output_tok = cells.output.map(|cell| length(Some(cell), 2)).transpose()?;
        let turn = cells.turn.map(read_turn).transpose()?;
        let think = cells
            .think
            .map(|text| time_ns(text, self.unit).map_err(|what| Fault::at(NAMES[5], what)))
            .transpose()?
            .map(|ns| Nanos(ns.unsigned_abs()));
        if cells.session.is_none() && (turn.is_some() || think.is_some()) {
            let name = if turn.is_some() { NAMES[4] } else { NAMES[5] };
            return Err(Fault::at(
                name,
                "the row has no `session`; name one, or leave the cell empty",
            ));
        }
        let prefix = self.prefix(cells.blocks, cells.block_tok, input_tok)?;
        let request = Request {
            input_tok,
            output_tok,
            session: cells.session.map(Arc::from),
            turn,
            think,
            class: cells.class.map(|name| self.classes.shared(&name)),
            prefix,
            content: cells.content,
            source_row: cells
                .row
                .map(|text| block_id(text).map_err(|what| Fault::at(NAMES[9], what)))
                .transpose()?,
            ..Request::default()
        };
        Ok(Parsed { at_ns, request })
    }

    fn prefix(
        &self,
        blocks: Vec<u64>,
        block_tok: Option<&[u8]>,
        input_tok: u32,
    ) -> Result<Option<Box<Prefix>>, Fault> {
        let written = block_tok
            .map(|text| token_count(text).map_err(|what| Fault::at(NAMES[8], what)))
            .transpose()?;
        if written == Some(0) {
            return Err(Fault::at(NAMES[8], "`0` tokens make no block; write the block size"));
        }
        let block_tok = self.block_tok.or(written).unwrap_or(MOONCAKE_BLOCK_TOK);
        let most = input_tok.div_ceil(block_tok) as usize;
        if blocks.len() > most {
            return Err(Fault::at(
                NAMES[7],
                format!(
                    "{} blocks of {block_tok} tokens, but {input_tok} tokens fill {most}; name the block size \
                 in a column `block_tok` or with `--block-tok`",
                    blocks.len()
                ),
            ));
        }
        Ok((!blocks.is_empty())
            .then(|| Box::new(Prefix { blocks: blocks.into_boxed_slice(), block_tok })))
    }
}

fn read_turn(text: &[u8]) -> Result<u32, Fault> {
    match token_count(text) {
        Ok(0) => Err(Fault::at(NAMES[4], "`0` is no turn; turns count from 1")),
        other => other.map_err(|what| Fault::at(NAMES[4], what)),
    }
}

/// Reads rows of a CSV file.
struct NativeCsv {
    table: Table<10>,
    rules: Rules,
}

impl ReadRow for NativeCsv {
    fn ignored(&self) -> Vec<String> {
        self.table.unknown()
    }

    fn read(&mut self, line: &[u8]) -> Result<Option<Parsed>, Fault> {
        let Self { table, rules } = self;
        table.split(line)?;
        let cell = |name: usize| table.cell(line, name);
        let word = |name: usize| table.word(line, name).map(|text| text.map(Cow::Borrowed));
        let blocks = cell(7)
            .unwrap_or_default()
            .split(|&byte| byte == b' ')
            .filter(|id| !id.is_empty())
            .map(block_id)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|what| Fault::at(NAMES[7], what))?;
        let cells = Cells {
            at: cell(0),
            input: cell(1),
            output: cell(2),
            session: word(3)?,
            turn: cell(4),
            think: cell(5),
            class: word(6)?,
            blocks,
            block_tok: cell(8),
            row: cell(9),
            content: None,
        };
        rules.row(cells).map(Some)
    }
}

/// Reads rows of a JSONL file.
struct NativeJson {
    rules: Rules,
    /// Keys met that the format does not know.
    unknown: Vec<String>,
}

impl ReadRow for NativeJson {
    fn ignored(&self) -> Vec<String> {
        self.unknown.clone()
    }

    fn read(&mut self, line: &[u8]) -> Result<Option<Parsed>, Fault> {
        let slots = read_object(line, &JSON_NAMES, &mut self.unknown)?;
        if slots[2].is_none() && !says_natural(line) {
            let what = "the key is missing; write `null` where the answer is to end by itself";
            return Err(Fault::at(NAMES[2], what));
        }
        let number =
            |name: usize| slots[name].map(|raw| number_text(raw, JSON_NAMES[name])).transpose();
        let word = |name: usize| {
            slots[name].map(|raw| word(raw, JSON_NAMES[name])).transpose().map(Option::flatten)
        };
        let cells = Cells {
            at: number(0)?,
            input: number(1)?,
            output: number(2)?,
            session: word(3)?,
            turn: number(4)?,
            think: number(5)?,
            class: word(6)?,
            blocks: slots[7].map(|raw| id_list(raw, NAMES[7])).transpose()?.unwrap_or_default(),
            block_tok: number(8)?,
            row: number(9)?,
            content: content(slots[10], slots[11], slots[12])?,
        };
        self.rules.row(cells).map(Some)
    }
}

/// Whether the row says itself that it asks for no completion length; a key that was forgotten, or
/// written wrong, does not.
fn says_natural(line: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Natural {
        output_tok: (),
    }
    serde_json::from_slice(line).is_ok_and(|Natural { output_tok: () }| true)
}

fn content(
    prompt: Option<&str>,
    messages: Option<&str>,
    body: Option<&str>,
) -> Result<Option<Box<Content>>, Fault> {
    if prompt.or(messages).or(body).is_none() {
        return Ok(None);
    }
    let keep = |raw: Option<&str>, opening: char, name: usize| {
        raw.map(|raw| raw_value(raw, opening, JSON_NAMES[name])).transpose()
    };
    Ok(Some(Box::new(Content {
        prompt: prompt.map(|raw| text(raw, JSON_NAMES[10])).transpose()?,
        messages: keep(messages, '[', 11)?,
        body: keep(body, '{', 12)?,
    })))
}
