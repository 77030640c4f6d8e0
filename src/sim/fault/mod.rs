//! Faults on demand: what a simulated server does wrong, to which request, and how that is written.
//!
//! A [`FaultPlan`] is a list of rules, each a fault and the requests that it falls on. Of one request all
//! rules count that fall on it; of two that cannot both be had, the one written last. Deliberately
//! absent: faults that nobody asked for, and chance that is not seeded.
//!
//! # How a rule is written
//! `FAULT[=VALUE][@WHEN…]`, so `stall=2s@rate=1%` or `refuse@rows=3,7`. Without a `WHEN` it falls on every
//! request; with several (`@rate=5%@time=10s-20s`) where all of them hold.
//!
//! | when | falls on |
//! |---|---|
//! | `rows=3,7,10-12` | these requests, numbered from 0 in the order in which their POSTs arrive |
//! | `rate=1%` | this share of the requests, drawn by the server's seed and the request's number |
//! | `time=10s-20s` | what arrives in this span from the server's start; either end may be left out |
//!
//! `refuse` happens before there is a request, so for it the connections are numbered instead.
//!
//! | fault | the server |
//! |---|---|
//! | `refuse` | resets the connection as soon as it is accepted |
//! | `hangup=close`, `=reset` | reads the request and ends the connection without a response |
//! | `status=429` (400 to 599) | answers so at once, with an error in JSON; 429 and 503 with `retry-after: 1` |
//! | `redirect=307` (300 to 399) | sends elsewhere, with a `location` |
//! | `json` | answers with one JSON document instead of a stream |
//! | `headers=2s` | keeps its response head back so long |
//! | `error=object`, `=string`, `=event`, `=field`, `=bare` | sends an error inside the stream, then `[DONE]`; `error=object,3` after 3 tokens (else before the first) |
//! | `stall=2s` | after the first token (`stall=2s,5`: the fifth) writes nothing for so long, then all that came due meanwhile |
//! | `cut=end`, `=close`, `=reset` | after the first token (`cut=end,5`: the fifth, `,0`: the head) ends the body whole, closes the connection, or resets it |
//! | `no-done` | ends without `[DONE]` |
//! | `open`, `open=bare`, `open=mute` | neither ends the body nor closes after `[DONE]`; `bare` also keeps its blank line back, `mute` all of it |
//! | `bytes` | writes one byte at a time |
//! | `utf8` | answers in characters of several bytes, and cuts each of them between two writes |
//! | `crlf`, `cr` | ends its lines so |
//! | `bom` | begins the stream with a byte order mark |
//! | `comments` | writes a comment at once and before every event |
//! | `no-space` | writes `data:` without a space after it |
//! | `empty-choices` | begins with an event without choices |
//! | `early-role` | sends the opening role before the prefill, not with the first token |
//! | `group=4` | puts so many tokens into one event |
//! | `running-usage` | counts on every event, asked or not |
//! | `late-usage=1s` | sends the usage so long after the last token |
//! | `no-usage`, `no-finish` | leaves out the usage at the end, or the finish reason |
//! | `empty` | ends an answer in order, but without any text |
//! | `long-line=2000000` | makes the line of the first token longer by so many bytes |
//! | `gzip` | compresses, though nobody allowed it |
//! | `reasoning=3`, `reasoning-content=3` | sends the first 3 tokens as reasoning, under that key (all of them without a number; chat only) |
//! | `tools` | answers with a tool call in fragments (chat only) |
//! | `idle=1s` | closes the connection when it was idle so long after its answer |

mod body;
mod content;
mod parse;
mod script;
mod when;
mod wire;

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use parse::FaultError;
pub use wire::Transport;

pub(super) use body::FaultyBody;
pub(super) use script::{Answer, Broken, Script};
pub(super) use wire::{Link, Wire};

use super::draw;
use crate::units::Nanos;
use script::Done;
use when::When;

/// Help for those who write rules at the command line.
pub const GRAMMAR: &str = "\
Do wrong on purpose: FAULT[=VALUE][@WHEN…] (repeatable)

WHEN is rows=3,7,10-12 (requests by arrival, from 0), rate=1% (seeded) or time=10s-20s (from the start); \
without one every request is hit, with several where all hold.
Instead of a stream: refuse (by connection), hangup=close|reset, status=429, redirect=307, json, headers=2s.
In the stream: error=object|string|event|field|bare[,N], stall=2s[,N], cut=end|close|reset[,N] (N tokens before it).
At its end: no-done, open, open=bare|mute, no-usage, no-finish, late-usage=1s, empty.
In its form: bytes, utf8, crlf, cr, bom, comments, no-space, empty-choices, early-role, group=4, \
running-usage, long-line=2000000, gzip, reasoning[=N], reasoning-content[=N], tools.
Afterwards: idle=1s (closes an idle connection).";

/// How a connection or a body ends before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Break {
    /// The body ends in order, though the answer does not.
    End,
    /// The connection is closed.
    Close,
    /// The connection is reset.
    Reset,
}

/// In which form an error comes inside a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErrorForm {
    /// `{"error":{"message":…}}`
    Object,
    /// `{"error":"…"}`
    String,
    /// An event named `error`.
    Event,
    /// A line `error: {…}` in the place of `data: {…}`, as older llama.cpp servers write.
    Field,
    /// A line of JSON that is of no field at all.
    Bare,
}

/// How lines end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LineEnd {
    #[default]
    Lf,
    CrLf,
    Cr,
}

/// The key of a reasoning delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReasoningKey {
    Reasoning,
    ReasoningContent,
}

/// One thing done wrong. The table above says what each is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Refuse,
    Hangup(Break),
    Status(u16),
    Redirect(u16),
    Json,
    Headers(Nanos),
    Error(ErrorForm, u64),
    Stall(Nanos, u64),
    Cut(Break, u64),
    NoDone,
    Open(Done),
    Bytes,
    Utf8,
    Lines(LineEnd),
    Bom,
    Comments,
    NoSpace,
    EmptyChoices,
    EarlyRole,
    Group(u64),
    RunningUsage,
    LateUsage(Nanos),
    NoUsage,
    NoFinish,
    Empty,
    LongLine(usize),
    Gzip,
    Reasoning(ReasoningKey, u64),
    Tools,
    Idle(Nanos),
}

/// A fault and what it falls on.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultRule {
    /// As it was written.
    text: String,
    fault: Fault,
    when: When,
}

impl FaultRule {
    /// The fault without its `WHEN`, as the truth log has it.
    fn word(&self) -> &str {
        self.text.split('@').next().unwrap_or("")
    }
}

impl FromStr for FaultRule {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let text = text.trim();
        let mut parts = text.split('@');
        let fault = parse::fault(parts.next().unwrap_or(""))?;
        Ok(Self { text: text.to_owned(), fault, when: When::parse(parts)? })
    }
}

impl fmt::Display for FaultRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Everything that a server does wrong. In JSON a list of rules as they are written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct FaultPlan(Vec<FaultRule>);

impl FaultPlan {
    /// A plan of rules as they are written, so that a test reads like a command line.
    pub fn parse(rules: &[&str]) -> Result<Self, FaultError> {
        rules.iter().map(|rule| rule.parse()).collect::<Result<Vec<_>, _>>().map(Self)
    }

    /// Whether nothing is done wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether connection `number`, accepted `at` after the server's start, is refused.
    pub(super) fn refuses(&self, seed: u64, number: u64, at: Nanos) -> bool {
        let on = |rule: &&FaultRule| rule.fault == Fault::Refuse;
        self.falling(seed, number, at).any(|rule| on(&rule))
    }

    /// What becomes of request `number`, arrived `at` after the server's start; `None`: nothing wrong.
    pub(super) fn script(&self, seed: u64, number: u64, at: Nanos) -> Option<Box<Script>> {
        let mut script = None;
        for rule in self.falling(seed, number, at).filter(|rule| rule.fault != Fault::Refuse) {
            script.get_or_insert_with(Box::<Script>::default).add(rule.fault, rule.word());
        }
        script
    }

    /// The rules that fall on a number at a time. Each rule draws for itself.
    fn falling(&self, seed: u64, number: u64, at: Nanos) -> impl Iterator<Item = &FaultRule> {
        (0u64..).zip(&self.0).filter_map(move |(index, rule)| {
            let draw = || draw::share(seed, index, number);
            rule.when.holds(number, at, draw).then_some(rule)
        })
    }
}

impl From<Vec<FaultRule>> for FaultPlan {
    fn from(rules: Vec<FaultRule>) -> Self {
        Self(rules)
    }
}

impl TryFrom<Vec<String>> for FaultPlan {
    type Error = FaultError;

    fn try_from(rules: Vec<String>) -> Result<Self, FaultError> {
        Self::parse(&rules.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

impl From<FaultPlan> for Vec<String> {
    fn from(plan: FaultPlan) -> Self {
        plan.0.iter().map(FaultRule::to_string).collect()
    }
}
