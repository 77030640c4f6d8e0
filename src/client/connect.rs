//! Connections of our own: dialled when needed, kept when they may be, checked before reuse.
//!
//! Deliberately absent: retries, redirects, a cap on connections, and anything that dials behind the
//! caller's back. One worker owns one [`Pool`]; nothing is shared between threads.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::TcpStream;

use crate::clock::Clock;
use crate::units::Nanos;

/// An idle connection is not used again after this long: servers close theirs after 5 s or more.
const IDLE_LIMIT: Nanos = Nanos::from_millis(4_500);

/// Where connections lead.
#[derive(Clone)]
pub enum Dial {
    /// A host name or address, and a port. Every address of the name is tried in turn.
    Tcp {
        /// Name or address, IPv6 without brackets.
        host: String,
        /// Port.
        port: u16,
    },
    /// A pipe in memory to a server in the same thread.
    Memory(Rc<dyn Fn() -> DuplexStream>),
}

impl fmt::Debug for Dial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } => write!(f, "Tcp({host}:{port})"),
            Self::Memory(_) => f.write_str("Memory"),
        }
    }
}

impl Dial {
    async fn dial(&self) -> io::Result<Transport> {
        match self {
            Self::Tcp { host, port } => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                Ok(Transport::Tcp(stream))
            }
            Self::Memory(connect) => Ok(Transport::Pipe(connect())),
        }
    }
}

#[derive(Debug)]
enum Transport {
    Tcp(TcpStream),
    Pipe(DuplexStream),
}

/// A connection whose reads are stamped: one stamp per read, taken before anything is parsed.
#[derive(Debug)]
pub(super) struct Stamped {
    transport: Transport,
    clock: Clock,
    last_read: Rc<Cell<Nanos>>,
}

impl Stamped {
    /// When the bytes that were read last arrived.
    pub(super) fn last_read(&self) -> Rc<Cell<Nanos>> {
        self.last_read.clone()
    }

    /// Whether the peer has neither closed nor sent anything unasked.
    fn is_quiet(&mut self) -> bool {
        let would_block = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
        match &mut self.transport {
            // Past the runtime's readiness cache: a close that arrived this instant counts.
            Transport::Tcp(stream) => socket2::SockRef::from(&*stream)
                .peek(&mut [MaybeUninit::uninit(); 1])
                .is_err_and(|error| would_block(&error)),
            Transport::Pipe(pipe) => {
                let mut byte = [0; 1];
                let mut context = Context::from_waker(Waker::noop());
                Pin::new(pipe).poll_read(&mut context, &mut ReadBuf::new(&mut byte)).is_pending()
            }
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
            Transport::Pipe(pipe) => Pin::new(pipe).poll_read(context, buffer),
        };
        if read.is_ready() {
            this.last_read.set(this.clock.now());
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
            Transport::Pipe(pipe) => Pin::new(pipe).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().transport {
            Transport::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Transport::Pipe(pipe) => Pin::new(pipe).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().transport {
            Transport::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Transport::Pipe(pipe) => Pin::new(pipe).poll_shutdown(context),
        }
    }
}

/// The idle connections of one worker to one server.
#[derive(Debug)]
pub(super) struct Pool {
    dial: Dial,
    clock: Clock,
    idle: RefCell<Vec<(Stamped, Nanos)>>,
}

impl Pool {
    pub(super) fn new(dial: Dial, clock: Clock) -> Self {
        Self { dial, clock, idle: RefCell::default() }
    }

    /// An idle connection that is still alive, the most recently used first; dead ones are dropped.
    pub(super) fn reuse(&self) -> Option<Stamped> {
        let mut idle = self.idle.borrow_mut();
        let oldest = self.clock.now().since(IDLE_LIMIT);
        while let Some((mut connection, since)) = idle.pop() {
            if since < oldest {
                // Those below are older still.
                idle.clear();
                return None;
            }
            if connection.is_quiet() {
                return Some(connection);
            }
        }
        None
    }

    /// A new connection.
    pub(super) async fn dial(&self) -> io::Result<Stamped> {
        let transport = self.dial.dial().await?;
        Ok(Stamped { transport, clock: self.clock.clone(), last_read: Rc::default() })
    }

    /// Takes back a connection whose response has ended whole.
    pub(super) fn put_back(&self, connection: Stamped) {
        self.idle.borrow_mut().push((connection, self.clock.now()));
    }
}
