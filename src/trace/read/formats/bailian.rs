//! Qwen-Bailian's traces: JSONL with float seconds, blocks of 16 tokens, and parents for sessions.
//!
//! A session is the chain of `parent_chat_id` up to its root; where the root lies before the file's
//! first row, the earliest parent that is named stands for it. Turns are taken as written.

use std::collections::HashMap;

use super::super::blocks::{IdCount, VLLM_BLOCK_TOK, prefix};
use super::super::error::Fault;
use super::super::json::JsonRow;
use super::super::number::TimeUnit;
use super::super::reader::{Definition, Opening, ReadRow, Reader};
use super::super::row::Interner;
use super::super::row::Parsed;
use crate::trace::Request;

const NAMES: [&str; 8] = [
    "timestamp",
    "input_length",
    "output_length",
    "hash_ids",
    "chat_id",
    "parent_chat_id",
    "turn",
    "type",
];
/// Chats whose roots are remembered: 400 MB.
const CHATS_LIMIT: usize = 16 << 20;

pub(super) const FORMAT: Definition = Definition {
    name: "bailian",
    signs: &[&["chat_id"], &["parent_chat_id"]],
    ..Definition::new(Reader::Rows(|opening| Ok(Box::new(Bailian::new(opening)))))
};

/// Reads rows of one file.
struct Bailian {
    unit: TimeUnit,
    block_tok: u32,
    /// Root of each chat met.
    roots: HashMap<i64, i64>,
    kinds: Interner,
    unknown: Vec<String>,
}

impl Bailian {
    fn new(opening: &Opening<'_>) -> Self {
        Self {
            unit: opening.unit,
            block_tok: opening.block_tok.unwrap_or(VLLM_BLOCK_TOK),
            roots: HashMap::new(),
            kinds: Interner::default(),
            unknown: Vec::new(),
        }
    }

    /// The first chat of the conversation.
    fn root(&mut self, chat: i64, parent: Option<i64>) -> Result<i64, Fault> {
        let root = match parent.filter(|&parent| parent >= 0) {
            None => chat,
            Some(parent) => self.roots.get(&parent).copied().unwrap_or(parent),
        };
        if self.roots.len() >= CHATS_LIMIT && !self.roots.contains_key(&chat) {
            return Err(Fault::at(
                NAMES[4],
                format!("more than {CHATS_LIMIT} chats in one file; cut it into parts"),
            ));
        }
        self.roots.insert(chat, root);
        Ok(root)
    }
}

impl ReadRow for Bailian {
    fn ignored(&self) -> Vec<String> {
        self.unknown.clone()
    }

    fn needs_earlier_rows(&self) -> bool {
        true
    }

    fn read(&mut self, line: &[u8]) -> Result<Option<Parsed>, Fault> {
        let row = JsonRow::read(line, &NAMES, &mut self.unknown)?;
        let at_ns = row.time(0, self.unit)?;
        let (input_tok, output_tok) = (row.tokens(1)?, row.tokens(2)?);
        let ids = row.ids(3)?;
        let prefix = match ids {
            Some(ids) => prefix(ids, input_tok, self.block_tok, IdCount::Partial, NAMES[3])?,
            None => None,
        };
        let chat = whole(&row, 4)?.ok_or_else(|| row.missing(4))?;
        let root = self.root(chat, whole(&row, 5)?)?;
        let class = row.word(7)?.map(|kind| self.kinds.shared(&kind));
        let request = Request {
            input_tok,
            output_tok: Some(output_tok),
            session: Some(root.to_string().into()),
            turn: row.tokens_if_any(6)?.filter(|&turn| turn > 0),
            class,
            prefix,
            ..Request::default()
        };
        Ok(Some(Parsed { at_ns, request }))
    }
}

/// A whole number, perhaps below zero.
fn whole(row: &JsonRow<'_, 8>, name: usize) -> Result<Option<i64>, Fault> {
    let Some(raw) = row.slots[name] else { return Ok(None) };
    let number = raw.parse::<i64>();
    number
        .map(Some)
        .map_err(|_| Fault::at(NAMES[name], format!("`{raw:.60}` is no whole number; write one")))
}
