//! How a server is reached and recognised: the arguments, as typed, and the keys they lead to.
//!
//! Header values and keys are taken as plain strings, so that no message of the argument parser can
//! quote them.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, bail};
use clap::Args;

use crate::client::dialect::MaxTokensKey;
use crate::client::{Engine, Headers, TlsOptions, UnknownEngine};
use crate::units::{Nanos, UnitError};

/// `--engine`: one by name, or (`None`) whichever is found.
#[derive(Clone, Copy, Debug)]
pub(super) struct EngineChoice(pub(super) Option<Engine>);

impl FromStr for EngineChoice {
    type Err = UnknownEngine;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        if word == "auto" { Ok(Self(None)) } else { word.parse().map(|engine| Self(Some(engine))) }
    }
}

/// Something to do always, never, or where it is known to be fine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Switch {
    Auto,
    On,
    Off,
}

impl FromStr for Switch {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "auto" => Ok(Self::Auto),
            "on" => Ok(Self::On),
            "off" => Ok(Self::Off),
            _ => Err(format!("`{word}` is none of auto, on and off")),
        }
    }
}

/// Arguments of `run` about reaching servers.
#[derive(Debug, Args)]
#[command(next_help_heading = "Reaching the server")]
pub(super) struct ReachArgs {
    /// Engine of the server, where it is not found or found wrong; decides which vendor keys are
    /// sent. `openai` sends none and asks nothing but /v1/models
    #[arg(long, value_name = "ENGINE", default_value = "auto")]
    pub(super) engine: EngineChoice,
    /// Send no small request ahead, and ask nothing but /v1/models (and that only without --model)
    #[arg(long)]
    pub(super) no_preflight: bool,
    /// Ask until the server answers, for D at the most
    #[arg(long, value_name = "D", value_parser = duration)]
    pub(super) wait_ready: Option<Nanos>,
    /// Token counts on every chunk: auto (where the engine is known to give them), on, off
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(super) running_usage: Switch,
    /// Cut prompts (and completions) that are together too long for the server, and count them
    #[arg(long)]
    pub(super) clip_to_server: bool,
    /// What the body calls the longest answer: `max_tokens` or `max_completion_tokens`
    #[arg(long, value_name = "KEY", default_value = "max_tokens")]
    pub(super) max_tokens_key: MaxTokensKey,
    /// Header of every request, as 'NAME: VALUE' (repeatable); never in any file or message
    #[arg(long = "header", value_name = "K:V")]
    pub(super) headers: Vec<String>,
    /// Environment variable that holds the API key, sent as `Authorization: Bearer`
    #[arg(long, value_name = "VAR", conflicts_with = "api_key_file")]
    pub(super) api_key_env: Option<String>,
    /// File that holds the API key
    #[arg(long, value_name = "FILE")]
    pub(super) api_key_file: Option<PathBuf>,
    /// Trust any certificate
    #[arg(long)]
    pub(super) insecure: bool,
    /// Certificates (PEM) to trust beside the system's
    #[arg(long, value_name = "FILE")]
    pub(super) cacert: Option<PathBuf>,
    /// Client certificate (PEM)
    #[arg(long, value_name = "FILE")]
    pub(super) cert: Option<PathBuf>,
    /// Key of the client certificate (PEM; default: in the file of the certificate)
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(super) key: Option<PathBuf>,
    /// Connect to this unix socket, whatever host the URL names (without a URL: localhost)
    #[arg(long, value_name = "PATH", conflicts_with = "proxy")]
    pub(super) unix_socket: Option<PathBuf>,
    /// HTTP proxy, as `http://[user:password@]host:port`; never taken from the environment
    #[arg(long, value_name = "URL")]
    pub(super) proxy: Option<String>,
}

impl ReachArgs {
    /// Whether more may be asked than what is served.
    pub(super) fn may_probe(&self) -> bool {
        !self.no_preflight && self.engine.0 != Some(Engine::OpenAi)
    }

    /// Whether requests bear a key of any kind.
    pub(super) fn has_key(&self) -> bool {
        let is_key = |line: &String| line.to_ascii_lowercase().starts_with("authorization");
        self.api_key_env.is_some() || self.api_key_file.is_some() || self.headers.iter().any(is_key)
    }

    pub(super) fn tls(&self) -> TlsOptions {
        TlsOptions {
            ca_file: self.cacert.clone(),
            insecure: self.insecure,
            cert_file: self.cert.clone(),
            key_file: self.key.clone(),
        }
    }

    pub(super) fn has_tls(&self) -> bool {
        self.insecure || self.cacert.is_some() || self.cert.is_some()
    }

    /// The headers of every request, the key among them.
    pub(super) fn headers(&self) -> anyhow::Result<Headers> {
        let mut headers = Headers::default();
        for (at, line) in self.headers.iter().enumerate() {
            headers.add(at + 1, line)?;
        }
        if let Some(key) = self.key()? {
            headers.bearer(&key)?;
        }
        Ok(headers)
    }

    fn key(&self) -> anyhow::Result<Option<String>> {
        let (key, from) = match (&self.api_key_env, &self.api_key_file) {
            (Some(variable), _) => {
                // Not named: a key is easily given in the place of its variable.
                let key = std::env::var_os(variable).context(
                    "the environment variable that --api-key-env names is not set\nhint: give the \
                     variable's name, not the key",
                )?;
                (key.into_string().ok(), "the variable that --api-key-env names".to_owned())
            }
            (None, Some(path)) => {
                let from = path.display().to_string();
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("failed to read the API key from {from}"))?;
                (Some(text), from)
            }
            (None, None) => return Ok(None),
        };
        match key.as_deref().map(str::trim) {
            Some(key) if !key.is_empty() && !key.contains(char::is_whitespace) => {
                Ok(Some(key.to_owned()))
            }
            Some("") => bail!("{from} holds no API key: it is empty"),
            _ => bail!("{from} holds no API key: a key is one word of text"),
        }
    }
}

fn duration(text: &str) -> Result<Nanos, UnitError> {
    Nanos::parse_duration(text)
}
