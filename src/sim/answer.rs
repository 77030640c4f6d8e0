//! Responses: their heads, and the one type that all their bodies have.
//!
//! Absent: what is answered to what (see `route`), and the bytes of a generation.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{
    ALLOW, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, LOCATION, RETRY_AFTER, SERVER,
};
use hyper::{Response, StatusCode};

use super::exposition;
use super::fault::{Broken, FaultyBody, Link};
use super::refusal::Refusal;
use super::stream::TokenBody;
use crate::clock::Clock;

pub(super) type Answer = Response<AnswerBody>;

/// The body of a response.
pub(super) struct AnswerBody {
    inner: Pin<Box<dyn Body<Data = Bytes, Error = Broken>>>,
    /// Dropped with the body, which is when the answer has been given: held, and never read.
    parting: Option<Parting>,
}

/// Tells a connection when its answer is over.
pub(super) struct Parting {
    pub(super) link: Rc<Link>,
    pub(super) clock: Clock,
}

impl Drop for Parting {
    fn drop(&mut self) {
        self.link.end(self.clock.now());
    }
}

impl AnswerBody {
    fn new(inner: impl Body<Data = Bytes, Error = Broken> + 'static) -> Self {
        Self { inner: Box::pin(inner), parting: None }
    }

    /// The same body, which tells of its end.
    pub(super) fn parting(mut self, parting: Option<Parting>) -> Self {
        self.parting = parting;
        self
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        self.inner.as_mut().poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// A stream of tokens.
pub(super) fn stream(body: TokenBody) -> Answer {
    events(body.map_err(|never| match never {}))
}

/// A stream of tokens with faults.
pub(super) fn faulty_stream(body: FaultyBody, gzip: bool) -> Answer {
    let mut answer = events(body);
    if gzip {
        answer.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    answer
}

fn events(body: impl Body<Data = Bytes, Error = Broken> + 'static) -> Answer {
    let mut answer = Response::new(AnswerBody::new(body));
    let event_stream = HeaderValue::from_static("text/event-stream; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, event_stream);
    named(answer)
}

/// One JSON document.
pub(super) fn json(status: u16, body: impl Into<Bytes>) -> Answer {
    let mut answer = head(status, body.into());
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// Metrics.
pub(super) fn metrics(text: String) -> Answer {
    let mut answer = head(200, text.into());
    let content_type = HeaderValue::from_static(exposition::CONTENT_TYPE);
    answer.headers_mut().insert(CONTENT_TYPE, content_type);
    answer
}

/// An error.
pub(super) fn refused(refusal: Refusal) -> Answer {
    let (allow, retry_after_s) = (refusal.allow, refusal.retry_after_s);
    let mut answer = json(refusal.status, refusal.body);
    if let Some(allow) = allow {
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    }
    if let Some(seconds) = retry_after_s {
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    answer
}

/// Another place to go to, which is this server too: a client that follows shows up in the log.
pub(super) fn redirect(status: u16, path: &'static str) -> Answer {
    let mut answer = head(status, Bytes::from_static(b"moved on purpose"));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    answer.headers_mut().insert(LOCATION, HeaderValue::from_static(path));
    answer
}

/// A body of no particular type.
pub(super) fn head(status: u16, body: Bytes) -> Answer {
    let mut answer =
        Response::new(AnswerBody::new(Full::new(body).map_err(|never| match never {})));
    *answer.status_mut() = StatusCode::from_u16(status).expect("a status of this program");
    named(answer)
}

fn named(mut answer: Answer) -> Answer {
    answer.headers_mut().insert(SERVER, HeaderValue::from_static("underfire-sim"));
    answer
}
