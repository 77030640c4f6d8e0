//! A recorded trace in, a workload file out, with how well each part fits beside it.
//!
//! Lengths become quantile grids; arrivals an envelope per minute over a renewal process, or bursts where
//! most seconds are silent; shared blocks a tree with the recorded reuse; sessions turns, growth and
//! pauses, and one system prompt for what they share. What came out is then generated and measured as the
//! trace was, by the same code. Where long sessions differ from short ones so much that prompts come out
//! wrong, they become classes. Deliberately absent: any other search for better parameters, and silence
//! about what the model cannot carry.

mod arrivals;
mod goodness;
mod prefix;
mod sessions;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeMap;

use self::arrivals::Times;
use self::goodness::Goodness;
use self::prefix::Blocks;
use self::sessions::{RecordedTurns, grouped};
use self::text::Draft;
use super::{Workload, WorkloadError};
use crate::trace::Request;
use crate::trace::stats::{Shapes, Stats, TraceFigures};

/// The most rows, of which a few numbers each are held.
const LIMIT_ROWS: usize = 50_000_000;

/// A fitted workload.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The workload file.
    pub text: String,
    /// How well each part fits, a line each.
    pub report: Vec<String>,
    /// What the model does not carry, a line each.
    pub warnings: Vec<String>,
}

/// Why nothing was fitted.
#[derive(Debug, thiserror::Error)]
pub enum FitError<E> {
    /// The rows failed.
    #[error("{0}")]
    Rows(E),
    /// Too few to say anything.
    #[error("{rows} rows are too few to fit anything to; the least is {least}")]
    TooFew {
        /// How many there are.
        rows: usize,
        /// How many there have to be.
        least: usize,
    },
    /// Too many to hold.
    #[error("the trace has more than {limit} rows; fit a part of it")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// What came out is no workload: the trace holds something that a workload cannot say.
    #[error("what was fitted is no workload: {0}")]
    Unfit(WorkloadError),
}

/// The least number of rows.
const LEAST_ROWS: usize = 20;
/// Classes that sessions are put into, by turns and by their first prompt: none, some, more.
const CLASSES: [(usize, usize); 3] = [(1, 1), (4, 1), (8, 2)];
/// Sessions that a class has to hold on the mean.
const LEAST_SESSIONS: usize = 8;

/// What is gathered from the rows.
#[derive(Debug, Default)]
struct Sample {
    times: Times,
    blocks: Blocks,
    turns: RecordedTurns,
    classes: BTreeMap<String, u64>,
    worded: u64,
}

impl Sample {
    fn add(&mut self, row: &Request) {
        let is_start = self.turns.add(row);
        self.times.add(row.at, is_start);
        self.blocks.add(row, is_start);
        if let Some(class) = &row.class
            && self.classes.len() < 1_000
        {
            *self.classes.entry(class.to_string()).or_default() += 1;
        }
        self.worded += u64::from(row.has_literal_prompt());
    }
}

/// Fits a workload to rows in time order. `name` becomes the workload's.
pub fn fit<E>(
    rows: impl Iterator<Item = Result<Request, E>>,
    name: &str,
) -> Result<Fit, FitError<E>> {
    let (mut sample, mut stats) = (Sample::default(), Stats::default());
    for row in rows {
        let row = row.map_err(FitError::Rows)?;
        sample.add(&row);
        stats.add(&row);
        if sample.times.count() > LIMIT_ROWS {
            return Err(FitError::TooMany { limit: LIMIT_ROWS });
        }
    }
    let rows = sample.times.count();
    if rows < LEAST_ROWS {
        return Err(FitError::TooFew { rows, least: LEAST_ROWS });
    }
    if !sample.turns.are_there() {
        sample.times.without_turns();
    }
    let (recorded, shapes) = stats.finish();
    let (draft, goodness) = best(&sample, &recorded, &shapes, name).map_err(FitError::Unfit)?;
    let mut warnings = goodness.warnings.clone();
    warnings.extend(self::warnings(&sample, &recorded));
    Ok(Fit { text: draft.with(&goodness, &warnings), report: goodness.lines(), warnings })
}

/// The draft with the fewest classes whose prompts are within the bound, or else the nearest.
fn best(
    sample: &Sample,
    recorded: &TraceFigures,
    shapes: &Shapes,
    name: &str,
) -> Result<(Draft, Goodness), WorkloadError> {
    let mut best: Option<(Draft, Goodness)> = None;
    for (by_turns, by_first) in CLASSES {
        let groups = if sample.turns.are_there() {
            grouped(sample.turns.stretches(), by_turns, by_first)
        } else {
            Vec::new()
        };
        if best.is_some() && sample.turns.stretches().len() < groups.len() * LEAST_SESSIONS {
            break;
        }
        let draft = Draft::new(sample, recorded, shapes, &groups, name);
        let workload = Workload::parse(&draft.plain(), "fit.toml")?;
        let goodness = goodness::measure(&workload, sample, recorded, shapes);
        let distance = goodness.input_distance;
        if best.as_ref().is_none_or(|(_, best)| distance < best.input_distance) {
            best = Some((draft, goodness));
        }
        if groups.is_empty() || distance.is_none_or(|own| own <= goodness::DISTANCE_BOUND) {
            break;
        }
    }
    Ok(best.expect("the first draft is one"))
}

/// What the model leaves out.
fn warnings(sample: &Sample, recorded: &TraceFigures) -> Vec<String> {
    let mut warnings = Vec::new();
    if recorded.arrivals.quantised {
        warnings.push(
            "time stamps are rounded, so that many rows share one: the fit spreads them evenly"
                .to_owned(),
        );
    }
    let span_s = recorded.arrivals.span_s.unwrap_or(0.0);
    if span_s < 600.0 {
        warnings
            .push(format!("{span_s:.0} s are short for an envelope: what is longer is not known"));
    }
    if sample.classes.len() > 1 {
        warnings.push(format!(
            "the {} classes are fitted together, as one: convert the trace by class to keep them apart",
            sample.classes.len()
        ));
    }
    if recorded.natural_rows > 0 && recorded.output_tok.is_some() {
        warnings.push(format!(
            "{} rows ask for no completion length, and are given those of the others",
            recorded.natural_rows
        ));
    }
    if sample.worded > 0 {
        warnings.push(format!(
            "{} rows have words of their own, of which lengths alone stay",
            sample.worded
        ));
    }
    warnings.extend(sample.turns.warnings());
    if sample.times.begin_together() {
        warnings.push(
            "sessions begin together, each from its own start: when they arrive is not known, and the rate \
             of the fit is made up (fit with --rate R, or edit it)"
                .to_owned(),
        );
    }
    warnings.extend(sample.blocks.warnings());
    warnings
}
