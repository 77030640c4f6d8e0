//! One HTTP/1.1 request and its response, as a sequence of (bytes, stamp).
//!
//! The connection and the body are polled in one task, body first: hyper reads the socket again only
//! after the frames of the last read were taken, so a frame never bears a later read's stamp.
//! Whoever reads HTTP in hyper's place has to offer the same few calls.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, LOCATION};
use hyper::{Request, Response, StatusCode, Version};
use hyper_util::rt::TokioIo;

use super::wire::Wire;
use crate::units::Nanos;

type Connection = http1::Connection<TokioIo<Wire>, Full<Bytes>>;

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

/// A request under way.
pub(super) struct Exchange {
    connection: Connection,
    sender: SendRequest<Full<Bytes>>,
    last_read: Rc<Cell<Nanos>>,
    body: Option<Incoming>,
    keep_alive: bool,
    /// The body has ended, whole or not.
    ended: bool,
    /// The connection's own future has finished and must not be polled again.
    closed: bool,
}

impl Exchange {
    /// Puts HTTP on a connection; nothing is sent yet.
    pub(super) async fn start(connection: Wire) -> hyper::Result<Self> {
        let last_read = connection.last_read();
        let (sender, connection) = http1::handshake(TokioIo::new(connection)).await?;
        Ok(Self {
            connection,
            sender,
            last_read,
            body: None,
            keep_alive: false,
            ended: false,
            closed: false,
        })
    }

    /// Sends the request and waits for the response's head.
    pub(super) async fn send(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Head> {
        let mut response = pin!(self.sender.send_request(request));
        let (connection, closed) = (&mut self.connection, &mut self.closed);
        let response: Response<Incoming> = poll_fn(|context| {
            // The request is written by the first turn of the connection. An error of the
            // connection reaches the response too, so its result is not looked at here.
            *closed = *closed || Pin::new(&mut *connection).poll(context).is_ready();
            response.as_mut().poll(context)
        })
        .await?;
        let (head, body) = response.into_parts();
        self.keep_alive = may_keep(head.version, &head.headers);
        self.ended = body.is_end_stream();
        self.body = Some(body);
        Ok(Head {
            status: head.status,
            content_type: media_type(text(&head.headers, &CONTENT_TYPE)),
            encoding: text(&head.headers, &CONTENT_ENCODING).trim().to_ascii_lowercase(),
            location: place(text(&head.headers, &LOCATION)),
            headers: head.headers,
            at: self.last_read.get(),
        })
    }

    /// The next bytes of the body and when they arrived; `None` at its end.
    pub(super) fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<(Bytes, Nanos)>>> {
        if let Poll::Ready(next) = self.poll_frame(context) {
            return Poll::Ready(next);
        }
        if !self.closed {
            self.closed = Pin::new(&mut self.connection).poll(context).is_ready();
        }
        self.poll_frame(context)
    }

    fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<(Bytes, Nanos)>>> {
        let Some(body) = self.body.as_mut().filter(|_| !self.ended) else {
            return Poll::Ready(None);
        };
        loop {
            return match Pin::new(&mut *body).poll_frame(context) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(bytes) => Poll::Ready(Some(Ok((bytes, self.last_read.get())))),
                    Err(_trailers) => continue,
                },
                Poll::Ready(Some(Err(error))) => {
                    self.keep_alive = false;
                    self.ended = true;
                    Poll::Ready(Some(Err(error)))
                }
                Poll::Ready(None) => {
                    self.ended = true;
                    Poll::Ready(None)
                }
            };
        }
    }

    /// Whether the body has been read to its end.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// When the bytes read last arrived.
    pub(super) fn last_read(&self) -> Nanos {
        self.last_read.get()
    }

    /// The bare connection, when the response has ended whole and the server keeps it open.
    pub(super) async fn into_connection(mut self) -> Option<Wire> {
        if !self.ended || !self.keep_alive || self.closed {
            return None;
        }
        let connection = &mut self.connection;
        // One turn, so that hyper notices that the exchange is over.
        let closed =
            poll_fn(|context| Poll::Ready(Pin::new(&mut *connection).poll(context).is_ready()))
                .await;
        if closed || !self.sender.is_ready() {
            return None;
        }
        let parts = self.connection.into_parts();
        parts.read_buf.is_empty().then(|| parts.io.into_inner())
    }
}

/// Whether the connection may serve another request, by the response's head.
fn may_keep(version: Version, headers: &HeaderMap) -> bool {
    let says_close = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.split(',').any(|word| word.trim().eq_ignore_ascii_case("close")));
    version >= Version::HTTP_11 && !says_close
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
