//! One request and its response, as a sequence of (bytes, stamp), whoever reads HTTP: version 1.1 in
//! `http1`, version 2 in `http2`.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, LOCATION};
use hyper::{Request, StatusCode};

use super::http1::{Http1, Http1Error};
use super::http2::{self, Http2, Http2Error};
use super::stamped::Arrival;
use super::wire::Wire;
use crate::units::Nanos;

/// Response head: what the rest of the client needs of it.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) status: StatusCode,
    /// `content-type`, lower case, without parameters; empty when absent.
    pub(super) content_type: String,
    /// `content-encoding`, lower case; empty when absent.
    pub(super) encoding: String,
    /// Where a redirect leads, without user and query; empty when absent.
    pub(super) location: String,
    /// All of it, for probes.
    pub(super) headers: HeaderMap,
    pub(super) at: Nanos,
}

impl Head {
    pub(super) fn new(status: StatusCode, headers: HeaderMap, at: Nanos) -> Self {
        Self {
            status,
            content_type: media_type(text(&headers, &CONTENT_TYPE)),
            encoding: text(&headers, &CONTENT_ENCODING).trim().to_ascii_lowercase(),
            location: place(text(&headers, &LOCATION)),
            headers,
            at,
        }
    }
}

/// What went wrong with HTTP.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// In HTTP/1.1.
    #[error(transparent)]
    Http1(#[from] Http1Error),
    /// In HTTP/2.
    #[error(transparent)]
    Http2(#[from] Http2Error),
}

impl HttpError {
    /// Whether the connection was closed, rather than misused.
    pub(super) fn is_close(&self) -> bool {
        match self {
            Self::Http1(error) => error.is_close(),
            Self::Http2(error) => error.is_close(),
        }
    }
}

/// What a request is sent over.
pub(super) enum Link {
    /// A connection for itself.
    Own(Wire),
    /// A stream of a connection that others share.
    Shared(Rc<http2::Connection>),
}

/// A request under way.
pub(super) enum Exchange {
    Http1(Box<Http1>),
    Http2(Http2),
}

impl Exchange {
    /// Puts HTTP on a connection; nothing is sent yet.
    pub(super) fn start(link: Link) -> Self {
        match link {
            Link::Own(wire) => Self::Http1(Box::new(Http1::new(wire))),
            Link::Shared(connection) => Self::Http2(Http2::new(connection)),
        }
    }

    /// Sends the request and waits for the response's head.
    pub(super) async fn send(&mut self, request: Request<Bytes>) -> Result<Head, HttpError> {
        Ok(match self {
            Self::Http1(exchange) => {
                exchange.ask(request);
                poll_fn(|context| exchange.poll_head(context)).await?
            }
            Self::Http2(exchange) => exchange.send(request).await?,
        })
    }

    /// Reads once and hands over the bytes of the body that came, and when; `None` at its end.
    pub(super) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        take: impl FnMut(&[u8], Arrival),
    ) -> Poll<Option<Result<(), HttpError>>> {
        match self {
            Self::Http1(exchange) => exchange.poll_read(context, take).map_err(HttpError::from),
            Self::Http2(exchange) => exchange.poll_read(context, take).map_err(HttpError::from),
        }
    }

    /// Appends a body to `all` until it ends, breaks, or `limit` bytes are passed.
    pub(super) async fn read_all(
        &mut self,
        all: &mut Vec<u8>,
        limit: usize,
    ) -> Result<(), HttpError> {
        while all.len() <= limit {
            let read = |context: &mut Context<'_>| {
                self.poll_read(context, |bytes, _| all.extend_from_slice(bytes))
            };
            match poll_fn(read).await {
                Some(read) => read?,
                None => break,
            }
        }
        Ok(())
    }

    /// Whether the body has been read to its end.
    pub(super) fn has_ended(&self) -> bool {
        match self {
            Self::Http1(exchange) => exchange.has_ended(),
            Self::Http2(exchange) => exchange.has_ended(),
        }
    }

    /// When the bytes read last arrived.
    pub(super) fn last_read(&self) -> Nanos {
        match self {
            Self::Http1(exchange) => exchange.last_read().at,
            Self::Http2(exchange) => exchange.last_read().at,
        }
    }

    /// The bare connection, when it was the request's own, the response has ended whole and the server
    /// keeps it open.
    pub(super) fn into_connection(self) -> Option<Wire> {
        match self {
            Self::Http1(exchange) => exchange.into_connection(),
            Self::Http2(_) => None,
        }
    }
}

/// A header's value, where it is text.
fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
}

fn media_type(full: &str) -> String {
    full.split(';').next().unwrap_or("").trim().to_ascii_lowercase()
}

/// A URL without what may be secret in it: user part, query and fragment.
fn place(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or("").trim();
    let Some((scheme, rest)) = url.split_once("//") else {
        return url.to_owned();
    };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit('@').next().unwrap_or("");
    format!("{scheme}//{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_keeps_no_secret() {
        for (url, expect) in [
            ("https://user:secret@h:1/v1/x?key=secret#y", "https://h:1/v1/x"),
            ("http://h", "http://h"),
            ("//h/a@b", "//h/a@b"),
            ("/login?token=secret", "/login"),
            ("", ""),
        ] {
            assert_eq!(place(url), expect);
        }
    }

    #[test]
    fn a_media_type_has_no_parameters() {
        assert_eq!(media_type("Text/Event-Stream; charset=utf-8"), "text/event-stream");
    }
}
