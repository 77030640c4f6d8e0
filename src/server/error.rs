//! Why a server cannot be used.

use std::io;

use crate::client::url::UrlError;
use crate::client::url::proxy::ProxyError;
use crate::client::{FetchError, HeadError, TlsError};
use crate::replay::job::{JobError, JobFault};

/// Why a server cannot be used, told before the first row is due.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Settings that contradict each other, or what the server is.
    #[error("{0}")]
    Settings(String),
    /// It cannot be asked.
    #[error(transparent)]
    Probe(#[from] FetchError),
    /// It answers, but would serve no row; or it did not get ready.
    #[error("{0}")]
    NotServed(String),
    /// Its URL.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The headers of its requests.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// Certificates.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The URL of a proxy.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// A small request of our own that cannot be put into words.
    #[error(transparent)]
    Request(#[from] JobError),
    /// The same of a request that is no row.
    #[error(transparent)]
    Body(#[from] JobFault),
    /// A runtime or a timer.
    #[error(transparent)]
    System(#[from] io::Error),
    /// The simulated server's process.
    #[error("cannot start the simulated server: {problem}")]
    Simulator {
        /// What is wrong.
        problem: String,
    },
}

impl ServerError {
    /// Nobody is there, or nobody who would serve: no request could succeed.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Probe(_) | Self::NotServed(_))
    }
}
