//! A connection as HTTP sees it: a stamped socket, bare or under TLS.

use std::cell::Cell;
use std::io::{self, Read};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio_rustls::client::TlsStream;

use super::forward::{Io, forward_writes};
use super::stamped::{Arrival, Stamped};

/// More unasked TLS records than this on an idle connection, and it is not worth having.
const IDLE_READS: usize = 16;

/// A connection to a server.
#[derive(Debug)]
pub(crate) enum Wire {
    Plain(Stamped),
    Tls(Box<TlsStream<Stamped>>),
}

impl Wire {
    fn io(&mut self) -> &mut dyn Io {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => stream,
        }
    }

    /// When the bytes that were read last arrived at the socket.
    pub(super) fn last_read(&self) -> &Rc<Cell<Arrival>> {
        match self {
            Self::Plain(socket) => socket.last_read(),
            Self::Tls(stream) => stream.get_ref().0.last_read(),
        }
    }

    /// The same, now.
    pub(super) fn arrival(&self) -> Arrival {
        self.last_read().get()
    }

    /// Whether the peer has neither closed nor sent anything unasked. Under TLS a ticket or a new key
    /// is neither: such records are taken in.
    pub(super) fn is_quiet(&mut self) -> bool {
        match self {
            Self::Plain(socket) => socket.is_quiet(),
            Self::Tls(stream) => {
                let (socket, session) = stream.get_mut();
                for _ in 0..IDLE_READS {
                    match session.read_tls(&mut Now(socket)) {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                        Ok(0) | Err(_) => return false,
                        Ok(_) => {}
                    }
                    match session.process_new_packets() {
                        Ok(state)
                            if state.plaintext_bytes_to_read() == 0 && !state.peer_has_closed() => {
                        }
                        _ => return false,
                    }
                }
                false
            }
        }
    }
}

/// Reads a socket past the runtime.
struct Now<'a>(&'a Stamped);

impl Read for Now<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read_now(buffer)
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(self.get_mut().io()).poll_read(context, buffer)
    }
}

forward_writes!(Wire, |wire| wire.io());
