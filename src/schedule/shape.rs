//! How a trace is bent into a plan: the shaping options, as parsed, and the window that they cut.

use std::collections::HashSet;
use std::sync::Arc;

use super::clip::ServerLength;
use crate::trace::Request;
use crate::units::{Nanos, Speed};

/// The shaping options, in the order in which they act. The default plans the trace as recorded.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Shape {
    /// Keeps sessions that start at or after this trace time, which becomes the plan's zero.
    pub from: Option<Nanos>,
    /// Keeps sessions that start before this trace time; they run on past it.
    pub to: Option<Nanos>,
    /// Trace time ÷ speed is replayed time: above 1 is faster.
    pub speed: Speed,
    /// The longest idle gap, in replayed time (after speed), the one before the first row included.
    pub max_gap: Option<Nanos>,
    /// The most rows.
    pub limit: Option<u64>,
    /// Rows due at or after this replayed time are not planned. Of no effect in the closed loop,
    /// where it bounds the run.
    pub duration: Option<Nanos>,
    /// Clips prompt lengths.
    pub max_input_tok: Option<u32>,
    /// Clips completion lengths.
    pub max_output_tok: Option<u32>,
    /// Holds prompts and completions together to what a server takes.
    #[serde(skip)]
    pub server_length: Option<ServerLength>,
    /// A finished request, not the clock, sends the next: no row has a due time.
    #[serde(skip)]
    pub closed_loop: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            from: None,
            to: None,
            speed: Speed::ONE,
            max_gap: None,
            limit: None,
            duration: None,
            max_input_tok: None,
            max_output_tok: None,
            server_length: None,
            closed_loop: false,
        }
    }
}

/// The window of trace time: which rows belong to it.
///
/// A session is kept or left whole: cut by row, a conversation would lose its beginning. Rows come in time
/// order, so the first row of a session is its start. Names of sessions are kept as far as they are needed.
#[derive(Debug)]
pub(super) struct Window {
    from: Option<Nanos>,
    to: Option<Nanos>,
    /// Sessions that started before `from`.
    left: HashSet<Arc<str>>,
    /// Sessions that started inside; filled only where there is a `to` they can outlive.
    kept: HashSet<Arc<str>>,
}

impl Window {
    pub(super) fn new(from: Option<Nanos>, to: Option<Nanos>) -> Self {
        Self { from, to, left: HashSet::new(), kept: HashSet::new() }
    }

    /// Whether the row's session started inside. A row without one is a session of its own.
    pub(super) fn keeps(&mut self, request: &Request) -> bool {
        let early = self.from.is_some_and(|from| request.at < from);
        let late = self.to.is_some_and(|to| request.at >= to);
        let Some(session) = &request.session else { return !early && !late };
        if early {
            self.left.insert(Arc::clone(session));
            return false;
        }
        if self.left.contains(session) {
            return false;
        }
        if late {
            return self.kept.contains(session);
        }
        if self.to.is_some() {
            self.kept.insert(Arc::clone(session));
        }
        true
    }

    /// Whether this row and all later ones are outside: past `to`, and no kept session can go on.
    pub(super) fn is_over(&self, request: &Request) -> bool {
        self.to.is_some_and(|to| request.at >= to) && self.kept.is_empty()
    }
}
