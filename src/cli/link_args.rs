//! How a server is connected to: the arguments, as typed, and the keys they lead to.
//!
//! Header values and keys are taken as plain strings, so that no message of the argument parser can
//! quote them.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;

use crate::client::{Headers, TlsOptions};
use crate::server::Connection;

/// Arguments about the way to servers.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Reaching the server")]
pub(super) struct LinkArgs {
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
    /// Speak HTTP/2: many requests over one connection (without TLS: by prior knowledge)
    #[arg(long)]
    pub(super) http2: bool,
    /// Connect to this unix socket, whatever host the URL names (without a URL: localhost)
    #[arg(long, value_name = "PATH", conflicts_with = "proxy")]
    pub(super) unix_socket: Option<PathBuf>,
    /// HTTP proxy, as `http://[user:password@]host:port`; never taken from the environment
    #[arg(long, value_name = "URL")]
    pub(super) proxy: Option<String>,
}

impl LinkArgs {
    /// The same as settings, keys read.
    pub(super) fn connection(&self) -> anyhow::Result<Connection> {
        Ok(Connection {
            headers: self.headers()?,
            tls: TlsOptions {
                ca_file: self.cacert.clone(),
                insecure: self.insecure,
                cert_file: self.cert.clone(),
                key_file: self.key.clone(),
            },
            http2: self.http2,
            unix_socket: self.unix_socket.clone(),
            proxy: self.proxy.clone(),
        })
    }

    /// Refuses what only makes sense at a server that is named.
    pub(super) fn check_has_server(&self) -> anyhow::Result<()> {
        let has_tls = self.insecure || self.cacert.is_some() || self.cert.is_some();
        anyhow::ensure!(
            self.proxy.is_none() && !has_tls,
            "nothing is reached by TLS or a proxy without a server\nhint: give --url"
        );
        Ok(())
    }

    /// The headers of every request, the key among them.
    fn headers(&self) -> anyhow::Result<Headers> {
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
