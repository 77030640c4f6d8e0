//! Claude Code sessions as WEKA's kv-cache-tester keeps them: one JSON object each, alone or in lines.
//!
//! Times count from the start of each session, block ids hold within it, and only full blocks have one. A
//! sub-agent is a session of its own that begins within another and shares its ids. Turns are numbered
//! later, when failed rows are gone.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::blocks::{IdCount, prefix};
use super::super::error::Fault;
use super::super::held::Held;
use super::super::json::json_fault;
use super::super::number::TimeUnit;
use super::super::number::float_time_ns;
use super::super::reader::{Definition, ReadDocument, Reader};
use super::super::row::Interner;
use crate::trace::Request;
use crate::trace::ids::{of_name, scoped};
use crate::units::Nanos;

#[derive(Deserialize)]
struct Session<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    block_size: Option<u32>,
    #[serde(borrow)]
    hash_id_scope: Option<Cow<'a, str>>,
    #[serde(borrow)]
    requests: Vec<Item<'a>>,
}

/// A request, or a sub-agent with requests of its own.
#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow)]
    t: &'a RawValue,
    #[serde(borrow, alias = "think_time_s")]
    think_time: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(rename = "in")]
    input: Option<u32>,
    #[serde(rename = "out")]
    output: Option<u32>,
    hash_ids: Option<Vec<u64>>,
    #[serde(borrow)]
    agent_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    requests: Option<Vec<Item<'a>>>,
}

pub(super) const FORMAT: Definition = Definition {
    name: "weka",
    signs: &[&["requests", "hash_id_scope"]],
    has_own_zero: true,
    wants_turns: true,
    ..Definition::new(Reader::Documents {
        signs: &[&["hash_id_scope"], &["hash_ids", "requests"]],
        new: |unit, block_tok| Box::new(Weka::new(unit, block_tok)),
    })
};

/// Reads sessions.
struct Weka {
    unit: TimeUnit,
    block_tok: Option<u32>,
    models: Interner,
    /// Sessions read, sub-agents not counted.
    met: HashSet<String>,
}

/// What holds for all requests of a session.
struct SessionRules {
    /// Of the session, for its ids.
    scope: Option<u64>,
    block_tok: u32,
    /// Sub-agents without a name of their own are counted.
    unnamed: u32,
}

impl Weka {
    fn new(unit: TimeUnit, block_tok: Option<u32>) -> Self {
        Self { unit, block_tok, models: Interner::default(), met: HashSet::new() }
    }

    fn items(
        &mut self,
        items: Vec<Item<'_>>,
        session: &str,
        start_ns: i64,
        rules: &mut SessionRules,
        held: &mut Held,
    ) -> Result<(), Fault> {
        let name = std::sync::Arc::<str>::from(session);
        let mut is_first = true;
        for (place, item) in items.into_iter().enumerate() {
            let within = |fault: Fault| Fault {
                column: fault.column,
                problem: format!("request {place} of `{session:.60}`: {}", fault.problem),
            };
            let at_ns = time(item.t, self.unit, "t").map_err(within)?.saturating_add(start_ns);
            if let Some(nested) = item.requests {
                rules.unnamed += 1;
                let agent =
                    item.agent_id.map_or_else(|| rules.unnamed.to_string(), Cow::into_owned);
                self.items(nested, &format!("{session}/{agent}"), at_ns, rules, held)?;
                continue;
            }
            let count = |value: Option<u32>, key: &str| {
                value.ok_or_else(|| within(Fault::at(key, "the key is missing")))
            };
            let input_tok = count(item.input, "in")?;
            let mut ids = item.hash_ids.unwrap_or_default();
            if let Some(scope) = rules.scope {
                for id in &mut ids {
                    *id = scoped(scope, *id);
                }
            }
            let think = item.think_time.map(|raw| time(raw, self.unit, "think_time"));
            let think = think.transpose().map_err(within)?.map(|ns| Nanos(ns.unsigned_abs()));
            let prefix = if ids.is_empty() {
                None
            } else {
                prefix(ids, input_tok, rules.block_tok, IdCount::Full, "hash_ids")
                    .map_err(within)?
            };
            let request = Request {
                input_tok,
                output_tok: Some(count(item.output, "out")?),
                session: Some(std::sync::Arc::clone(&name)),
                think: think.filter(|_| !is_first),
                class: item.model.map(|model| self.models.shared(&model)),
                prefix,
                ..Request::default()
            };
            held.push(at_ns, request)?;
            is_first = false;
        }
        Ok(())
    }
}

impl ReadDocument for Weka {
    /// Each session counts from its own start.
    fn has_common_clock(&self) -> bool {
        self.met.len() <= 1
    }

    /// Reads one session.
    fn read(&mut self, raw: &RawValue, held: &mut Held) -> Result<(), Fault> {
        let session: Session<'_> =
            serde_json::from_str(raw.get()).map_err(|error| Fault::row(json_fault(&error)))?;
        if !self.met.insert(session.id.to_string()) {
            let what = format!("the session `{:.60}` was read before; keep it once", session.id);
            return Err(Fault::at("id", what));
        }
        let is_local = session.hash_id_scope.as_deref() != Some("global");
        let block_tok = self.block_tok.or(session.block_size).filter(|&tok| tok > 0);
        let mut rules = SessionRules {
            scope: is_local.then(|| of_name(&session.id)),
            block_tok: block_tok.ok_or_else(|| {
                Fault::at("block_size", "the key is missing; name it with `--block-tok`")
            })?,
            unnamed: 0,
        };
        self.items(session.requests, &session.id, 0, &mut rules, held)
    }
}

fn time(raw: &RawValue, unit: TimeUnit, key: &str) -> Result<i64, Fault> {
    float_time_ns(raw.get().as_bytes(), unit).map_err(|what| Fault::at(key, what))
}
