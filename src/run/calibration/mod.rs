//! How wrong this client's own figures are on this machine, under a load of known size.
//!
//! Deliberately absent: the page for people, and what an error means for a run.

mod figures;
mod load;
mod measure;
mod pieces;
mod scratch;
mod search;

pub(super) use self::figures::own_error;
pub use self::figures::{
    describe_load, describe_worst, errors, figure, json, meaning, ms, optional, percents,
};
pub use self::load::{UNKNOWN_ANSWER_TOK, interval, mean_answer_tok, of_plan, streams_of};
pub use self::measure::{Calibration, measure};
pub use self::pieces::Piece;
pub use self::scratch::Scratch;
pub use self::search::search;
