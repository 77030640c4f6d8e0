//! What a plan amounts to, counted as it is made.

use std::collections::HashSet;
use std::sync::Arc;

use super::Planned;
use super::csv::PLAN_COLUMNS;
use crate::columns::{write_header, write_line};
use crate::trace::{Fnv, OutputSum};
use crate::units::Nanos;

/// What ended a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// It has not ended: [`PlanFacts`] count what was planned so far.
    #[default]
    Open,
    /// The source had no more rows.
    Source,
    /// The window's `to`.
    Window,
    /// The limit on rows.
    Limit,
    /// The duration.
    Duration,
}

/// What a plan amounts to. Complete once the plan's iterator has ended, except where noted.
///
/// Every row read is in exactly one of `rows`, `left_out` and `past_end`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanFacts {
    /// Rows planned.
    pub rows: u64,
    /// Times that the source was taken again.
    pub repeats: u64,
    /// Due time of the first row; `None` in the closed loop, and without rows.
    pub first_due: Option<Nanos>,
    /// Due time of the last row; `None` in the closed loop, and without rows.
    pub last_due: Option<Nanos>,
    /// Prompt tokens of all rows, as they will be sent.
    pub input_tok: u64,
    /// Completion tokens of all rows, as they will be asked for.
    pub output: OutputSum,
    /// Rows whose prompt was clipped.
    pub clipped_input: u64,
    /// Rows whose completion was clipped.
    pub clipped_output: u64,
    /// Rows cut to what the server takes.
    pub clipped_to_server: u64,
    /// Rows that ask for more than the server takes, and the first of them.
    pub too_long: u64,
    /// 0-based row of the source.
    pub first_too_long: Option<u64>,
    /// The most that a row asks for, prompt and completion together, in tokens; a row that asks for no
    /// completion length needs room for one token.
    pub longest_tok: u64,
    /// Rows that asked for no completion and now ask for one token.
    pub raised_output: u64,
    /// Rows read that are outside the window. Rows after an early end are unread, and here only
    /// after [`super::Plan::read_rest`].
    pub left_out: u64,
    /// Rows read that the limit or the duration cut off; all of them only after
    /// [`super::Plan::read_rest`].
    pub past_end: u64,
    /// Sessions with planned rows that lose later ones to the limit or the duration. Nobody can know
    /// before the source is read to its end: counted by [`super::Plan::read_rest`].
    pub cut_sessions: u64,
    /// Gaps that the cap shortened.
    pub shortened_gaps: u64,
    /// Replayed time that the cap removed.
    pub removed: Nanos,
    /// Later turns that are due a pause after the end of the turn before them.
    pub think_rows: u64,
    /// Rows that say their prompt or messages themselves.
    pub worded_rows: u64,
    /// Rows whose prompt begins as another's may: with prefix blocks, with words of their own, or as a
    /// later turn.
    pub shared_rows: u64,
    /// Rows that came out of time order and are due later than recorded, with the row before them. A
    /// reader sorts, or refuses such a file; so this is 0 unless it was told not to.
    pub late_rows: u64,
    /// What ended the plan.
    pub end: End,
    /// FNV-1a (64 bits, hexadecimal) over the bytes of the plan's CSV, header included: equal hashes,
    /// equal plans. Empty until the plan has ended.
    pub plan_hash: String,
}

/// Counts the rows of a plan.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) facts: PlanFacts,
    /// A row as text, in a buffer that is used again.
    line: Vec<u8>,
    hash: Fnv,
    /// Sessions with planned rows, where an end can cut them, and until it has. All of them, since any may go on
    /// after it; so each is but a number of 64 bits.
    sessions: Option<HashSet<u64>>,
}

impl Tally {
    pub(super) fn new(can_cut: bool) -> Self {
        let mut hash = Fnv::default();
        let mut line = Vec::new();
        write_header(PLAN_COLUMNS, &mut line);
        hash.write(&line);
        Self { facts: PlanFacts::default(), line, hash, sessions: can_cut.then(HashSet::new) }
    }

    /// Counts a row that will be sent.
    pub(super) fn planned(&mut self, planned: &Planned) {
        let (facts, request) = (&mut self.facts, &planned.request);
        facts.rows += 1;
        facts.first_due = facts.first_due.or(planned.due);
        facts.last_due = planned.due.or(facts.last_due);
        facts.input_tok += u64::from(request.input_tok);
        facts.output.add(request.output_tok);
        let later_turn = request.turn.is_some_and(|turn| turn > 1);
        facts.think_rows += u64::from(request.think.is_some());
        let is_worded = request.has_literal_prompt();
        facts.worded_rows += u64::from(is_worded);
        facts.shared_rows += u64::from(is_worded || later_turn || request.prefix.is_some());
        if let (Some(sessions), Some(session)) = (&mut self.sessions, &request.session) {
            sessions.insert(Fnv::of(session.as_bytes()).0);
        }
        self.line.clear();
        write_line(PLAN_COLUMNS, planned, &mut self.line);
        self.hash.write(&self.line);
    }

    /// Counts a row inside the window that the limit or the duration cut off.
    pub(super) fn cut(&mut self, session: Option<&Arc<str>>) {
        self.facts.past_end += 1;
        if let (Some(sessions), Some(session)) = (&mut self.sessions, session)
            && sessions.remove(&Fnv::of(session.as_bytes()).0)
        {
            self.facts.cut_sessions += 1;
        }
    }

    pub(super) fn end(&mut self, end: End) {
        self.facts.end = end;
        self.facts.plan_hash = self.hash.to_string();
    }
}
