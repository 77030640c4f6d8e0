//! Replay and simulated server joined in virtual time: the whole program without a socket, exact and
//! repeatable, an hour of traffic in seconds; and a client's figures held against a server's log.
//!
//! The code under test is the code that runs for real: the same worker, client, decoder and server,
//! over pipes in memory. Only the clock differs. Proofs over many seeds are made this way.

mod load;
mod truth;
mod virtual_run;

pub use load::{LONGEST_TOK, Load, LoadError};
pub use truth::{Agreement, TruthCheck, UNBOUNDED_PPM, check};
pub use virtual_run::{Driven, LabError, Outcome, Setup, drive, replay};
