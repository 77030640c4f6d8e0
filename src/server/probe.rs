//! Questions asked before `t0`, by GET: is anybody there, what is served, by which engine? They are no
//! rows of any result.

use hyper::StatusCode;

use super::engine::{self, Engine, Model};
use crate::client::url::Target;
use crate::client::{Dial, FetchError, Page, Pages, RequestHead, Route, dialect};
use crate::clock::Clock;

/// A reply larger than this is no answer to any question here.
const BODY_LIMIT: usize = 4 * 1024 * 1024;

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
    pages: Pages,
}

impl<'a> Probe<'a> {
    /// Must be used inside a `LocalSet`.
    #[must_use]
    pub fn new(target: &'a Target, route: &Route, head: &'a RequestHead, clock: Clock) -> Self {
        let (dial, authority) = (Dial::route(route), target.authority.clone());
        Self { target, head, pages: Pages::new(dial, head.clone(), authority, clock) }
    }

    /// Whether it answers, and not with a server's error: one that still loads its model says 503.
    pub async fn is_ready(&self) -> Result<bool, FetchError> {
        Ok(self.get(&self.target.models_path).await?.status < 500)
    }

    /// The model list, and what it tells of the engine.
    pub async fn models(&self) -> Result<ServerFacts, FetchError> {
        let path = &self.target.models_path;
        let reply = self.get(path).await?;
        let models = engine::models(&reply.body).filter(|_| reply.is_ok());
        let refusal = models.as_ref().is_none_or(Vec::is_empty).then(|| {
            let said = dialect::error_message(&reply.body);
            let authority = &self.target.authority;
            let status = StatusCode::from_u16(reply.status)
                .map_or_else(|_| reply.status.to_string(), |status| status.to_string());
            let text = format!("GET {} at {authority} answered {status}: {said}", plain(path));
            self.head.scrub(text)
        });
        let models = models.unwrap_or_default();
        let owner = models.first().and_then(|model| model.owned_by.as_deref());
        let engine = Engine::by_models(owner, |name| reply.headers.contains_key(name));
        Ok(ServerFacts { engine, version: None, models, refusal })
    }

    /// Asks on until the engine and its version are known, or there is nothing more to ask.
    pub async fn recognise(&self, facts: &mut ServerFacts) -> Result<(), FetchError> {
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

    async fn value(&self, path: &str, pointer: &str) -> Result<Option<String>, FetchError> {
        let query = self.target.models_path.split_once('?').map_or("", |(_, query)| query);
        let mark = if query.is_empty() { "" } else { "?" };
        let path = format!("{}{path}{mark}{query}", self.target.base_path);
        let reply = self.get(&path).await?;
        let value = engine::value_at(&reply.body, pointer);
        Ok(value.filter(|_| reply.is_ok()))
    }

    async fn get(&self, path: &str) -> Result<Page, FetchError> {
        self.pages.get(path, BODY_LIMIT).await
    }
}

/// A path without its query, which may hold a key.
fn plain(path: &str) -> String {
    path.split('?').next().unwrap_or_default().to_owned()
}
