//! HTTP/1.1 over one connection: the request in one write, the response as a sequence of (bytes, stamp).
//!
//! One call is one read of the socket, into a buffer that all streams of a thread share, and the pieces
//! of body in it are handed over as slices of that buffer: a stream owns bytes only while its head is
//! unfinished. Deliberately absent: pipelining, upgrades, `Expect`, and HEAD or CONNECT requests, whose
//! responses are framed by other rules.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, StatusCode, Version};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::framing::{Framing, FramingError};
use super::maybe_tls::Wire;
use super::response_head::Head;
use super::stamped::Arrival;

/// Bytes of one read: some 300 token events.
const READ_BYTES: usize = 64 << 10;
/// Bytes that a response's head may have, and all informational responses before it.
const HEAD_LIMIT: usize = 64 << 10;
/// Header lines that a response may have.
const HEADER_LIMIT: usize = 128;
/// Room for the head of a request.
const REQUEST_HEAD_BYTES: usize = 512;

thread_local! {
    /// What the reads of this thread are read into, one at a time.
    static READS: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES].into());
}

/// What went wrong with HTTP/1.1.
#[derive(Debug, thiserror::Error)]
pub enum Http1Error {
    /// The connection.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It ended before the head of the response was whole.
    #[error("the connection ended before the response's head")]
    NoHead,
    /// It ended before the body was whole.
    #[error("the connection ended in the middle of the response's body")]
    HalfBody,
    /// Not HTTP/1.x.
    #[error("what came is no HTTP/1.1 response ({0})")]
    Parse(httparse::Error),
    /// More than `HEAD_LIMIT`.
    #[error("the response's head is longer than {HEAD_LIMIT} bytes")]
    HeadTooLong,
    /// The same before any head of a final response.
    #[error(
        "the server sent {0} informational responses (1xx), {HEAD_LIMIT} bytes of them, and no final one"
    )]
    Informational(u32),
    /// The body of the response cannot be told from what follows.
    #[error("the response cannot be read: {0}")]
    Framing(#[from] FramingError),
}

impl Http1Error {
    /// Whether the connection was closed, rather than misused.
    pub(super) fn is_close(&self) -> bool {
        match self {
            Self::NoHead | Self::HalfBody => true,
            Self::Io(error) => is_closed(error),
            _ => false,
        }
    }
}

/// Whether the other end is gone.
fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::NotConnected
            | io::ErrorKind::UnexpectedEof
    )
}

/// A request under way.
pub(crate) struct Http1 {
    wire: Wire,
    unsent: Unsent,
    /// Why the request could not be sent whole. The server may have answered all the same.
    send_error: Option<io::Error>,
    /// Bytes that came before they could be used: of an unfinished head, or of the read that ended it.
    pending: Vec<u8>,
    /// Informational responses so far, and their bytes.
    informational: (u32, usize),
    framing: Framing,
    keep_alive: bool,
    /// The body has ended, whole or not.
    ended: bool,
}

/// What of the request is not written yet.
#[derive(Default)]
struct Unsent {
    head: Vec<u8>,
    body: Bytes,
    written: usize,
}

impl Unsent {
    fn of(request: Request<Bytes>) -> Self {
        let (parts, body) = request.into_parts();
        let mut head = Vec::with_capacity(REQUEST_HEAD_BYTES);
        let uri = parts.uri.to_string();
        for part in [parts.method.as_str(), " ", &uri, " HTTP/1.1\r\n"] {
            head.extend_from_slice(part.as_bytes());
        }
        let length = HeaderValue::from(body.len());
        let length = (parts.method == Method::POST || !body.is_empty()).then_some(&length);
        let length = length.map(|length| (&hyper::header::CONTENT_LENGTH, length));
        for (name, value) in parts.headers.iter().chain(length) {
            for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                head.extend_from_slice(part);
            }
        }
        head.extend_from_slice(b"\r\n");
        Self { head, body, written: 0 }
    }

    fn is_empty(&self) -> bool {
        self.head.is_empty()
    }

    /// Writes as much as the connection takes; ready once that was all.
    fn poll_write(&mut self, wire: &mut Wire, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_empty() {
            return Poll::Ready(Ok(()));
        }
        while self.written < self.head.len() + self.body.len() {
            let of_head = self.written.min(self.head.len());
            let parts = [
                IoSlice::new(&self.head[of_head..]),
                IoSlice::new(&self.body[self.written - of_head..]),
            ];
            let parts = &parts[usize::from(of_head == self.head.len())..];
            let written = ready!(Pin::new(&mut *wire).poll_write_vectored(context, parts))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += written;
        }
        ready!(Pin::new(wire).poll_flush(context))?;
        *self = Self::default();
        Poll::Ready(Ok(()))
    }
}

impl Http1 {
    /// Puts HTTP on a connection; nothing is sent yet.
    pub(super) fn new(wire: Wire) -> Self {
        Self {
            wire,
            unsent: Unsent::default(),
            send_error: None,
            pending: Vec::new(),
            informational: (0, 0),
            framing: Framing::Length(0),
            keep_alive: false,
            ended: false,
        }
    }

    /// Takes the request that [`poll_head`](Self::poll_head) sends.
    pub(super) fn ask(&mut self, request: Request<Bytes>) {
        self.unsent = Unsent::of(request);
    }

    /// Sends what is unsent, and reads the response's head. A server may answer before it has read all.
    pub(super) fn poll_head(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Head, Http1Error>> {
        self.write(context);
        READS.with_borrow_mut(|buffer| {
            loop {
                let mut read = ReadBuf::new(buffer);
                let result = match Pin::new(&mut self.wire).poll_read(context, &mut read) {
                    Poll::Ready(result) => result,
                    Poll::Pending => {
                        // A server that closed may have answered first, and the answer may not have been
                        // noticed yet; a closed connection is readable in any case.
                        return match self.send_error.take_if(|error| !is_closed(error)) {
                            Some(error) => Poll::Ready(Err(error.into())),
                            None => Poll::Pending,
                        };
                    }
                };
                if let Err(error) = result {
                    return Poll::Ready(Err(error.into()));
                }
                if read.filled().is_empty() {
                    return Poll::Ready(Err(Http1Error::NoHead));
                }
                if let Some(head) = self.take_head(read.filled())? {
                    return Poll::Ready(Ok(head));
                }
            }
        })
    }

    fn write(&mut self, context: &mut Context<'_>) {
        if let Poll::Ready(Err(error)) = self.unsent.poll_write(&mut self.wire, context) {
            self.unsent = Unsent::default();
            self.keep_alive = false;
            self.send_error = Some(error);
        }
    }

    /// The head, once `bytes` complete it; those that follow it wait.
    fn take_head(&mut self, bytes: &[u8]) -> Result<Option<Head>, Http1Error> {
        let at = self.last_read();
        // Most heads come whole.
        let mut pending = mem::take(&mut self.pending);
        let whole = if pending.is_empty() {
            bytes
        } else {
            pending.extend_from_slice(bytes);
            &pending
        };
        let mut rest = whole;
        while let Some((parsed, length)) = parse_head(rest)? {
            rest = &rest[length..];
            if parsed.status.is_informational() && parsed.status != StatusCode::SWITCHING_PROTOCOLS
            {
                let (count, bytes) = &mut self.informational;
                *count += 1;
                *bytes += length;
                if *bytes > HEAD_LIMIT {
                    return Err(Http1Error::Informational(*count));
                }
                continue;
            }
            self.framing = Framing::of(parsed.status, parsed.version, &parsed.headers)?;
            self.keep_alive = may_keep(parsed.version, &parsed.headers);
            self.ended = self.framing.has_ended();
            self.keep_alive &= !self.ended || rest.is_empty();
            self.pending = if self.ended { Vec::new() } else { rest.to_vec() };
            return Ok(Some(Head::new(parsed.status, parsed.headers, at.at)));
        }
        if rest.len() > HEAD_LIMIT {
            return Err(Http1Error::HeadTooLong);
        }
        self.pending = rest.to_vec();
        Ok(None)
    }

    /// Reads the connection once and hands over the pieces of body that came; `None` at its end.
    pub(super) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        mut take: impl FnMut(&[u8], Arrival),
    ) -> Poll<Option<Result<(), Http1Error>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        if !self.pending.is_empty() {
            let pending = mem::take(&mut self.pending);
            let arrival = self.last_read();
            return Poll::Ready(Some(self.take_body(&pending, |piece| take(piece, arrival))));
        }
        self.write(context);
        READS.with_borrow_mut(|buffer| {
            let mut read = ReadBuf::new(buffer);
            let result = ready!(Pin::new(&mut self.wire).poll_read(context, &mut read));
            if let Err(error) = result {
                return Poll::Ready(Some(Err(self.fail(error.into()))));
            }
            let arrival = self.last_read();
            if !read.filled().is_empty() {
                let result = self.take_body(read.filled(), |piece| take(piece, arrival));
                return Poll::Ready(Some(result));
            }
            if self.framing.ends_with_connection() {
                self.ended = true;
                return Poll::Ready(None);
            }
            Poll::Ready(Some(Err(self.fail(Http1Error::HalfBody))))
        })
    }

    fn take_body(&mut self, bytes: &[u8], mut take: impl FnMut(&[u8])) -> Result<(), Http1Error> {
        let mut rest = bytes;
        loop {
            match self.framing.next(&mut rest) {
                Ok(Some(piece)) => take(piece),
                Ok(None) => break,
                Err(error) => return Err(self.fail(error.into())),
            }
        }
        self.ended = self.framing.has_ended();
        // What follows the end was not asked for.
        self.keep_alive &= rest.is_empty();
        Ok(())
    }

    fn fail(&mut self, error: Http1Error) -> Http1Error {
        self.keep_alive = false;
        self.ended = true;
        error
    }

    /// Whether the body has been read to its end.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// When the bytes read last arrived.
    pub(super) fn last_read(&self) -> Arrival {
        self.wire.arrival()
    }

    /// The bare connection, when the response has ended whole and the server keeps it open.
    pub(super) fn into_connection(self) -> Option<Wire> {
        let whole = self.ended && self.unsent.is_empty() && self.send_error.is_none();
        let keep = self.keep_alive && !self.framing.ends_with_connection();
        (whole && keep).then_some(self.wire)
    }
}

struct ParsedHead {
    status: StatusCode,
    version: Version,
    headers: HeaderMap,
}

/// A head at the front of `bytes` and its length; `None` while it is not whole.
fn parse_head(bytes: &[u8]) -> Result<Option<(ParsedHead, usize)>, Http1Error> {
    let mut lines = [httparse::EMPTY_HEADER; HEADER_LIMIT];
    let mut response = httparse::Response::new(&mut lines);
    let length = match response.parse(bytes).map_err(Http1Error::Parse)? {
        httparse::Status::Complete(length) => length,
        httparse::Status::Partial => return Ok(None),
    };
    let status = StatusCode::from_u16(response.code.unwrap_or_default())
        .map_err(|_| Http1Error::Parse(httparse::Error::Status))?;
    let version = if response.version == Some(0) { Version::HTTP_10 } else { Version::HTTP_11 };
    let mut headers = HeaderMap::with_capacity(response.headers.len());
    for line in response.headers {
        let name = HeaderName::from_bytes(line.name.as_bytes())
            .map_err(|_| Http1Error::Parse(httparse::Error::HeaderName))?;
        let value = HeaderValue::from_bytes(line.value)
            .map_err(|_| Http1Error::Parse(httparse::Error::HeaderValue))?;
        headers.append(name, value);
    }
    Ok(Some((ParsedHead { status, version, headers }, length)))
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
