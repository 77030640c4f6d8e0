//! A server before the first row: where it is, what it says of itself, whether it would serve, and how it
//! counts prompts; or a simulated one, started.
//!
//! Everything here is asked before `t0`, in requests that are in no result. Deliberately absent: rows
//! (see [`crate::replay`]), printing, and arguments as typed.

pub mod address;
pub mod body_keys;
mod discovery;
mod error;
pub mod prompt_fit;
mod servers;
mod settings;
mod simulated;

pub use address::{Address, SOCKET_URL};
pub use discovery::{Remark, Tell};
pub use error::ServerError;
pub use servers::Servers;
pub use settings::{Connection, ServerSettings, Switch};
pub use simulated::SimulatedServer;
