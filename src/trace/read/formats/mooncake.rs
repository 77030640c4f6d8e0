//! Mooncake's traces: JSONL of `timestamp` (ms), `input_length`, `output_length`, `hash_ids`.
//!
//! Two readers of one grammar: a short scanner for rows of plain integers and known keys, which is every
//! row of the published files, and the general JSON reader for all else and for every error message. The
//! general one also takes the keys that other tools add to these ([`super::aiperf`]).

use std::collections::HashMap;
use std::sync::Arc;

use super::super::blocks::{IdCount, MOONCAKE_BLOCK_TOK, VLLM_BLOCK_TOK, prefix};
use super::super::error::Fault;
use super::super::json::JsonRow;
use super::super::number::{TimeUnit, time_ns};
use super::super::reader::{Definition, Opening, ReadRow, Reader};
use super::super::row::Parsed;
use super::aiperf::{DELAY, IDS, NAMES, SESSION, TIME, TOTAL, read_content};
use crate::json_scan::Scan;
use crate::trace::Request;
use crate::units::Nanos;

pub(super) const FORMAT: Definition = Definition {
    name: "mooncake",
    looks: " (JSONL with timestamp, input_length, output_length, hash_ids)",
    signs: &[
        &["timestamp", "input_length"],
        &["timestamp", "output_length"],
        &["session_id", "text_input"],
        &["session_id", "payload"],
        &["timestamp", "text_input"],
        &["timestamp", "payload"],
    ],
    shares_signs: true,
    unit: Some(TimeUnit::Ms),
    wants_turns: true,
    ..Definition::new(Reader::Rows(|opening| {
        Ok(Box::new(Mooncake::new(opening, MOONCAKE_BLOCK_TOK, IdCount::Partial)))
    }))
};

/// The same keys as vLLM reads them. Nothing in a file tells it from the other.
pub(super) const TIMED_TRACE: Definition = Definition {
    name: "timed-trace",
    wants_turns: true,
    ..Definition::new(Reader::Rows(|opening| {
        Ok(Box::new(Mooncake::new(opening, VLLM_BLOCK_TOK, IdCount::Either)))
    }))
};

/// Reads rows of one file.
struct Mooncake {
    unit: TimeUnit,
    block_tok: u32,
    fit: IdCount,
    /// Whether rows so far were plain. A file is of one hand: once the short scanner has failed, trying
    /// it on every row would only cost.
    is_plain: bool,
    /// Latest time of each session: a turn without a time of its own comes after it.
    sessions: HashMap<Arc<str>, i64>,
    /// Whether such a turn was met.
    needs_earlier_rows: bool,
    /// Rows whose prompt's length is an estimate.
    estimates: u64,
    /// Keys met and not replayed.
    unknown: Vec<String>,
}

impl Mooncake {
    fn new(opening: &Opening<'_>, usual_block_tok: u32, fit: IdCount) -> Self {
        Self {
            unit: opening.unit,
            block_tok: opening.block_tok.unwrap_or(usual_block_tok),
            fit,
            is_plain: true,
            sessions: HashMap::new(),
            needs_earlier_rows: false,
            estimates: 0,
            unknown: Vec::new(),
        }
    }

    /// The general reader.
    fn read_any(&mut self, line: &[u8]) -> Result<Parsed, Fault> {
        let row = JsonRow::read(line, &NAMES, &mut self.unknown)?;
        let session: Option<Arc<str>> = row.word(SESSION)?.map(|name| name.as_ref().into());
        let think = row.time_if_any(DELAY, self.unit)?;
        let at_ns = self.time(&row, session.as_ref())?;
        let own = read_content(&row)?;
        self.estimates += u64::from(own.is_estimate);
        let ids = row.ids(IDS)?;
        let mut parsed = self.row(at_ns, [own.input_tok, own.output_tok], ids)?;
        // A pause is one after an earlier turn of the session.
        let follows = session.as_ref().is_some_and(|name| self.sessions.contains_key(name));
        parsed.request.think = think.filter(|_| follows).map(|ns| Nanos(ns.unsigned_abs()));
        parsed.request.content = own.content;
        if let Some(name) = &session {
            let latest = self.sessions.entry(Arc::clone(name)).or_insert(at_ns);
            *latest = at_ns.max(*latest);
        }
        parsed.request.session = session;
        Ok(parsed)
    }

    /// The row's time, or that of the turn before it.
    fn time(&mut self, row: &JsonRow<'_, TOTAL>, session: Option<&Arc<str>>) -> Result<i64, Fault> {
        if let Some(text) = row.number_if_any(TIME)? {
            return time_ns(text, self.unit).map_err(|what| Fault::at(NAMES[TIME], what));
        }
        let before = session.and_then(|name| self.sessions.get(name).copied());
        self.needs_earlier_rows |= before.is_some();
        before.ok_or_else(|| {
            Fault::at(
                NAMES[TIME],
                "the key is missing; every row needs it, but later turns of a `session_id` that wait for a \
                 `delay`",
            )
        })
    }

    fn row(&self, at_ns: i64, lengths: [u32; 2], ids: Option<Vec<u64>>) -> Result<Parsed, Fault> {
        let [input_tok, output_tok] = lengths;
        let prefix = match ids {
            Some(ids) => prefix(ids, input_tok, self.block_tok, self.fit, NAMES[IDS])?,
            None => None,
        };
        let request =
            Request { input_tok, output_tok: Some(output_tok), prefix, ..Request::default() };
        Ok(Parsed { at_ns, request })
    }
}

impl ReadRow for Mooncake {
    fn ignored(&self) -> Vec<String> {
        self.unknown.clone()
    }

    fn needs_earlier_rows(&self) -> bool {
        self.needs_earlier_rows
    }

    fn remarks(&self) -> Vec<String> {
        let remark = format!(
            "{} rows give their prompt in words and no `input_length`; their words are sent as they are, \
             and their length is taken as 4 bytes a token",
            self.estimates
        );
        (self.estimates > 0).then_some(remark).into_iter().collect()
    }

    fn read(&mut self, line: &[u8]) -> Result<Option<Parsed>, Fault> {
        if self.is_plain {
            if let Some((time, lengths, ids)) = scan_plain(line, self.block_tok) {
                let at_ns =
                    time_ns(time, self.unit).map_err(|what| Fault::at(NAMES[TIME], what))?;
                return self.row(at_ns, lengths, ids).map(Some);
            }
            self.is_plain = false;
        }
        self.read_any(line).map(Some)
    }
}

/// Time as written, input and output length, ids.
type Plain<'a> = (&'a [u8], [u32; 2], Option<Vec<u64>>);

/// A row of plain integers under known keys, each once; `None` where it is anything else, valid or not.
fn scan_plain(line: &[u8], block_tok: u32) -> Option<Plain<'_>> {
    let mut scan = Scan::new(line);
    let (mut time, mut lengths, mut ids) = (None, [None; 2], None);
    scan.object(|scan, key| {
        match key {
            b"timestamp" if time.is_none() => time = Some(scan.integer_text()?),
            b"input_length" if lengths[0].is_none() => {
                lengths[0] = Some(u32::try_from(scan.integer()?).ok()?);
            }
            b"output_length" if lengths[1].is_none() => {
                lengths[1] = Some(u32::try_from(scan.integer()?).ok()?);
            }
            b"hash_ids" if ids.is_none() => {
                // Room for exactly the ids that the length demands, so that boxing them copies nothing.
                let blocks = lengths[0].map_or(0, |input: u32| input.div_ceil(block_tok) as usize);
                ids = Some(scan.integers(blocks.min(line.len() / 2))?);
            }
            _ => return None,
        }
        Some(())
    })?;
    let whole = scan.is_at_end();
    whole.then_some((time?, [lengths[0]?, lengths[1]?], ids))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reader() -> Mooncake {
        let opening = Opening { unit: TimeUnit::Ms, ..Opening::of_header(b"") };
        Mooncake::new(&opening, 512, IdCount::Partial)
    }

    fn read(line: &str) -> Result<Parsed, String> {
        reader()
            .read(line.as_bytes())
            .map(|row| row.expect("every line is a row"))
            .map_err(|fault| format!("{:?} {}", fault.column, fault.problem))
    }

    #[test]
    fn rows_however_they_are_written() {
        let check = |line: &str, at_ns: i64, lengths: (u32, u32), ids: &[u64]| {
            let Parsed { at_ns: at, request } = read(line).unwrap();
            let asked = (request.input_tok, request.output_tok.unwrap());
            assert_eq!((at, asked), (at_ns, lengths), "{line}");
            let found = request.prefix.map(|prefix| (prefix.blocks.to_vec(), prefix.block_tok));
            assert_eq!(found.unwrap_or((vec![], 512)), (ids.to_vec(), 512), "{line}");
        };
        let row =
            r#"{"timestamp": 3000, "input_length": 513, "output_length": 9, "hash_ids": [0, 7]}"#;
        check(row, 3_000_000_000, (513, 9), &[0, 7]);
        check(&row.replace(' ', ""), 3_000_000_000, (513, 9), &[0, 7]);
        check(
            r#"{"hash_ids":[18446744073709551615],"output_length":1.0,"input_length":5e0,"timestamp":0.2}"#,
            200_000,
            (5, 1),
            &[u64::MAX],
        );
        check(
            r#"{"timestamp": 1, "input_length": 5, "output_length": 2, "session_id": "x", "delay": null}"#,
            1_000_000,
            (5, 2),
            &[],
        );
        check(
            r#"{"timestamp": 1, "input_length": 0, "output_length": 2, "hash_ids": []}"#,
            1_000_000,
            (0, 2),
            &[],
        );
        check(
            r#"{"timestamp": 1700000000123, "input_length": 1, "output_length": 2}"#,
            1_700_000_000_123_000_000,
            (1, 2),
            &[],
        );
    }

    #[test]
    fn bad_rows_name_key_value_and_remedy() {
        let check = |line: &str, parts: &[&str]| {
            let message = read(line).unwrap_err();
            assert!(parts.iter().all(|part| message.contains(part)), "{line}: {message}");
        };
        check(
            r#"{"timestamp": 1, "input_length": 1025, "output_length": 2, "hash_ids": [1, 2]}"#,
            &["hash_ids", "2 ids", "1025 tokens in blocks of 512 need 3", "--block-tok"],
        );
        check(r#"{"timestamp": 1, "output_length": 2}"#, &["input_length", "missing"]);
        check(
            r#"{"timestamp": "1", "input_length": 5, "output_length": 2}"#,
            &["timestamp", "string", "without quotes"],
        );
        check(
            r#"{"timestamp": -1, "input_length": 5, "output_length": 2}"#,
            &["timestamp", "`-1` is negative"],
        );
        check(
            r#"{"timestamp": 1, "input_length": 5.5, "output_length": 2}"#,
            &["input_length", "`5.5`"],
        );
        check(
            r#"{"timestamp": 1, "input_length": 5, "output_length": 4294967296}"#,
            &["output_length", "too large"],
        );
        check(r#"{"timestamp": 1, "input_length": NaN, "output_length": 2}"#, &["NaN"]);
        check(
            r#"{"timestamp": 1, "input_length": 5, "output_length": 2, "hash_ids": {"a": [1]}}"#,
            &["hash_ids", "list of whole"],
        );
        check(
            r#"{"timestamp": 1, "input_length": 5, "output_length": 2, "hash_ids": [-1]}"#,
            &["hash_ids", "-1", "list of whole"],
        );
        check(
            r#"{"timestamp": true, "input_length": 5, "output_length": 2}"#,
            &["timestamp", "`true` is not a number"],
        );
    }

    proptest! {
        /// The scanner takes what it takes exactly as the general reader does.
        #[test]
        fn both_readers_agree(
            ms in 0u64..1_000_000_000_000,
            input in 0u32..5000,
            output in 0u32..3000,
            seed in any::<u64>(),
            blank in prop::sample::select(vec!["", " ", "  "]),
            damage in proptest::option::of((any::<prop::sample::Index>(), any::<u8>())),
        ) {
            let ids: Vec<_> = (0..u64::from(input.div_ceil(512)))
                .map(|i| (seed.wrapping_mul(i + 1) >> 8).to_string()).collect();
            let mut line = format!(
                "{{\"timestamp\":{blank}{ms},{blank}\"input_length\":{blank}{input},\"output_length\"{blank}:{output},\"hash_ids\":{blank}[{}]}}{blank}",
                ids.join(&format!(",{blank}"))
            ).into_bytes();
            if let Some((place, byte)) = damage {
                let place = place.index(line.len());
                line[place] = byte;
            }
            if let Some((time, lengths, ids)) = scan_plain(&line, 512) {
                let mut reader = reader();
                let general = reader.read_any(&line).map(|row| format!("{row:?}"));
                let at_ns = time_ns(time, TimeUnit::Ms).unwrap();
                let short = reader.row(at_ns, lengths, ids).map(|row| format!("{row:?}"));
                prop_assert_eq!(short, general);
                prop_assert!(reader.unknown.is_empty());
            } else {
                prop_assert!(damage.is_some());
            }
        }
    }
}
