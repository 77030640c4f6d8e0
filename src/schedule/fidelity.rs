//! What was asked against what was planned: arrivals and lengths on both sides, so that nobody has to
//! believe a plan.
//!
//! Gathered only where somebody asks for it ([`super::Plan::with_fidelity`]), since counting lengths
//! costs more than planning does. What was sent is [`crate::metrics`]' to tell.

use serde::Serialize;

pub use crate::trace::stats::{ArrivalFigures, Arrivals};

use crate::trace::Request;
use crate::trace::stats::{LengthFigures, Lengths};
use crate::units::Nanos;

/// Arrivals and lengths of a set of rows.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// When they arrive; empty where they have no times.
    pub arrivals: Arrivals,
    /// Prompt lengths.
    pub input_tok: Lengths,
    /// Completion lengths, of the rows that ask for one.
    pub output_tok: Lengths,
    rows: u64,
}

/// A side in figures.
#[derive(Clone, Debug, Serialize)]
pub struct SideFigures {
    /// Rows.
    pub rows: u64,
    /// When they arrive; absent where they have no times.
    pub arrivals: Option<ArrivalFigures>,
    /// Prompt lengths.
    pub input_tok: Option<LengthFigures>,
    /// Completion lengths, of the rows that ask for one.
    pub output_tok: Option<LengthFigures>,
}

/// Rows as they came into a plan, and as they left it.
#[derive(Clone, Debug, Default)]
pub struct Fidelity {
    /// Times and lengths of the source.
    pub asked: Side,
    /// Due times, and lengths as they will be sent.
    pub planned: Side,
}

/// Two sides and what lies between them.
#[derive(Clone, Debug, Serialize)]
pub struct FidelityFigures {
    /// The source.
    pub asked: SideFigures,
    /// The plan.
    pub planned: SideFigures,
    /// Kolmogorov and Smirnov's distance of the prompt lengths.
    pub input_tok_ks: Option<f64>,
    /// The same of the completion lengths.
    pub output_tok_ks: Option<f64>,
}

impl Side {
    /// Counts a row.
    pub fn add(&mut self, at: Option<Nanos>, request: &Request) {
        self.rows += 1;
        if let Some(at) = at {
            self.arrivals.add(at);
        }
        self.input_tok.add(request.input_tok);
        if let Some(output_tok) = request.output_tok {
            self.output_tok.add(output_tok);
        }
    }

    /// The figures.
    #[must_use]
    pub fn figures(&self) -> SideFigures {
        SideFigures {
            rows: self.rows,
            arrivals: (self.arrivals.rows() > 0).then(|| self.arrivals.figures()),
            input_tok: self.input_tok.figures(),
            output_tok: self.output_tok.figures(),
        }
    }
}

impl Fidelity {
    /// The figures, against the source as it was before anything changed its rate, where that is at hand.
    #[must_use]
    pub fn figures(&self, source: Option<&Side>) -> FidelityFigures {
        let asked = source.unwrap_or(&self.asked);
        FidelityFigures {
            asked: asked.figures(),
            planned: self.planned.figures(),
            input_tok_ks: asked.input_tok.distance(&self.planned.input_tok),
            output_tok_ks: asked.output_tok.distance(&self.planned.output_tok),
        }
    }
}
