//! A recorded trace in, a workload file out, with how well each part fits beside it.
//!
//! Lengths become quantile grids; arrivals an envelope per minute over a renewal process, or bursts where
//! most seconds are silent; shared blocks a tree with the recorded reuse; sessions turns, growth and
//! pauses. What came out is then generated and measured as the trace was, by the same code. Deliberately
//! absent: a search for better parameters, and silence about what the model cannot carry.

mod arrivals;
mod goodness;
mod prefix;
mod sessions;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeMap;

use self::arrivals::Times;
use self::prefix::Blocks;
use self::sessions::Turns;
use super::{Workload, WorkloadError};
use crate::trace::Request;
use crate::trace::stats::{Stats, TraceFigures};

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

/// What is gathered from the rows.
#[derive(Debug, Default)]
struct Sample {
    times: Times,
    blocks: Blocks,
    turns: Turns,
    classes: BTreeMap<String, u64>,
    worded: u64,
}

impl Sample {
    fn add(&mut self, row: &Request) {
        self.times.add(row);
        self.blocks.add(row);
        self.turns.add(row);
        if let Some(class) = &row.class
            && self.classes.len() < 1_000
        {
            *self.classes.entry(class.to_string()).or_default() += 1;
        }
        let words = row.content.as_deref();
        self.worded +=
            u64::from(words.is_some_and(|own| own.prompt.is_some() || own.messages.is_some()));
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
    let (recorded, shapes) = stats.finish();
    let draft = text::Draft::new(&sample, &recorded, &shapes, name);
    let workload = Workload::parse(&draft.plain(), "fit.toml").map_err(FitError::Unfit)?;
    let goodness = goodness::measure(&workload, &sample, &recorded, &shapes);
    let warnings = warnings(&sample, &recorded);
    Ok(Fit { text: draft.with(&goodness, &warnings), report: goodness.lines(), warnings })
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
    warnings.extend(sample.blocks.warnings(&sample.turns));
    warnings
}
