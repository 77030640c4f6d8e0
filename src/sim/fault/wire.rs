//! A connection that can be made to misbehave below HTTP: small writes, a reset for an end, and a
//! close when it was idle. Deliberately absent: anything about requests but that one is under way.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::Script;
use crate::clock::Clock;
use crate::units::Nanos;

/// What a server can be connected through.
pub trait Transport: AsyncRead + AsyncWrite + Unpin {
    /// Makes the end of the connection a reset, where it has such a thing.
    fn reset_on_close(&self) {}
}

impl Transport for DuplexStream {}

impl Transport for TcpStream {
    fn reset_on_close(&self) {
        // Where it fails the connection is closed in order: a fault less.
        let _ = socket2::SockRef::from(self).set_linger(Some(Duration::ZERO));
    }
}

/// Turns that a writer gives away between two pieces: one is taken by itself, woken before its peer
/// is; in the second the peer reads.
const TURNS_BETWEEN: u8 = 2;

/// What a request asks of its connection.
#[derive(Debug, Default)]
pub(in crate::sim) struct Link {
    one_byte: Cell<bool>,
    cut_characters: Cell<bool>,
    resets: Cell<bool>,
    turns: Cell<u8>,
    idle: Cell<Option<Nanos>>,
    /// When the connection is to be closed, unless a request comes.
    close_at: Cell<Option<Nanos>>,
    changed: Notify,
}

impl Link {
    /// A request has come.
    pub(in crate::sim) fn begin(&self, script: Option<&Script>) {
        let is = |flag: fn(&Script) -> bool| script.is_some_and(flag);
        self.one_byte.set(is(|script| script.bytes));
        self.cut_characters.set(is(|script| script.utf8));
        self.idle.set(script.and_then(|script| script.idle));
        self.close_at.set(None);
        self.changed.notify_one();
    }

    /// From now on the end of the connection is a reset.
    pub(in crate::sim) fn reset_on_close(&self) {
        self.resets.set(true);
    }

    /// Its answer has been given.
    pub(in crate::sim) fn end(&self, now: Nanos) {
        self.close_at.set(self.idle.get().map(|idle| now + idle));
        self.changed.notify_one();
    }

    /// Resolves when the connection has been idle for too long.
    pub(in crate::sim) async fn idled(&self, clock: &Clock) {
        loop {
            let changed = self.changed.notified();
            match self.close_at.get() {
                None => changed.await,
                Some(at) => tokio::select! {
                    biased;
                    () = changed => {}
                    () = clock.sleep_until(at) => return,
                },
            }
        }
    }

    /// How many of these bytes may be written at once.
    fn piece(&self, bytes: &[u8]) -> usize {
        if self.one_byte.get() {
            return bytes.len().min(1);
        }
        let lead = |byte: &u8| *byte >= 0xC0;
        match bytes.iter().position(lead) {
            Some(at) if self.cut_characters.get() => at + 1,
            _ => bytes.len(),
        }
    }

    fn is_plain(&self) -> bool {
        !self.one_byte.get() && !self.cut_characters.get()
    }
}

/// A connection under the orders of its [`Link`].
#[derive(Debug)]
pub(in crate::sim) struct Wire<IO: Transport> {
    io: IO,
    link: Rc<Link>,
}

impl<IO: Transport> Wire<IO> {
    pub(in crate::sim) fn new(io: IO, link: Rc<Link>) -> Self {
        Self { io, link }
    }
}

impl<IO: Transport> Drop for Wire<IO> {
    fn drop(&mut self) {
        if self.link.resets.get() {
            self.io.reset_on_close();
        }
    }
}

impl<IO: Transport> AsyncRead for Wire<IO> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_read(context, buffer)
    }
}

impl<IO: Transport> AsyncWrite for Wire<IO> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.link.is_plain() {
            return Pin::new(&mut this.io).poll_write(context, bytes);
        }
        let turns = this.link.turns.get();
        if turns > 0 {
            this.link.turns.set(turns - 1);
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let piece = &bytes[..this.link.piece(bytes)];
        let written = Pin::new(&mut this.io).poll_write(context, piece);
        if written.is_ready() {
            this.link.turns.set(TURNS_BETWEEN);
        }
        written
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // A close in order would go ahead of the reset.
        if this.link.resets.get() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut this.io).poll_shutdown(context)
    }
}
