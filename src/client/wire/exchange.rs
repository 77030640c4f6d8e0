//! One request and its response, as a sequence of (bytes, stamp), whoever reads HTTP: version 1.1 in
//! `http1`, version 2 in `http2`.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::Request;

use super::http1::{Http1, Http1Error};
use super::http2::{self, Http2, Http2Error};
use super::maybe_tls::Wire;
use super::response_head::Head;
use super::stamped::Arrival;
use crate::units::Nanos;

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
    pub(crate) fn is_close(&self) -> bool {
        match self {
            Self::Http1(error) => error.is_close(),
            Self::Http2(error) => error.is_close(),
        }
    }
}

/// What a request is sent over.
pub(crate) enum Link {
    /// A connection for itself.
    Own(Wire),
    /// A stream of a connection that others share.
    Shared(Rc<http2::Connection>),
}

/// A request under way.
pub(crate) enum Exchange {
    Http1(Box<Http1>),
    Http2(Http2),
}

impl Exchange {
    /// Puts HTTP on a connection; nothing is sent yet.
    pub(crate) fn start(link: Link) -> Self {
        match link {
            Link::Own(wire) => Self::Http1(Box::new(Http1::new(wire))),
            Link::Shared(connection) => Self::Http2(Http2::new(connection)),
        }
    }

    /// Sends the request and waits for the response's head.
    pub(crate) async fn send(&mut self, request: Request<Bytes>) -> Result<Head, HttpError> {
        Ok(match self {
            Self::Http1(exchange) => {
                exchange.ask(request);
                poll_fn(|context| exchange.poll_head(context)).await?
            }
            Self::Http2(exchange) => exchange.send(request).await?,
        })
    }

    /// Reads once and hands over the bytes of the body that came, and when; `None` at its end.
    pub(crate) fn poll_read(
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
    pub(crate) async fn read_all(
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
    pub(crate) fn has_ended(&self) -> bool {
        match self {
            Self::Http1(exchange) => exchange.has_ended(),
            Self::Http2(exchange) => exchange.has_ended(),
        }
    }

    /// When the bytes read last arrived.
    pub(crate) fn last_read(&self) -> Nanos {
        match self {
            Self::Http1(exchange) => exchange.last_read().at,
            Self::Http2(exchange) => exchange.last_read().at,
        }
    }

    /// The bare connection, when it was the request's own, the response has ended whole and the server
    /// keeps it open.
    pub(crate) fn into_connection(self) -> Option<Wire> {
        match self {
            Self::Http1(exchange) => exchange.into_connection(),
            Self::Http2(_) => None,
        }
    }
}
