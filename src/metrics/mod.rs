//! From rows to figures: what `summary.csv`, the console and SLOs say about a run.
//!
//! [`Metrics`] takes every row with its record as they end and comes to a [`Summary`]; both are pure.
//! The README's tables name the metrics; where a definition leaves a choice, this is what was chosen:
//!
//! - **Percentiles** are nearest ranks over measured and cut-off (*censored*) values. `n`, mean,
//!   standard deviation, minimum and maximum describe the measured ones. A percentile is empty where
//!   the values are too few to bound it ([`Percentile::least_n`]) and where it falls on a cut-off one.
//! - **`ci_low`, `ci_high`** are the distribution-free 95% interval of the *median*, from order
//!   statistics, for metrics in milliseconds that have one value per request. It takes requests to be
//!   independent. Pooled gaps are not, so they have none.
//! - **Pooled figures** (`gap_ms`, `itl_ms`, token rates) are made of the pieces that `intervals.csv`
//!   holds ([`Interval`]): percentiles from buckets of three significant digits, basis `histogram`;
//!   number, mean, standard deviation, minimum and maximum exact.
//! - **`gap_ms`, `itl_ms`** pool the gaps of all `ok` rows and of rows cut by us as far as they came;
//!   such a row has one gap more of unknown length, which is censored. Where a running count stood
//!   still over an event, `itl_ms` lends its gap to the next event that moved it.
//! - **`bursty_share`** is over the same rows as `gap_ms`, those of 16 token events or more.
//! - **`decode_tok_s`, `e2e_tok_s`** are per request; cut-off ones rank *below* all measured values.
//! - **`input_tok_s`** counts the prompts of `ok` rows when their first token came; it is empty when
//!   the server left one of them uncounted.
//! - **A rate or a count** stands in `mean`. Its `n` is what was counted; of `error_rate`, the rows due.
//! - **A class scope** holds measured rows. Its token rates count all tokens of the class that came
//!   inside the window, as in scope `measured`, from whatever row.
//!
//! Deliberately absent: files, words for people, a clock, tokens guessed from what was asked for.

pub mod abort;
mod backlog;
pub mod binomial;
pub mod burst;
pub mod client_figures;
mod distribution;
pub mod fidelity;
mod finish;
mod gather;
pub mod health;
mod interval;
mod ledger;
pub mod little;
mod metric;
mod part;
mod percentile;
mod pool;
mod summary;
mod tally;
#[cfg(test)]
mod tests;
pub mod timeline;
mod values;

pub use backlog::Behind;
pub use distribution::{CensoredRank, Distribution, EXACT_LIMIT};
pub use gather::{CLASS_LIMIT, Metrics, OTHER_CLASS, Window};
pub use interval::{INTERVAL_S, Interval, IntervalPhase, Quantity};
pub use metric::Metric;
pub use percentile::Percentile;
pub use pool::{Pool, Squares};
pub use summary::{ALL, MEASURED, Stat, Summary, SummaryLine};
pub use tally::{AskedGot, Tally};
pub use values::{Basis, HISTOGRAM_ERROR};
