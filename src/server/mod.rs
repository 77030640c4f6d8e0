//! A server before the first row: where it is, what it says of itself, whether it would serve, and how it
//! counts prompts; or a simulated one, started.
//!
//! Everything here is asked before `t0`, in requests that are in no result. Deliberately absent: sockets
//! and HTTP (see [`crate::client`]), rows (see [`crate::replay`]), printing, and arguments as typed.

mod address;
mod discovery;
mod engine;
mod error;
mod probe;
mod servers;
mod settings;
mod simulated;

pub mod body_keys;
pub mod metrics_url;
pub mod preflight;
pub mod prompt_fit;
pub mod tokenize;

pub use address::{Address, SOCKET_URL};
pub use discovery::{Remark, Tell};
pub use engine::{Engine, Model, UnknownEngine};
pub use error::ServerError;
pub use probe::{Probe, ServerFacts};
pub use servers::Servers;
pub use settings::{Connection, ServerSettings, Switch};
pub use simulated::SimulatedServer;
