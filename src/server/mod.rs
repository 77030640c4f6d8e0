//! What a server is asked before `t0` and what its answers mean: its engine and models, its tokenizer, the
//! place of its metrics, and one small request that shows whether rows can be sent.
//!
//! Deliberately absent: sockets and HTTP (see [`crate::client`]), and when to ask.

mod engine;
mod probe;

pub mod metrics_url;
pub mod preflight;
pub mod tokenize;

pub use engine::{Engine, Model, UnknownEngine};
pub use probe::{Probe, ServerFacts};
