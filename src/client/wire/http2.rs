//! HTTP/2: many requests over one connection, each as a sequence of (bytes, stamp).
//!
//! A task of its own drives a connection. It takes one read of the socket at a time and lets every
//! stream that the read woke have its turn before the next, so that bytes never bear a later read's
//! stamp. Deliberately absent: server push, and waiting for a stream to come free (a connection that is
//! full is left, and another dialled).

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::RecvStream;
use h2::client::{Builder, SendRequest};
use hyper::Request;
use tokio::io::{AsyncRead, ReadBuf};

use super::forward::forward_writes;
use super::maybe_tls::Wire;
use super::response_head::Head;
use super::stamped::Arrival;

/// Bytes that may be on their way per stream and in all: far more than any answer's rate needs, so
/// that the server never waits for us.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;
/// Streams on a connection before the server has said how many it takes: one too many would wait
/// inside the library, unseen.
const FIRST_STREAMS: usize = 1;

/// What went wrong with HTTP/2.
#[derive(Debug, thiserror::Error)]
pub enum Http2Error {
    /// On a connection that speaks it.
    #[error(transparent)]
    Protocol(#[from] h2::Error),
    /// The other end speaks HTTP/1.x.
    #[error("the server answered in HTTP/1: it does not speak HTTP/2 here; leave out --http2")]
    Http1,
    /// The connection ended before the first frame of the other end.
    #[error(
        "the connection ended ({0}) before the server said anything in HTTP/2; a server that speaks \
         HTTP/1.1 only may end it so: leave out --http2"
    )]
    Silent(h2::Error),
}

impl Http2Error {
    /// Whether the connection was closed, rather than misused.
    pub(super) fn is_close(&self) -> bool {
        matches!(self, Self::Protocol(error) if error.is_io() || error.is_go_away())
    }
}

/// What the other end of a connection was heard to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    Nothing,
    Http1,
    Http2,
}

/// A connection that requests share.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: RefCell<SendRequest<Bytes>>,
    heard: Rc<Cell<Heard>>,
    last_read: Rc<Cell<Arrival>>,
    closed: Rc<Cell<bool>>,
    open: Cell<usize>,
}

impl Connection {
    /// Puts HTTP/2 on a connection. Must be called inside a `LocalSet`, which will drive it.
    pub(super) async fn start(wire: Wire) -> io::Result<Rc<Self>> {
        let last_read = wire.last_read().clone();
        let heard = Rc::new(Cell::new(Heard::Nothing));
        let io = ReadByRead { wire, has_read: false, heard: heard.clone() };
        let (sender, connection) = Builder::new()
            .enable_push(false)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .initial_max_send_streams(FIRST_STREAMS)
            .handshake(io)
            .await
            .map_err(io::Error::other)?;
        let closed = Rc::new(Cell::new(false));
        let ended = closed.clone();
        tokio::task::spawn_local(async move {
            // Its error reaches every stream that was open.
            let _ = connection.await;
            ended.set(true);
        });
        let (sender, open) = (RefCell::new(sender), Cell::new(0));
        Ok(Rc::new(Self { sender, heard, last_read, closed, open }))
    }

    /// What an error means on a connection that was heard to speak so.
    fn explain(&self, error: h2::Error) -> Http2Error {
        match self.heard.get() {
            Heard::Http1 => Http2Error::Http1,
            Heard::Nothing if error.is_io() || error.is_go_away() => Http2Error::Silent(error),
            _ => Http2Error::Protocol(error),
        }
    }

    /// Whether it lives and has a stream to spare.
    pub(super) fn has_room(&self) -> bool {
        let most = self.sender.borrow().current_max_send_streams();
        !self.closed.get() && self.open.get() < most
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.get()
    }
}

/// A request under way.
pub(crate) struct Http2 {
    connection: Rc<Connection>,
    body: Option<RecvStream>,
    ended: bool,
}

impl Http2 {
    /// Takes one of the connection's streams.
    pub(super) fn new(connection: Rc<Connection>) -> Self {
        connection.open.set(connection.open.get() + 1);
        Self { connection, body: None, ended: false }
    }

    pub(super) async fn send(&mut self, request: Request<Bytes>) -> Result<Head, Http2Error> {
        let sent = self.try_send(request).await;
        sent.map_err(|error| self.connection.explain(error))
    }

    async fn try_send(&mut self, request: Request<Bytes>) -> Result<Head, h2::Error> {
        let (head, body) = request.into_parts();
        let sender = self.connection.sender.borrow().clone();
        let mut sender = sender.ready().await?;
        let request = Request::from_parts(head, ());
        let (response, mut stream) = sender.send_request(request, body.is_empty())?;
        if !body.is_empty() {
            stream.send_data(body, true)?;
        }
        let (head, body) = response.await?.into_parts();
        self.ended = body.is_end_stream();
        self.body = Some(body);
        Ok(Head::new(head.status, head.headers, self.last_read().at))
    }

    pub(super) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        mut take: impl FnMut(&[u8], Arrival),
    ) -> Poll<Option<Result<(), Http2Error>>> {
        let Some(body) = self.body.as_mut().filter(|_| !self.ended) else {
            return Poll::Ready(None);
        };
        match body.poll_data(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(Ok(bytes))) => {
                // Taken in at once: the window is to bound memory, never the rate.
                let _ = body.flow_control().release_capacity(bytes.len());
                take(&bytes, self.last_read());
                Poll::Ready(Some(Ok(())))
            }
            Poll::Ready(end) => {
                self.ended = true;
                Poll::Ready(end.map(|error| Ok(error.map(drop)?)))
            }
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    pub(super) fn last_read(&self) -> Arrival {
        self.connection.last_read.get()
    }
}

impl Drop for Http2 {
    fn drop(&mut self) {
        self.connection.open.set(self.connection.open.get() - 1);
    }
}

/// The shared connections of one worker to one server.
#[derive(Debug, Default)]
pub(super) struct Connections {
    live: RefCell<Vec<Rc<Connection>>>,
    /// Somebody dials; those who come meanwhile share what comes of it.
    dialling: Cell<bool>,
    dialled: tokio::sync::Notify,
}

impl Connections {
    /// One with a stream to spare.
    pub(super) fn reuse(&self) -> Option<Rc<Connection>> {
        let mut live = self.live.borrow_mut();
        live.retain(|connection| !connection.is_closed());
        live.iter().find(|connection| connection.has_room()).cloned()
    }

    /// One with a stream to spare, dialled where there is none.
    pub(super) async fn get(
        &self,
        dial: impl Future<Output = io::Result<Wire>>,
    ) -> io::Result<Rc<Connection>> {
        while self.dialling.get() {
            self.dialled.notified().await;
            if let Some(connection) = self.reuse() {
                return Ok(connection);
            }
            if self.live.borrow().is_empty() {
                // That one failed; all who waited try for themselves, at the same time.
                break;
            }
        }
        let turn = Turn::take(self);
        let connection = Connection::start(dial.await?).await?;
        self.live.borrow_mut().push(connection.clone());
        drop(turn);
        Ok(connection)
    }
}

/// Somebody's turn to dial, which ends however the dialling ends.
struct Turn<'a>(&'a Connections);

impl<'a> Turn<'a> {
    fn take(connections: &'a Connections) -> Self {
        connections.dialling.set(true);
        Self(connections)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.dialling.set(false);
        self.0.dialled.notify_waiters();
    }
}

/// A connection that gives one read a turn.
struct ReadByRead {
    wire: Wire,
    has_read: bool,
    heard: Rc<Cell<Heard>>,
}

impl AsyncRead for ReadByRead {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if std::mem::take(&mut this.has_read) {
            // Behind the streams that the last read woke.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.wire).poll_read(context, buffer);
        this.has_read = read.is_ready();
        let bytes = &buffer.filled()[before..];
        if this.heard.get() == Heard::Nothing && !bytes.is_empty() {
            // A frame of HTTP/2 that began so would be larger than any may be.
            let is_http1 = bytes.starts_with(b"HTTP/1");
            this.heard.set(if is_http1 { Heard::Http1 } else { Heard::Http2 });
        }
        read
    }
}

forward_writes!(ReadByRead, |io| &mut io.wire);
