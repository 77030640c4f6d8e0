//! The life of one request: what is sent, the events that come back, and the outcome that they make.
//!
//! Deliberately absent: sockets and HTTP (see [`super::wire`]), and sending again (see [`super::retry`]).

mod attempt;
mod events;
mod failure;
mod retry_after;
mod verdict;

pub mod dialect;
pub mod sse;

pub(super) use attempt::{Attempt, Ended};
