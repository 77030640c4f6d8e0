//! Classes of traffic: what the requests of one tenant, model or kind have in common.
//!
//! A class takes every section that it does not have itself from the top of the file.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::WorkloadError;
use super::keys::Keys;
use super::length::{Input, Output};
use super::prefix::Prefixes;
use super::request;
use super::session::Sessions;

/// A class of traffic.
#[derive(Clone, Debug)]
pub(super) struct Class {
    pub(super) name: Option<Arc<str>>,
    /// Its share of the arrivals of its stream, of which all make up 1.
    pub(super) share: f64,
    /// What goes into the body of its requests.
    pub(super) body: Option<Box<RawValue>>,
    /// Its service level objectives, as written.
    pub(super) slo: Vec<String>,
    pub(super) input: Input,
    pub(super) output: Output,
    pub(super) sessions: Option<Sessions>,
    pub(super) prefixes: Option<Prefixes>,
}

/// What stands in a place for classes: sections that may be left out.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    input: Option<Input>,
    output: Option<Output>,
    sessions: Option<Sessions>,
    prefixes: Option<Prefixes>,
}

impl Parts {
    /// Reads the sections; ids of prefix blocks from `next_id` on are free.
    pub(super) fn read(keys: &mut Keys<'_>, next_id: &mut u64) -> Result<Self, WorkloadError> {
        let parts = Self {
            input: keys.section_if_any("input")?.map(Input::read).transpose()?,
            output: keys.section_if_any("output")?.map(Output::read).transpose()?,
            sessions: keys.section_if_any("sessions")?.map(Sessions::read).transpose()?,
            prefixes: keys
                .section_if_any("prefix")?
                .map(|section| Prefixes::read(section, next_id))
                .transpose()?,
        };
        let has_tree = parts.prefixes.as_ref().is_some_and(Prefixes::has_tree);
        if has_tree && parts.sessions.is_some() {
            let field = keys.need("sessions", "")?;
            let why = "stands beside a `prefix` with `reuse`; the turns of a session share what they share";
            return Err(field.fail(why));
        }
        Ok(parts)
    }

    /// The one class of a file without any.
    pub(super) fn only_class(self, keys: &Keys<'_>) -> Result<Class, WorkloadError> {
        Class::of(None, 1.0, None, Vec::new(), &self, &Self::default(), keys)
    }
}

impl Class {
    /// Reads one of `[[class]]`, but for `arrival`, which is the caller's.
    pub(super) fn read(
        keys: &mut Keys<'_>,
        above: &Parts,
        next_id: &mut u64,
    ) -> Result<Self, WorkloadError> {
        let name = keys.need("name", "it is what the class is called in the results")?;
        let text = name.text()?;
        if text.trim().is_empty() || text.len() > 200 {
            return Err(name.fail("is no name; write 1 to 200 bytes of text"));
        }
        let weight = keys.get("weight").map(|field| field.number_in(1e-9, 1e9)).transpose()?;
        let body = body(keys)?;
        let slo = keys.get("slo").map(|field| field.texts()).transpose()?.unwrap_or_default();
        let slo = slo.into_iter().map(ToOwned::to_owned).collect();
        let parts = Parts::read(keys, next_id)?;
        Self::of(Some(text.into()), weight.unwrap_or(1.0), body, slo, &parts, above, keys)
    }

    fn of(
        name: Option<Arc<str>>,
        share: f64,
        body: Option<Box<RawValue>>,
        slo: Vec<String>,
        own: &Parts,
        above: &Parts,
        keys: &Keys<'_>,
    ) -> Result<Self, WorkloadError> {
        let input = own.input.as_ref().or(above.input.as_ref()).ok_or_else(|| {
            keys.missing("input", "add [input] with a distribution of prompt tokens")
        })?;
        let output =
            own.output.as_ref().or(above.output.as_ref()).ok_or_else(|| {
                keys.missing("output", "add [output] with one of completion tokens")
            })?;
        let sessions = own.sessions.as_ref().or(above.sessions.as_ref());
        if output.is_natural() && sessions.is_some_and(Sessions::keeps_answers) {
            let hint = "its sessions add answers to the prompt, so give the most that one may take, or \
                        answers = false in [sessions]";
            return Err(keys.missing("output.max", hint));
        }
        Ok(Self {
            name,
            share,
            body,
            slo,
            input: input.clone(),
            output: output.clone(),
            sessions: sessions.cloned(),
            prefixes: own.prefixes.as_ref().or(above.prefixes.as_ref()).cloned(),
        })
    }
}

/// `model` and `tenant` (which the API calls `user`), and `[class.request]`.
fn body(keys: &mut Keys<'_>) -> Result<Option<Box<RawValue>>, WorkloadError> {
    let own = [("model", keys.get("model")), ("user", keys.get("tenant"))];
    let section = keys.section_if_any("request")?;
    if own.iter().all(|(_, field)| field.is_none()) && section.is_none() {
        return Ok(None);
    }
    let mut json = String::from("{");
    for (key, field) in own {
        let Some(field) = field else { continue };
        if section.as_ref().is_some_and(|section| section.has(key)) {
            return Err(field.fail(format!("stands beside `{key}` in the section `request`")));
        }
        let text = serde_json::to_string(field.text()?).expect("text always is JSON");
        let _ = write!(json, "{}\"{key}\":{text}", if json.len() > 1 { "," } else { "" });
    }
    if let Some(section) = section {
        let free = request::read(&section)?;
        let inner = &free.get()[1..free.get().len() - 1];
        if json.len() > 1 && !inner.is_empty() {
            json.push(',');
        }
        json.push_str(inner);
    }
    json.push('}');
    Ok(Some(RawValue::from_string(json).expect("values were written as JSON one by one")))
}
