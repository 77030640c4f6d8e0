//! Whole answers, to questions that are no rows: a page asked for again and again over one kept
//! connection, and a POST.
//!
//! A GET may be sent twice, unlike a row: when a kept connection turns out to be closed, it goes over a
//! new one. Deliberately absent: redirects, and what an answer means.

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::HeaderMap;

use super::Client;
use super::control::AttemptControl;
use super::wire::{Dial, Exchange, Head, HttpError, Link, Pool, RequestHead, Reused, Terms};
use crate::clock::Clock;
use crate::units::Nanos;

/// A page is answered within this time or not at all.
const LIMIT: Nanos = Nanos::from_secs(10);

/// Why a server could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
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

/// Asks one server for pages.
#[derive(Debug)]
pub struct Pages {
    pool: Pool,
    head: RequestHead,
    authority: String,
    clock: Clock,
}

/// An answer, whatever it says.
#[derive(Debug)]
pub struct Page {
    /// HTTP status.
    pub status: u16,
    /// `content-type`, lower case, without parameters; empty when absent.
    pub content_type: String,
    /// `content-encoding`, lower case; empty when absent.
    pub encoding: String,
    /// Where a redirect leads, without user and query; empty when absent.
    pub location: String,
    /// The body, whole unless [`Self::is_cut`].
    pub body: Vec<u8>,
    /// The body was longer than allowed; the rest was not read.
    pub is_cut: bool,
    /// When the request went out, on the clock's epoch.
    pub sent: Nanos,
    /// When the head of the answer was there.
    pub answered: Nanos,
    pub(crate) headers: HeaderMap,
}

impl Page {
    pub(crate) fn is_ok(&self) -> bool {
        self.status == StatusCode::OK.as_u16()
    }
}

impl Pages {
    /// Asks the server at the end of `dial`, which messages call `authority`. Must be used inside a
    /// `LocalSet`.
    #[must_use]
    pub fn new(dial: Dial, head: RequestHead, authority: String, clock: Clock) -> Self {
        Self { pool: Pool::new(dial, clock.clone()), head, authority, clock }
    }

    /// `text` without any secret of the requests.
    #[must_use]
    pub fn scrub(&self, text: String) -> String {
        self.head.scrub(text)
    }

    /// Lets the kept connection go, so that the next page comes over a new one.
    pub fn redial(&self) {
        self.pool.forget();
    }

    /// GETs a path (with its query), reading at most `limit_bytes` of the body.
    pub async fn get(&self, path: &str, limit_bytes: usize) -> Result<Page, FetchError> {
        let deadline = Some(self.clock.now() + LIMIT);
        let page = AttemptControl::default()
            .guard(&self.clock, deadline, self.ask(path, limit_bytes))
            .await;
        page.map_err(|_| FetchError::Silent {
            authority: self.authority.clone(),
            // Without its query, which may hold a key.
            path: path.split('?').next().unwrap_or_default().to_owned(),
        })?
    }

    async fn ask(&self, path: &str, limit_bytes: usize) -> Result<Page, FetchError> {
        if let Some(Reused { link, terms, .. }) = self.pool.reuse() {
            match self.over(link, terms, path, limit_bytes).await {
                Err(error) if error.is_close() => {}
                answer => return answer.map_err(|source| self.not_http(source)),
            }
        }
        let authority = || self.authority.clone();
        let fresh = self.pool.dial().await;
        let fresh =
            fresh.map_err(|source| FetchError::Unreachable { authority: authority(), source })?;
        self.over(fresh, Terms::default(), path, limit_bytes)
            .await
            .map_err(|source| self.not_http(source))
    }

    fn not_http(&self, source: HttpError) -> FetchError {
        FetchError::NotHttp { authority: self.authority.clone(), source }
    }

    async fn over(
        &self,
        link: Link,
        terms: Terms,
        path: &str,
        limit_bytes: usize,
    ) -> Result<Page, HttpError> {
        let mut exchange = Exchange::start(link);
        let request = self.head.get(path).expect("the path comes from a parsed URL");
        let sent = self.clock.now();
        let head = exchange.send(request).await?;
        let mut body = Vec::new();
        exchange.read_all(&mut body, limit_bytes).await?;
        let is_cut = body.len() > limit_bytes;
        body.truncate(limit_bytes);
        if let Some(connection) = exchange.into_connection() {
            // Nobody sweeps here: what rested too long is dropped when the next page is asked for.
            self.pool.put_back(connection, terms.after(&head.headers));
        }
        let Head { status, content_type, encoding, location, headers, at } = head;
        let status = status.as_u16();
        Ok(Page {
            status,
            content_type,
            encoding,
            location,
            body,
            is_cut,
            sent,
            answered: at,
            headers,
        })
    }
}

impl Client {
    /// The body of a 200 to a POST to another path at the same server, within `limit` and no longer than
    /// `limit_bytes`; `None` for anything else.
    pub(crate) async fn post(
        &self,
        path: &str,
        body: Bytes,
        limit: Nanos,
        limit_bytes: usize,
    ) -> Option<Vec<u8>> {
        let deadline = Some(self.clock.now() + limit);
        let answer = async {
            let request = self.settings.head.post_to(path, body).ok()?;
            let mut exchange = Exchange::start(self.pool.dial().await.ok()?);
            let head = exchange.send(request).await.ok()?;
            let mut answer = Vec::new();
            exchange.read_all(&mut answer, limit_bytes).await.ok()?;
            (head.status == StatusCode::OK && answer.len() <= limit_bytes).then_some(answer)
        };
        AttemptControl::default().guard(&self.clock, deadline, answer).await.ok()?
    }
}
