//! The simulated server.
pub mod engine;
pub mod settings;

mod draw;
