//! The simulated server: an OpenAI-compatible server of known truth.
//!
//! Its model ([`settings`], [`engine`]) says when each token is due; the server gives the tokens out
//! over HTTP in the shapes of vLLM, logs what it really did ([`truth`]) and counts it in `/metrics`
//! ([`exposition`]). Asked to, it does wrong ([`fault`]). It runs on a port
//! ([`run`]) or over in-memory pipes in virtual time ([`server`]). It knows nothing of the client: no
//! room but `clock` is used here.

pub mod engine;
pub mod exposition;
pub mod fault;
pub mod run;
pub mod server;
pub mod settings;
pub mod truth;

mod answer;
mod chunk;
mod connection;
mod draw;
mod mailbox;
mod meter;
mod nanoseconds;
mod refusal;
mod request;
mod route;
mod stream;

#[cfg(test)]
mod tests;

pub use fault::FaultPlan;
pub use run::{RunError, run_blocking};
pub use server::Server;
pub use settings::{Exposition, Settings};
