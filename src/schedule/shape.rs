//! How a trace is bent into a plan: the shaping options, as parsed.

use super::fit::ServerLength;
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
