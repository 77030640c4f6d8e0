//! A socket whose reads are stamped: one stamp per read of the socket, before anything is decrypted or
//! parsed. TLS goes on top of it, so that the time of an arrival is the same with and without.

use std::cell::Cell;
use std::io::{self, IoSlice, Read};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use crate::clock::Clock;
use crate::units::Nanos;

/// When the bytes of a read came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Arrival {
    /// On the clock's epoch.
    pub(super) at: Nanos,
}

/// What carries bytes.
#[derive(Debug)]
pub(super) enum Transport {
    Tcp(TcpStream),
    Unix(UnixStream),
    Pipe(DuplexStream),
}

/// A connection whose reads are stamped: one stamp per read, taken before anything is parsed.
#[derive(Debug)]
pub(super) struct Stamped {
    transport: Transport,
    clock: Clock,
    last_read: Rc<Cell<Arrival>>,
}

impl Stamped {
    pub(super) fn new(transport: Transport, clock: Clock) -> Self {
        Self { transport, clock, last_read: Rc::default() }
    }

    /// When the bytes that were read last arrived.
    pub(super) fn last_read(&self) -> &Rc<Cell<Arrival>> {
        &self.last_read
    }

    /// Whether the peer has neither closed nor sent anything unasked.
    pub(super) fn is_quiet(&mut self) -> bool {
        let would_block = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
        if let Transport::Pipe(pipe) = &mut self.transport {
            let mut byte = [0; 1];
            let mut context = Context::from_waker(Waker::noop());
            return Pin::new(pipe)
                .poll_read(&mut context, &mut ReadBuf::new(&mut byte))
                .is_pending();
        }
        // Past the runtime's readiness cache: a close that arrived this instant counts.
        self.socket().is_some_and(|socket| {
            socket.peek(&mut [MaybeUninit::uninit(); 1]).is_err_and(|error| would_block(&error))
        })
    }

    /// Reads what the kernel has, past the runtime's readiness cache and without a stamp; for a
    /// connection at rest, whose TLS layer has to look at what came.
    pub(super) fn read_now(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.socket() {
            Some(socket) => (&*socket).read(buffer),
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn socket(&self) -> Option<socket2::SockRef<'_>> {
        match &self.transport {
            Transport::Tcp(stream) => Some(stream.into()),
            Transport::Unix(stream) => Some(stream.into()),
            Transport::Pipe(_) => None,
        }
    }
}

impl AsyncRead for Stamped {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let read = match &mut this.transport {
            Transport::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Transport::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
            Transport::Pipe(pipe) => Pin::new(pipe).poll_read(context, buffer),
        };
        if read.is_ready() {
            // A send that has come due in the meantime does not wait for the other reads.
            this.last_read.set(Arrival { at: this.clock.now_and_wake() });
        }
        read
    }
}

impl AsyncWrite for Stamped {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().transport {
            Transport::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Transport::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
            Transport::Pipe(pipe) => Pin::new(pipe).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().transport {
            Transport::Tcp(stream) => Pin::new(stream).poll_write_vectored(context, parts),
            Transport::Unix(stream) => Pin::new(stream).poll_write_vectored(context, parts),
            Transport::Pipe(pipe) => Pin::new(pipe).poll_write_vectored(context, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().transport {
            Transport::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Transport::Unix(stream) => Pin::new(stream).poll_flush(context),
            Transport::Pipe(pipe) => Pin::new(pipe).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().transport {
            Transport::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Transport::Unix(stream) => Pin::new(stream).poll_shutdown(context),
            Transport::Pipe(pipe) => Pin::new(pipe).poll_shutdown(context),
        }
    }
}
