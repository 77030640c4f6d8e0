//! Questions asked before `t0`: which model does the server serve? They are no rows of any result.

use std::future::poll_fn;

use hyper::StatusCode;
use serde::Deserialize;

use super::connect::{Dial, Pool};
use super::dialect;
use super::exchange::Exchange;
use super::head::RequestHead;
use super::watch::Watch;
use crate::clock::Clock;
use crate::units::Nanos;

/// A probe is answered within this time or not at all.
const LIMIT: Nanos = Nanos::from_secs(10);
/// A model list larger than this is none.
const BODY_LIMIT: usize = 4 * 1024 * 1024;

/// Why a server could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// No connection.
    #[error("cannot connect to {authority}: {source}")]
    Unreachable {
        /// Host and port.
        authority: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// No answer in time.
    #[error("{authority} did not answer GET {path} within 10 s")]
    Silent {
        /// Host and port.
        authority: String,
        /// What was asked.
        path: String,
    },
    /// Not HTTP, or it broke off.
    #[error("no HTTP answer from {authority}: {source}")]
    NotHttp {
        /// Host and port.
        authority: String,
        /// What the HTTP library says.
        source: hyper::Error,
    },
    /// An answer, but no model list.
    #[error("GET {path} at {authority} answered {status}: {message}")]
    Refused {
        /// Host and port.
        authority: String,
        /// What was asked.
        path: String,
        /// The status.
        status: StatusCode,
        /// The server's words.
        message: String,
    },
}

#[derive(Deserialize)]
struct Models {
    data: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    id: String,
}

/// The first model that `GET path` lists.
pub async fn first_model(
    dial: &Dial,
    clock: &Clock,
    head: &RequestHead,
    authority: &str,
    path: &str,
) -> Result<String, ProbeError> {
    let deadline = Some(clock.now() + LIMIT);
    let (status, body) = Watch::default()
        .guard(clock, deadline, get(dial, clock, head, authority, path))
        .await
        .map_err(|_| ProbeError::Silent {
            authority: authority.to_owned(),
            path: path.to_owned(),
        })??;
    let models = serde_json::from_slice::<Models>(&body).ok();
    match models.and_then(|models| models.data.into_iter().next()) {
        Some(model) if status == StatusCode::OK => Ok(model.id),
        _ => Err(ProbeError::Refused {
            authority: authority.to_owned(),
            path: path.to_owned(),
            status,
            message: head.scrub(dialect::error_message(&body)),
        }),
    }
}

async fn get(
    dial: &Dial,
    clock: &Clock,
    head: &RequestHead,
    authority: &str,
    path: &str,
) -> Result<(StatusCode, Vec<u8>), ProbeError> {
    let not_http = |source| ProbeError::NotHttp { authority: authority.to_owned(), source };
    let connection = Pool::new(dial.clone(), clock.clone())
        .dial()
        .await
        .map_err(|source| ProbeError::Unreachable { authority: authority.to_owned(), source })?;
    let mut exchange = Exchange::start(connection).await.map_err(not_http)?;
    let request = head.get(path).expect("the path comes from a parsed URL");
    let head = exchange.send(request).await.map_err(not_http)?;
    let mut body = Vec::new();
    while let Some(chunk) = poll_fn(|context| exchange.poll_chunk(context)).await {
        body.extend_from_slice(&chunk.map_err(not_http)?.0);
        if body.len() > BODY_LIMIT {
            break;
        }
    }
    Ok((head.status, body))
}
