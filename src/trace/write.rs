//! Rows into files: the native format as CSV or JSONL, and Mooncake's JSONL.
//!
//! What is written is read back as the same rows, to the nanosecond; a row keeps its number, so that the
//! same words are made up for it. Nothing is left out in silence: what a format cannot hold is an error.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io::{self, Write};

use serde_json::value::RawValue;

use super::ids::scoped;
use super::{Prefix, Request};
use crate::units::{NS_PER_MS, Nanos};

/// Tokens in a block of Mooncake's.
const MOONCAKE_BLOCK_TOK: u32 = 512;
const CSV_HEADER: &str =
    "row,at_s,input_tok,output_tok,session,turn,think_s,class,blocks,block_tok\n";

/// What a file of rows looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteFormat {
    /// Native, CSV.
    Csv,
    /// Native, JSONL.
    Jsonl,
    /// Mooncake's JSONL.
    Mooncake,
}

/// Why a row was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file failed.
    #[error("cannot write the trace: {0}")]
    Io(#[from] io::Error),
    /// The format cannot hold what the row says.
    #[error("row {row} {what}")]
    Unfit {
        /// The row's number.
        row: u64,
        /// What, and what to do.
        what: &'static str,
    },
}

/// Writes rows, in the order in which they come.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    format: WriteFormat,
}

impl<W: Write> Writer<W> {
    /// Begins a file; give a buffered `out`.
    pub fn new(mut out: W, format: WriteFormat) -> Result<Self, WriteError> {
        if format == WriteFormat::Csv {
            out.write_all(CSV_HEADER.as_bytes())?;
        }
        Ok(Self { out, format })
    }

    /// Writes a row.
    pub fn row(&mut self, request: &Request) -> Result<(), WriteError> {
        match self.format {
            WriteFormat::Csv => self.csv(request),
            WriteFormat::Jsonl => self.line(&native(request)),
            WriteFormat::Mooncake => self.line(&mooncake(request)?),
        }
    }

    /// Ends the file.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn line(&mut self, row: &Row<'_>) -> Result<(), WriteError> {
        let mut mark = b'{';
        for (key, value) in &row.0 {
            self.out.write_all(&[mark, b'"'])?;
            self.out.write_all(key.as_bytes())?;
            self.out.write_all(b"\":")?;
            match value {
                Cell::Written(text) => self.out.write_all(text.as_bytes())?,
                // A line break in JSON stands between values only, where a blank does as well.
                Cell::Raw(raw) => self.out.write_all(raw.replace(['\r', '\n'], " ").as_bytes())?,
                Cell::Text(text) => {
                    serde_json::to_writer(&mut self.out, text).map_err(io::Error::from)?;
                }
            }
            mark = b',';
        }
        Ok(self.out.write_all(b"}\n")?)
    }

    fn csv(&mut self, request: &Request) -> Result<(), WriteError> {
        if request.content.is_some() {
            let what = "says words of its own, which CSV does not hold; write JSONL, or leave them out \
                        with --anonymise";
            return Err(WriteError::Unfit { row: request.row, what });
        }
        let Request { row, at, input_tok, .. } = request;
        write!(self.out, "{row},{at},{input_tok},")?;
        if let Some(output_tok) = request.output_tok {
            write!(self.out, "{output_tok}")?;
        }
        self.out.write_all(b",")?;
        self.quoted(request.session.as_deref())?;
        match request.turn {
            Some(turn) => write!(self.out, ",{turn},")?,
            None => self.out.write_all(b",,")?,
        }
        if let Some(think) = request.think {
            write!(self.out, "{think}")?;
        }
        self.out.write_all(b",")?;
        self.quoted(request.class.as_deref())?;
        self.out.write_all(b",")?;
        let Some(prefix) = &request.prefix else { return Ok(self.out.write_all(b",\n")?) };
        for (place, block) in prefix.blocks.iter().enumerate() {
            let gap = if place > 0 { " " } else { "" };
            write!(self.out, "{gap}{block}")?;
        }
        Ok(writeln!(self.out, ",{}", prefix.block_tok)?)
    }

    fn quoted(&mut self, text: Option<&str>) -> io::Result<()> {
        let text = text.unwrap_or_default();
        if !text.contains([',', '"', '\r', '\n']) {
            return self.out.write_all(text.as_bytes());
        }
        // A row is one line, so a line break cannot stay.
        let text = text.replace(['\r', '\n'], " ").replace('"', "\"\"");
        write!(self.out, "\"{text}\"")
    }
}

/// A row as keys and values, in order.
struct Row<'a>(Vec<(&'static str, Cell<'a>)>);

enum Cell<'a> {
    /// A number or a list of them.
    Written(String),
    /// JSON as it was given.
    Raw(&'a str),
    /// To be quoted.
    Text(&'a str),
}

impl<'a> Row<'a> {
    fn number(&mut self, key: &'static str, value: &dyn ToString) {
        self.0.push((key, Cell::Written(value.to_string())));
    }

    fn text(&mut self, key: &'static str, value: Option<&'a str>) {
        self.0.extend(value.map(|text| (key, Cell::Text(text))));
    }

    fn raw(&mut self, key: &'static str, value: Option<&'a RawValue>) {
        self.0.extend(value.map(|raw| (key, Cell::Raw(raw.get()))));
    }
}

fn list(ids: &[u64]) -> String {
    let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
    format!("[{}]", ids.join(","))
}

fn native(request: &Request) -> Row<'_> {
    let mut row = Row(Vec::with_capacity(12));
    row.number("row", &request.row);
    row.number("at_s", &request.at);
    row.number("input_tok", &request.input_tok);
    match request.output_tok {
        Some(output_tok) => row.number("output_tok", &output_tok),
        // Said, so that it cannot be taken for a key that was forgotten.
        None => row.number("output_tok", &"null"),
    }
    row.text("session", request.session.as_deref());
    if let Some(turn) = request.turn {
        row.number("turn", &turn);
    }
    if let Some(think) = request.think {
        row.number("think_s", &think);
    }
    row.text("class", request.class.as_deref());
    if let Some(prefix) = &request.prefix {
        row.number("blocks", &list(&prefix.blocks));
        row.number("block_tok", &prefix.block_tok);
    }
    if let Some(content) = request.content.as_deref() {
        row.text("prompt", content.prompt.as_deref());
        row.raw("messages", content.messages.as_deref());
        row.raw("body", content.body.as_deref());
    }
    row
}

/// Milliseconds, with as many decimals as there are.
fn millis(at: Nanos) -> String {
    let (whole, rest) = (at.0 / NS_PER_MS, at.0 % NS_PER_MS);
    if rest == 0 {
        return whole.to_string();
    }
    let fraction = format!("{rest:06}");
    format!("{whole}.{}", fraction.trim_end_matches('0'))
}

fn mooncake(request: &Request) -> Result<Row<'_>, WriteError> {
    let Some(output_tok) = request.output_tok else {
        let what =
            "asks for no completion length, which Mooncake's rows need; write the native format";
        return Err(WriteError::Unfit { row: request.row, what });
    };
    let mut row = Row(Vec::with_capacity(8));
    row.number("timestamp", &millis(request.at));
    row.number("input_length", &request.input_tok);
    row.number("output_length", &output_tok);
    if let Some(prefix) = &request.prefix {
        row.number("hash_ids", &list(&mooncake_ids(request, prefix)?));
    }
    row.text("session_id", request.session.as_deref());
    if let Some(think) = request.think {
        row.number("delay", &millis(think));
    }
    if let Some(content) = request.content.as_deref() {
        row.text("text_input", content.prompt.as_deref());
        row.raw("messages", content.messages.as_deref());
        row.raw("extra", content.body.as_deref());
    }
    Ok(row)
}

/// An id for every 512 tokens of the prompt, the last, partial block too. Smaller blocks are joined; what
/// no block tells of gets ids that no other row has.
fn mooncake_ids(request: &Request, prefix: &Prefix) -> Result<Vec<u64>, WriteError> {
    let (blocks, block_tok) = (&prefix.blocks[..], prefix.block_tok);
    if block_tok == 0 || !MOONCAKE_BLOCK_TOK.is_multiple_of(block_tok) {
        let what = "has blocks that do not make up 512 tokens, which Mooncake's rows need; write the \
                    native format";
        return Err(WriteError::Unfit { row: request.row, what });
    }
    let joined = (MOONCAKE_BLOCK_TOK / block_tok) as usize;
    let is_cut = request.input_tok.div_ceil(block_tok) as usize == blocks.len();
    let mut ids: Vec<u64> = if joined == 1 {
        blocks.to_vec()
    } else {
        let mut so_far = 0;
        // The rest, when the last block is cut with the prompt, belongs to the row's last block.
        let joinable = if is_cut { blocks.len() } else { blocks.len() / joined * joined };
        let join = |part: &[u64]| {
            so_far = part.iter().fold(so_far, |id, block| scoped(id, *block));
            so_far
        };
        blocks[..joinable].chunks(joined).map(join).collect()
    };
    let wanted = request.input_tok.div_ceil(MOONCAKE_BLOCK_TOK) as usize;
    ids.truncate(wanted);
    for place in ids.len()..wanted {
        ids.push(scoped(scoped(0x0072_6f77, request.row), place as u64));
    }
    Ok(ids)
}

/// Takes out what could tell who asked what: words go, and every id gets a new one under a key that is
/// drawn by the system for this file and kept nowhere. Equal ids stay equal; times and lengths stay.
#[derive(Debug, Default)]
pub struct Anonymiser {
    key: RandomState,
}

impl Anonymiser {
    /// The row without words, with new ids.
    #[must_use]
    pub fn row(&self, mut request: Request) -> Request {
        let hash = |kind: &str, text: &str| self.key.hash_one((kind, text));
        request.session =
            request.session.map(|name| format!("{:016x}", hash("session", &name)).into());
        request.class =
            request.class.map(|name| format!("c{:08x}", hash("class", &name) >> 32).into());
        if let Some(prefix) = &mut request.prefix {
            prefix.blocks.iter_mut().for_each(|id| *id = self.key.hash_one(("block", *id)));
        }
        request.content = None;
        request
    }
}
