//! `TraceLab`'s rounds of coding agents: JSONL as recorded, and the CSV that its own replayer reads.
//!
//! Neither holds block ids, but both say how many tokens of a prompt stood in a cache; ids are made of
//! that, apart for each session. Times of a recorded round are those of its events. In a replay file
//! only sessions arrive, and every later round waits for the tools of the one before it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;

use super::super::blocks::Context;
use super::super::date::DateReader;
use super::super::error::{Fault, TraceError};
use super::super::json::JsonRow;
use super::super::number::TimeUnit;
use super::super::reader::{Definition, Opening, ReadRow, Reader, Syntax};
use super::super::row::Interner;
use super::super::row::Parsed;
use super::super::table::Table;
use crate::trace::ids::of_name;
use crate::trace::{Prefix, Request};
use crate::units::Nanos;

/// Tokens that one of the ids made here stands for.
const BLOCK_TOK: u32 = 64;

pub(super) const FORMAT: Definition = Definition {
    name: "tracelab",
    signs: &[&["round_index", "input_tokens_total"]],
    unit: None,
    ..Definition::new(Reader::Rows(|opening| Ok(Box::new(Rounds::new(opening)))))
};

pub(super) const REPLAY_FORMAT: Definition = Definition {
    name: "tracelab-replay",
    syntaxes: &[Syntax::Csv],
    signs: &[&["round_idx", "prefix_len"]],
    unit: Some(TimeUnit::Ms),
    has_own_zero: true,
    ..Definition::new(Reader::Rows(|opening| Ok(Box::new(Replay::new(opening)?))))
};

/// What is remembered of a session.
#[derive(Default)]
struct Session {
    context: Context,
    /// End of its last round, or the pause after it.
    end_ns: Option<i64>,
    arrival_ns: i64,
}

/// The sessions of a file.
struct Sessions {
    block_tok: u32,
    met: HashMap<Arc<str>, Session>,
}

impl Sessions {
    fn new(opening: &Opening<'_>) -> Self {
        Self { block_tok: opening.block_tok.unwrap_or(BLOCK_TOK), met: HashMap::new() }
    }

    fn get(&mut self, name: &str) -> (Arc<str>, &mut Session) {
        let shared = match self.met.get_key_value(name) {
            Some((known, _)) => Arc::clone(known),
            None => name.into(),
        };
        let session = self.met.entry(Arc::clone(&shared)).or_default();
        (shared, session)
    }

    fn prefix(
        block_tok: u32,
        name: &str,
        session: &mut Session,
        shared_tok: u32,
        input_tok: u32,
    ) -> Option<Box<Prefix>> {
        let ids = session.context.next(of_name(name), shared_tok, input_tok, block_tok);
        (!ids.is_empty()).then(|| Box::new(Prefix { blocks: ids.into(), block_tok }))
    }
}

const ROUND: [&str; 7] = [
    "session_id",
    "round_index",
    "input_tokens_total",
    "prefix_tokens",
    "output_tokens",
    "timing_events",
    "model",
];

/// Reads recorded rounds.
struct Rounds {
    sessions: Sessions,
    dates: DateReader,
    models: Interner,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    timestamp: Option<Cow<'a, str>>,
}

impl Rounds {
    fn new(opening: &Opening<'_>) -> Self {
        Self {
            sessions: Sessions::new(opening),
            dates: DateReader::default(),
            models: Interner::default(),
        }
    }

    /// First and last event.
    fn times(&mut self, raw: Option<&str>) -> Result<(i64, i64), Fault> {
        let fault = |what: String| Fault::at(ROUND[5], what);
        let events: Vec<Event<'_>> = serde_json::from_str(raw.unwrap_or("[]"))
            .map_err(|error| fault(format!("is no list of events: {error}")))?;
        let mut span: Option<(i64, i64)> = None;
        for text in events.into_iter().filter_map(|event| event.timestamp) {
            let ns = self.dates.read_alike(text.as_bytes()).map_err(fault)?;
            let (first, last) = span.unwrap_or((ns, ns));
            span = Some((first.min(ns), last.max(ns)));
        }
        span.ok_or_else(|| fault("holds no time stamp; a round needs at least one".to_owned()))
    }
}

impl ReadRow for Rounds {
    fn needs_earlier_rows(&self) -> bool {
        true
    }

    fn read(&mut self, line: &[u8]) -> Result<Option<Parsed>, Fault> {
        let row = JsonRow::read(line, &ROUND, &mut Vec::new())?;
        let (first_ns, last_ns) = self.times(row.slots[5])?;
        let (input_tok, shared_tok) = (row.tokens(2)?, row.tokens_if_any(3)?.unwrap_or(0));
        check_shared(shared_tok, input_tok, ROUND[3])?;
        let name = row.word(0)?.ok_or_else(|| row.missing(0))?;
        let class = row.word(6)?.map(|model| self.models.shared(&model));
        let block_tok = self.sessions.block_tok;
        let (name, session) = self.sessions.get(&name);
        let think =
            session.end_ns.map(|end| Nanos(first_ns.saturating_sub(end).max(0).unsigned_abs()));
        session.end_ns = Some(session.end_ns.unwrap_or(last_ns).max(last_ns));
        let request = Request {
            input_tok,
            output_tok: Some(row.tokens(4)?),
            prefix: Sessions::prefix(block_tok, &name, session, shared_tok, input_tok),
            session: Some(name),
            turn: Some(row.tokens(1)?.saturating_add(1)),
            think,
            class,
            ..Request::default()
        };
        Ok(Some(Parsed { at_ns: first_ns, request }))
    }
}

const REPLAY: [&str; 7] = [
    "session_id",
    "round_idx",
    "prefix_len",
    "input_len",
    "output_len",
    "tool_wait_after_ms",
    "arrival_time",
];
const REPLAY_REQUIRED: usize = 5;

/// Reads replay files.
struct Replay {
    table: Table<7>,
    sessions: Sessions,
    unit: TimeUnit,
}

impl Replay {
    fn new(opening: &Opening<'_>) -> Result<Self, TraceError> {
        let table = Table::new(opening, &REPLAY, REPLAY_REQUIRED)?;
        Ok(Self { table, sessions: Sessions::new(opening), unit: opening.unit })
    }
}

impl ReadRow for Replay {
    fn ignored(&self) -> Vec<String> {
        self.table.unknown()
    }

    fn needs_earlier_rows(&self) -> bool {
        true
    }

    fn has_common_clock(&self) -> bool {
        self.table.has(6)
    }

    fn read(&mut self, line: &[u8]) -> Result<Option<Parsed>, Fault> {
        self.table.split(line)?;
        let table = &self.table;
        let (shared_tok, new_tok) = (table.tokens(line, 2)?, table.tokens(line, 3)?);
        let input_tok = shared_tok.checked_add(new_tok).ok_or_else(|| {
            Fault::at(REPLAY[3], "prefix and input together are above 4294967295 tokens")
        })?;
        let output_tok = table.tokens(line, 4)?;
        let turn = table.tokens(line, 1)?.saturating_add(1);
        let time = |name: usize| {
            let written = table.cell(line, name);
            written.map(|_| table.time(line, name, self.unit)).transpose()
        };
        let (wait_ns, arrival_ns) = (time(5)?.unwrap_or(0), time(6)?);
        let name = table
            .word(line, 0)?
            .ok_or_else(|| Fault::at(REPLAY[0], "the value is missing; every row needs one"))?;
        let block_tok = self.sessions.block_tok;
        let (name, session) = self.sessions.get(name);
        // A later round may be written after other sessions' rows; it still belongs to its session's start.
        let think = session.end_ns.replace(wait_ns);
        if think.is_none() {
            session.arrival_ns = arrival_ns.unwrap_or(0);
        }
        let request = Request {
            input_tok,
            output_tok: Some(output_tok),
            prefix: Sessions::prefix(block_tok, &name, session, shared_tok, input_tok),
            session: Some(name),
            turn: Some(turn),
            think: think.map(|ns| Nanos(ns.unsigned_abs())),
            ..Request::default()
        };
        Ok(Some(Parsed { at_ns: session.arrival_ns, request }))
    }
}

fn check_shared(shared_tok: u32, input_tok: u32, key: &str) -> Result<(), Fault> {
    if shared_tok <= input_tok {
        return Ok(());
    }
    Err(Fault::at(
        key,
        format!("`{shared_tok}` tokens from the cache are more than the prompt's {input_tok}"),
    ))
}
