//! Dynamo's request traces: JSONL of events, of which `request_end` is a row.
//!
//! Lines stand in the order in which requests ended, so sorting is the rule. Block hashes are 64-bit
//! numbers that mean the same in the whole file.

use super::super::blocks::{IdCount, prefix};
use super::super::error::Fault;
use super::super::json::JsonRow;
use super::super::number::TimeUnit;
use super::super::reader::{Definition, ReadRow, Reader};
use super::super::row::Parsed;
use crate::trace::Request;

const LINE: [&str; 3] = ["event_type", "request", "agent_context"];
const REQUEST: [&str; 4] = ["request_received_ms", "input_tokens", "output_tokens", "replay"];
const REPLAY: [&str; 3] = ["trace_block_size", "input_length", "input_sequence_hashes"];
const AGENT: [&str; 1] = ["session_id"];

pub(super) const FORMAT: Definition = Definition {
    name: "dynamo",
    signs: &[&["schema=\"dynamo.request"]],
    unit: Some(TimeUnit::Ms),
    wants_turns: true,
    ..Definition::new(Reader::Rows(|opening| {
        Ok(Box::new(Dynamo { unit: opening.unit, block_tok: opening.block_tok }))
    }))
};

/// Reads rows of one file.
struct Dynamo {
    unit: TimeUnit,
    /// Overrules what rows say.
    block_tok: Option<u32>,
}

impl ReadRow for Dynamo {
    fn read(&mut self, line: &[u8]) -> Result<Option<Parsed>, Fault> {
        let event = JsonRow::read(line, &LINE, &mut Vec::new())?;
        if event.word(0)?.is_some_and(|kind| kind != "request_end") {
            return Ok(None);
        }
        let row = JsonRow::nested(event.slots[1], LINE[1], &REQUEST)?;
        let replay = JsonRow::nested(row.slots[3], REQUEST[3], &REPLAY)?;
        let agent = JsonRow::nested(event.slots[2], LINE[2], &AGENT)?;
        let at_ns = row.time(0, self.unit)?;
        let input_tok = match replay.tokens_if_any(1)? {
            Some(count) => count,
            None => row.tokens(1)?,
        };
        let ids = replay.ids(2)?;
        let prefix = match (
            ids,
            self.block_tok.map_or_else(|| replay.tokens_if_any(0), |tok| Ok(Some(tok)))?,
        ) {
            (Some(ids), Some(block_tok)) if block_tok > 0 => {
                prefix(ids, input_tok, block_tok, IdCount::Either, REPLAY[2])?
            }
            (Some(ids), _) if !ids.is_empty() => {
                return Err(Fault::at(
                    REPLAY[0],
                    "the block size is missing; name it with `--block-tok`",
                ));
            }
            _ => None,
        };
        let request = Request {
            input_tok,
            // A request that ended without a token has no count.
            output_tok: Some(row.tokens_if_any(2)?.unwrap_or(0)),
            session: agent.word(0)?.map(|name| name.as_ref().into()),
            prefix,
            ..Request::default()
        };
        Ok(Some(Parsed { at_ns, request }))
    }
}
