//! What is wished of servers: which, how they are reached, what may be asked of them and what requests
//! to them have in common.
//!
//! Plain data. Deliberately absent: arguments as typed, and reading keys from anywhere.

use std::path::PathBuf;

use serde::{Serialize, Serializer};

use super::engine::Engine;
use crate::client::dialect::{Api, MaxTokensKey};
use crate::client::{Headers, TlsOptions};
use crate::redact::redact_url;
use crate::units::Nanos;

/// Something to do always, never, or where it is known to be fine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Switch {
    /// Where it is known to be fine.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// How servers are connected to.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Connection {
    /// Headers of every request, the key among them. Never serialised.
    #[serde(skip)]
    pub headers: Headers,
    /// Certificates to trust and to show.
    pub tls: TlsOptions,
    /// Speak HTTP/2.
    pub http2: bool,
    /// Connect to this socket, whatever host the URL names.
    pub unix_socket: Option<PathBuf>,
    /// HTTP proxy, as `http://[user:password@]host:port`; serialised without its user part.
    #[serde(serialize_with = "without_user")]
    pub proxy: Option<String>,
}

#[expect(clippy::ref_option, reason = "as serde calls it")]
fn without_user<S: Serializer>(url: &Option<String>, out: S) -> Result<S::Ok, S::Error> {
    url.as_deref().map(redact_url).serialize(out)
}

/// What is wished of the servers of a run.
#[derive(Clone, Debug, Serialize)]
pub struct ServerSettings {
    /// `model` of every request; `None`: the first that the server lists.
    pub model: Option<String>,
    /// Which API is spoken.
    pub api: Api,
    /// Ask for token usage.
    pub usage: bool,
    /// Token counts on every chunk.
    pub running_usage: Switch,
    /// Ask the server to ignore the end-of-sequence token.
    pub ignore_eos: bool,
    /// What the body calls the longest answer.
    pub max_tokens_key: MaxTokensKey,
    /// The engine; `None`: whichever is found.
    pub engine: Option<Engine>,
    /// Send a small request ahead, and ask more than which models there are.
    pub preflight: bool,
    /// Ask until the server answers, for so long at the most.
    pub wait_ready: Option<Nanos>,
    /// The way there.
    pub connection: Connection,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            model: None,
            api: Api::Chat,
            usage: true,
            running_usage: Switch::default(),
            ignore_eos: false,
            max_tokens_key: MaxTokensKey::default(),
            engine: None,
            preflight: true,
            wait_ready: None,
            connection: Connection::default(),
        }
    }
}

impl ServerSettings {
    /// Whether more may be asked than what is served.
    #[must_use]
    pub fn may_probe(&self) -> bool {
        self.preflight && self.engine != Some(Engine::OpenAi)
    }
}
