//! A socket whose reads are stamped: one stamp per read of the socket, before anything is decrypted or
//! parsed. TLS goes on top of it, so that the time of an arrival is the same with and without.

use std::cell::Cell;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use tokio::io::{AsyncRead, DuplexStream, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use super::forward::{Io, forward_writes};
use super::rx_time::{self, Received};
use crate::clock::{Clock, Utc};
use crate::units::Nanos;

/// When the bytes of a read came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// On the clock's epoch.
    pub(crate) at: Nanos,
    /// How long the last of them lay in the kernel before they were read; `None` where it does not say.
    pub(crate) rx_delay: Option<Nanos>,
}

/// What carries bytes.
#[derive(Debug)]
pub(super) enum Transport {
    Tcp(TcpStream),
    Unix(UnixStream),
    Pipe(DuplexStream),
}

impl Transport {
    fn io(&mut self) -> &mut dyn Io {
        match self {
            Self::Tcp(stream) => stream,
            Self::Unix(stream) => stream,
            Self::Pipe(pipe) => pipe,
        }
    }
}

/// A connection whose reads are stamped: one stamp per read, taken before anything is parsed.
#[derive(Debug)]
pub(crate) struct Stamped {
    transport: Transport,
    clock: Clock,
    last_read: Rc<Cell<Arrival>>,
    /// The kernel tells when it received what a read hands over.
    has_rx_time: bool,
}

impl Stamped {
    pub(super) fn new(transport: Transport, clock: Clock) -> Self {
        Self { transport, clock, last_read: Rc::default(), has_rx_time: false }
    }

    /// The same with the kernel's receive stamps, where it gives any.
    pub(super) fn with_rx_time(mut self) -> Self {
        if let Transport::Tcp(stream) = &self.transport {
            self.has_rx_time = rx_time::ask_for(stream);
        }
        self
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

/// When bytes came that were read `now` and had lain for `delay_ns` by the wall clock. That clock may be set
/// meanwhile: a delay below zero, or one from before the read before, is none.
fn arrival(now: Nanos, delay_ns: Option<i128>, before: Nanos) -> Arrival {
    let delay = delay_ns.and_then(|ns| u64::try_from(ns).ok()).map(Nanos);
    let delay = delay.filter(|delay| delay.0 <= now.0 && now.since(*delay) >= before);
    Arrival { at: now.since(delay.unwrap_or(Nanos::ZERO)), rx_delay: delay }
}

/// One read with its stamp. A short one says that there is no more for now, as a read that would block
/// does: the next is then not tried before the socket wakes us, so that an event costs one call.
fn poll_receive(
    stream: &TcpStream,
    context: &mut Context<'_>,
    buffer: &mut ReadBuf<'_>,
) -> Poll<io::Result<Received>> {
    loop {
        ready!(stream.poll_read_ready(context))?;
        let into = buffer.initialize_unfilled();
        let room = into.len();
        let mut received = None;
        let tried = stream.try_io(Interest::READABLE, || {
            let read = received.insert(rx_time::receive(stream, into)?);
            if read.bytes > 0 && read.bytes < room {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Ok(())
        });
        match (received, tried) {
            (Some(received), _) => {
                buffer.advance(received.bytes);
                return Poll::Ready(Ok(received));
            }
            (None, Err(error))
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            (None, Err(error)) => return Poll::Ready(Err(error)),
            (None, Ok(())) => unreachable!("a read that succeeds says what it read"),
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
        if this.has_rx_time
            && let Transport::Tcp(stream) = &this.transport
        {
            let received = ready!(poll_receive(stream, context, buffer))?;
            let now = this.clock.now_and_wake();
            let delay = received.at.map(|at| Utc::now().0 - at.0);
            this.last_read.set(arrival(now, delay, this.last_read.get().at));
            return Poll::Ready(Ok(()));
        }
        let read = Pin::new(this.transport.io()).poll_read(context, buffer);
        if read.is_ready() {
            // A send that has come due in the meantime does not wait for the other reads.
            this.last_read.set(Arrival { at: this.clock.now_and_wake(), rx_delay: None });
        }
        read
    }
}

forward_writes!(Stamped, |socket| socket.transport.io());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_moves_the_arrival_back_unless_the_clock_was_set() {
        let check = |delay_ns, before, at, delay: Option<u64>| {
            let found = arrival(Nanos(1_000), delay_ns, Nanos(before));
            let expect = Arrival { at: Nanos(at), rx_delay: delay.map(Nanos) };
            assert_eq!(found, expect, "{delay_ns:?}");
        };
        check(None, 900, 1_000, None);
        check(Some(0), 900, 1_000, Some(0));
        check(Some(100), 900, 900, Some(100));
        check(Some(101), 900, 1_000, None);
        check(Some(-1), 0, 1_000, None);
        check(Some(2_000), 0, 1_000, None);
        check(Some(i128::MAX), 0, 1_000, None);
    }
}
