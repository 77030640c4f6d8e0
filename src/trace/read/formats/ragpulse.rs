//! `RAGPulse`'s trace: JSONL with whole seconds as text, and ids of chunks by kind.
//!
//! A chunk is a passage, a system prompt, a question: of any length, which stands in other files. So
//! the ids say what is shared but not how much, and are left out unless `--block-tok` names a length
//! to give each of them; then as many are taken as fit the prompt.

use super::super::error::{Fault, shorten};
use super::super::json::{JsonRow, id_list, text};
use super::super::number::TimeUnit;
use super::super::number::float_time_ns;
use super::super::reader::{Definition, Opening, ReadRow, Reader};
use super::super::row::Parsed;
use crate::trace::ids::{of_name, scoped};
use crate::trace::{Prefix, Request};

const NAMES: [&str; 5] = ["timestamp", "input_length", "output_length", "hash_ids", "session_id"];
/// Kinds of chunks, in the order of the prompt.
const KINDS: [&str; 5] = ["sys_prompt", "passages_ids", "history", "web_search", "user_input"];

pub(super) const FORMAT: Definition = Definition {
    name: "ragpulse",
    signs: &[&["hash_ids={"]],
    wants_turns: true,
    ..Definition::new(Reader::Rows(|opening| Ok(Box::new(RagPulse::new(opening)))))
};

/// Reads rows of one file.
struct RagPulse {
    unit: TimeUnit,
    /// Tokens to give each chunk.
    chunk_tok: Option<u32>,
    unknown: Vec<String>,
    has_ids: bool,
}

impl RagPulse {
    fn new(opening: &Opening<'_>) -> Self {
        let (unit, chunk_tok) = (opening.unit, opening.block_tok);
        Self { unit, chunk_tok, unknown: Vec::new(), has_ids: false }
    }
}

impl ReadRow for RagPulse {
    fn ignored(&self) -> Vec<String> {
        self.unknown.clone()
    }

    fn remarks(&self) -> Vec<String> {
        let left_out = self.has_ids && self.chunk_tok.is_none();
        let remark = "the ids of shared chunks are left out, since their lengths are not in the file; \
                      `--block-tok N` gives each of them N tokens";
        left_out.then(|| remark.to_owned()).into_iter().collect()
    }

    fn read(&mut self, line: &[u8]) -> Result<Option<Parsed>, Fault> {
        let row = JsonRow::read(line, &NAMES, &mut self.unknown)?;
        let time = row.slots[0].ok_or_else(|| row.missing(0))?;
        let time =
            if time.starts_with('"') { text(time, NAMES[0])? } else { shorten(time.as_bytes()) };
        let at_ns =
            float_time_ns(time.as_bytes(), self.unit).map_err(|what| Fault::at(NAMES[0], what))?;
        let (input_tok, output_tok) = (row.tokens(1)?, row.tokens(2)?);
        self.has_ids |= row.slots[3].is_some();
        let prefix = match (row.slots[3], self.chunk_tok) {
            (Some(raw), Some(chunk_tok)) => prefix(raw, input_tok, chunk_tok)?,
            _ => None,
        };
        let session = row.word(4)?.map(|name| name.as_ref().into());
        let request = Request {
            input_tok,
            output_tok: Some(output_tok),
            session,
            prefix,
            ..Request::default()
        };
        Ok(Some(Parsed { at_ns, request }))
    }
}

/// The chunks of a prompt, as many as fit.
fn prefix(raw: &str, input_tok: u32, chunk_tok: u32) -> Result<Option<Box<Prefix>>, Fault> {
    let kinds = JsonRow::nested(Some(raw), NAMES[3], &KINDS)?;
    let mut blocks = Vec::new();
    for (kind, raw) in KINDS.iter().zip(kinds.slots) {
        let ids = raw.map(|raw| id_list(raw, kind)).transpose()?.unwrap_or_default();
        // The kinds number their chunks apart.
        blocks.extend(ids.into_iter().map(|id| scoped(of_name(kind), id)));
    }
    blocks.truncate((input_tok / chunk_tok) as usize);
    Ok((!blocks.is_empty())
        .then(|| Box::new(Prefix { blocks: blocks.into(), block_tok: chunk_tok })))
}
