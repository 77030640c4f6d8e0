//! What a run tells while it is prepared and while it lasts, as typed events to an observer.
//!
//! Deliberately absent: printing, and whether anybody listens.

use super::traffic::Traffic;
use crate::clock::Anchor;
use crate::metrics::abort::AbortReason;
use crate::record::StreamRecord;
use crate::schedule::PlanFacts;
use crate::server::{Remark, Servers};

/// Something that happened, or that a person should know.
#[derive(Debug)]
pub enum Event<'a> {
    /// Worth knowing; where it bears on the figures, the report has it too.
    Note(&'a str),
    /// Something may be wrong with the figures to come.
    Warning(&'a str),
    /// Something that takes a while begins, or has come to its end: a sentence.
    Step(&'a str),
    /// Something was learnt of a server before the first row.
    Server(Remark),
    /// Source and server are known; the plan where it can be counted ahead.
    Ready {
        /// The source.
        traffic: &'a Traffic,
        /// The plan.
        plan: Option<&'a PlanFacts>,
        /// The servers.
        servers: &'a Servers,
    },
    /// `t0` is this instant.
    Started(Anchor),
    /// A request has ended.
    Ended(&'a StreamRecord),
    /// Sending stops early, by a rule.
    StoppingEarly(&'a AbortReason),
    /// Time has passed.
    Progress(Progress),
    /// The last request has ended.
    Over,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Since `t0`, in seconds.
    pub elapsed_s: f64,
    /// Rows of the plan, where they are known.
    pub planned: Option<u64>,
    /// Requests sent.
    pub sent: u64,
    /// Requests ended, however.
    pub ended: u64,
    /// Of them, those that failed.
    pub failed: u64,
    /// Completion tokens of requests that ended well.
    pub output_tok: u64,
}

/// Hears the events of a run, on the thread that carries it out.
pub trait Observer {
    /// Takes one event. What takes long here holds up the writing of results, never a request.
    fn observe(&mut self, event: Event<'_>);
}

impl<F: FnMut(Event<'_>)> Observer for F {
    fn observe(&mut self, event: Event<'_>) {
        self(event);
    }
}
