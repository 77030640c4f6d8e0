//! Questions asked before `t0`, by GET: is anybody there, what is served, by which engine? They are no
//! rows of any result.

use hyper::StatusCode;
use hyper::header::HeaderMap;

use super::connect::{Dial, Pool};
use super::dialect;
use super::engine::{self, Engine, Model};
use super::exchange::{Exchange, HttpError};
use super::head::RequestHead;
use super::route::Route;
use super::target::Target;
use super::watch::Watch;
use crate::clock::Clock;
use crate::units::Nanos;

/// A probe is answered within this time or not at all.
const LIMIT: Nanos = Nanos::from_secs(10);
/// A reply larger than this is no answer to any question here.
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
        /// What was asked, without its query.
        path: String,
    },
    /// Not HTTP, or it broke off.
    #[error("no HTTP answer from {authority}: {source}")]
    NotHttp {
        /// Host and port.
        authority: String,
        /// What the HTTP library says.
        source: HttpError,
    },
}

/// What a server says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerFacts {
    /// Its engine; `None` where it is not recognised.
    pub engine: Option<Engine>,
    /// The engine's version.
    pub version: Option<String>,
    /// The models it lists.
    pub models: Vec<Model>,
    /// Why there is no model list, in the server's words.
    pub refusal: Option<String>,
}

/// Asks one server.
#[derive(Debug)]
pub struct Probe<'a> {
    target: &'a Target,
    head: &'a RequestHead,
    dial: Dial,
    clock: Clock,
}

struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl<'a> Probe<'a> {
    /// Must be used inside a `LocalSet`.
    #[must_use]
    pub fn new(target: &'a Target, route: &Route, head: &'a RequestHead, clock: Clock) -> Self {
        Self { target, head, dial: Dial::route(route), clock }
    }

    /// Whether it answers, and not with a server's error: one that still loads its model says 503.
    pub async fn is_ready(&self) -> Result<bool, ProbeError> {
        Ok(!self.get(&self.target.models_path).await?.status.is_server_error())
    }

    /// The model list, and what it tells of the engine.
    pub async fn models(&self) -> Result<ServerFacts, ProbeError> {
        let path = &self.target.models_path;
        let reply = self.get(path).await?;
        let models = engine::models(&reply.body).filter(|_| reply.status == StatusCode::OK);
        let refusal = models.as_ref().is_none_or(Vec::is_empty).then(|| {
            let said = dialect::error_message(&reply.body);
            let authority = &self.target.authority;
            let text =
                format!("GET {} at {authority} answered {}: {said}", plain(path), reply.status);
            self.head.scrub(text)
        });
        let models = models.unwrap_or_default();
        let owner = models.first().and_then(|model| model.owned_by.as_deref());
        let engine = Engine::by_models(owner, |name| reply.headers.contains_key(name));
        Ok(ServerFacts { engine, version: None, models, refusal })
    }

    /// Asks on until the engine and its version are known, or there is nothing more to ask.
    pub async fn recognise(&self, facts: &mut ServerFacts) -> Result<(), ProbeError> {
        if facts.engine.is_none() {
            for (engine, path, pointer) in Engine::signs() {
                if self.value(path, pointer).await?.is_some() {
                    facts.engine = Some(engine);
                    break;
                }
            }
        }
        if let Some((path, pointer)) = facts.engine.and_then(Engine::version_at) {
            facts.version = self.value(path, pointer).await?;
        }
        Ok(())
    }

    async fn value(&self, path: &str, pointer: &str) -> Result<Option<String>, ProbeError> {
        let query = self.target.models_path.split_once('?').map_or("", |(_, query)| query);
        let mark = if query.is_empty() { "" } else { "?" };
        let path = format!("{}{path}{mark}{query}", self.target.base_path);
        let reply = self.get(&path).await?;
        let value = engine::value_at(&reply.body, pointer);
        Ok(value.filter(|_| reply.status == StatusCode::OK))
    }

    async fn get(&self, path: &str) -> Result<Reply, ProbeError> {
        let deadline = Some(self.clock.now() + LIMIT);
        let reply = Watch::default().guard(&self.clock, deadline, self.exchange(path)).await;
        reply.map_err(|_| ProbeError::Silent { authority: self.authority(), path: plain(path) })?
    }

    async fn exchange(&self, path: &str) -> Result<Reply, ProbeError> {
        let not_http = |source| ProbeError::NotHttp { authority: self.authority(), source };
        let connection = Pool::new(self.dial.clone(), self.clock.clone())
            .dial()
            .await
            .map_err(|source| ProbeError::Unreachable { authority: self.authority(), source })?;
        let mut exchange = Exchange::start(connection);
        let request = self.head.get(path).expect("the path comes from a parsed URL");
        let head = exchange.send(request).await.map_err(not_http)?;
        let mut body = Vec::new();
        exchange.read_all(&mut body, BODY_LIMIT).await.map_err(not_http)?;
        Ok(Reply { status: head.status, headers: head.headers, body })
    }

    fn authority(&self) -> String {
        self.target.authority.clone()
    }
}

/// A path without its query, which may hold a key.
fn plain(path: &str) -> String {
    path.split('?').next().unwrap_or_default().to_owned()
}
