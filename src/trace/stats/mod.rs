//! What a trace is like, in figures: arrivals, lengths, sessions, shared prefixes.
//!
//! One pass over rows in time order, in flat memory but for what the figures themselves need: a count
//! per different length, a session's last row, an id per block. Every collection has a limit, and a
//! figure that met its own is left empty rather than wrong. Nothing here is drawn or printed.

mod arrivals;
mod lengths;
mod pairs;
mod reuse;
mod sessions;

use serde::Serialize;

pub use self::arrivals::{ArrivalFigures, Arrivals, SCALES_S, ScaleFigures};
pub use self::lengths::{Atom, LengthFigures, Lengths};
pub use self::pairs::Correlation;
pub use self::reuse::ReuseFigures;
pub use self::sessions::SessionFigures;

use self::pairs::Pairs;
use self::reuse::Reuse;
use self::sessions::Sessions;
use crate::trace::Request;

/// Gathers the figures of rows, which come in time order.
#[derive(Debug, Default)]
pub struct Stats {
    arrivals: Arrivals,
    input: Lengths,
    output: Lengths,
    pairs: Pairs,
    sessions: Sessions,
    reuse: Reuse,
    worded: u64,
    natural_rows: u64,
}

/// The figures of a trace. What does not apply is absent.
#[derive(Clone, Debug, Serialize)]
pub struct TraceFigures {
    /// Rows.
    pub rows: u64,
    /// Rows that say their prompt or messages themselves.
    pub worded_rows: u64,
    /// Rows that ask for no completion length: their answers end by themselves.
    pub natural_rows: u64,
    /// When rows arrive.
    pub arrivals: ArrivalFigures,
    /// Prompt lengths.
    pub input_tok: Option<LengthFigures>,
    /// Completion lengths, of the rows that ask for one.
    pub output_tok: Option<LengthFigures>,
    /// How the two go together, where both are asked for.
    pub correlation: Option<Correlation>,
    /// Sessions, where rows name any.
    pub sessions: Option<SessionFigures>,
    /// Shared prefixes, where rows have blocks.
    pub reuse: Option<ReuseFigures>,
}

impl Stats {
    /// Counts a row.
    pub fn add(&mut self, request: &Request) {
        self.arrivals.add(request.at);
        self.input.add(request.input_tok);
        if let Some(output_tok) = request.output_tok {
            self.output.add(output_tok);
            self.pairs.add(request.input_tok, output_tok);
        }
        self.natural_rows += u64::from(request.output_tok.is_none());
        self.sessions.add(request);
        self.reuse.add(request);
        self.worded += u64::from(request.has_literal_prompt());
    }

    /// The figures, and what a picture is drawn from.
    #[must_use]
    pub fn finish(self) -> (TraceFigures, Shapes) {
        let figures = TraceFigures {
            rows: self.arrivals.rows(),
            worded_rows: self.worded,
            natural_rows: self.natural_rows,
            arrivals: self.arrivals.figures(),
            input_tok: self.input.figures(),
            output_tok: self.output.figures(),
            correlation: self.pairs.correlation(),
            sessions: self.sessions.figures(),
            reuse: self.reuse.figures(),
        };
        let shapes =
            Shapes { arrivals: self.arrivals, input_tok: self.input, output_tok: self.output };
        (figures, shapes)
    }
}

/// What a picture of a trace is drawn from.
#[derive(Debug)]
pub struct Shapes {
    /// Rows over time.
    pub arrivals: Arrivals,
    /// Prompt lengths.
    pub input_tok: Lengths,
    /// Completion lengths.
    pub output_tok: Lengths,
}

#[cfg(test)]
mod tests;
