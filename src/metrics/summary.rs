//! The figures of a run, as plain data: what `summary.csv` and the console say.

use super::backlog::Behind;
use super::line::{Line, Stat};
use super::tally::Tally;
use crate::units::Nanos;

/// The scope of rows due inside the measured window.
pub const MEASURED: &str = "measured";
/// The scope of all rows.
pub const ALL: &str = "all";

/// What a run came to. Instants are offsets from `t0`.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// End of the warm-up: where the measured window begins.
    pub warmup: Nanos,
    /// The first due time of all.
    pub first_due: Option<Nanos>,
    /// The last one: where the measured window ends.
    pub last_due: Option<Nanos>,
    /// The last token event of all.
    pub last_token: Option<Nanos>,
    /// When the last row ended.
    pub end: Option<Nanos>,
    /// The second in which the sends were furthest behind the schedule; `None` where that is not known.
    pub behind: Option<Behind>,
    /// Counts over the rows due inside the measured window.
    pub measured: Tally,
    /// Counts over all rows.
    pub all: Tally,
    /// The lines of `summary.csv`: scope `measured`, then `all`, then the classes by name.
    pub lines: Vec<Line>,
}

impl Summary {
    /// Length of the measured window; `None` when it has none.
    #[must_use]
    pub fn window(&self) -> Option<Nanos> {
        self.last_due.map(|last| last.since(self.warmup)).filter(|length| *length > Nanos::ZERO)
    }

    /// From the last due time to the end of the last row.
    #[must_use]
    pub fn drain(&self) -> Option<Nanos> {
        Some(self.end?.since(self.last_due?))
    }

    /// The line of a metric in a scope.
    #[must_use]
    pub fn line(&self, metric: &str, scope: &str) -> Option<&Line> {
        self.lines.iter().find(|line| *line.metric == *metric && *line.scope == *scope)
    }

    /// One figure; `None` when it is an empty cell or there is no such line.
    #[must_use]
    pub fn value(&self, metric: &str, scope: &str, stat: Stat) -> Option<f64> {
        self.line(metric, scope)?.stat(stat)
    }
}
