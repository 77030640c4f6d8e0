//! The way to a server over the system's network: a socket, a tunnel through a proxy, TLS.
//!
//! Every address of a name is tried in turn, of both families. Deliberately absent: proxies from the
//! environment, and caching of names (a lookup is part of a connection's time).

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream, lookup_host};

use super::maybe_tls::Wire;
use super::stamped::{Stamped, Transport};
use super::tls::Tls;
use crate::clock::Clock;

/// A proxy's answer to CONNECT is shorter than this.
const PROXY_HEAD_BYTES: usize = 16 << 10;

/// What `localhost` means (RFC 6761), on systems too that know only one of them by name. First the
/// family that servers listen on unless told otherwise.
const LOOPBACK: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// The way to a server.
#[derive(Clone, Debug)]
pub struct Route {
    /// Where the socket leads.
    pub hop: Hop,
    /// The tunnel that the proxy at the end of the hop is asked for.
    pub tunnel: Option<Tunnel>,
    /// TLS with the server.
    pub tls: Option<Tls>,
    /// HTTP/2, without asking whether the server speaks it; TLS has to agree on it.
    pub http2: bool,
    /// Arrivals are stamped by the kernel, where it does.
    pub rx_time: bool,
}

/// The other end of a socket.
#[derive(Clone, Debug)]
pub enum Hop {
    /// A host name or address, IPv6 without brackets, and a port.
    Tcp {
        /// Name or address.
        host: String,
        /// Port.
        port: u16,
    },
    /// A unix socket.
    Unix(PathBuf),
}

/// A CONNECT to a proxy.
#[derive(Clone)]
pub struct Tunnel {
    /// Host and port of the server.
    pub authority: String,
    /// `Proxy-Authorization`, a secret.
    pub authorization: Option<String>,
}

impl fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tunnel").field(&self.authority).finish()
    }
}

impl Route {
    /// Straight to a port.
    #[must_use]
    pub fn tcp(host: impl Into<String>, port: u16) -> Self {
        let hop = Hop::Tcp { host: host.into(), port };
        Self { hop, tunnel: None, tls: None, http2: false, rx_time: true }
    }

    pub(super) async fn dial(&self, clock: &Clock) -> io::Result<Wire> {
        let mut socket = Stamped::new(self.hop.dial().await?, clock.clone());
        if let Some(tunnel) = &self.tunnel {
            tunnel.open(&mut socket).await?;
        }
        if self.rx_time {
            socket = socket.with_rx_time();
        }
        match &self.tls {
            Some(tls) => tls.over(socket, self.http2).await,
            None => Ok(Wire::Plain(socket)),
        }
    }
}

impl Hop {
    async fn dial(&self) -> io::Result<Transport> {
        match self {
            Self::Tcp { host, port } => {
                let stream = if host.eq_ignore_ascii_case("localhost") {
                    connect(LOOPBACK.map(|address| SocketAddr::new(address, *port))).await?
                } else {
                    connect(lookup_host((host.as_str(), *port)).await?).await?
                };
                stream.set_nodelay(true)?;
                Ok(Transport::Tcp(stream))
            }
            Self::Unix(path) => Ok(Transport::Unix(UnixStream::connect(path).await?)),
        }
    }
}

/// Connects to the first of the addresses that can be reached.
async fn connect(addresses: impl IntoIterator<Item = SocketAddr>) -> io::Result<TcpStream> {
    let mut told = None;
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => told = Some(more_telling(told, (address, error))),
        }
    }
    Err(told.map_or_else(|| io::Error::other("the name has no address"), |(_, error)| error))
}

/// Of two failures the earlier, but for one that only says that this machine has no IPv6.
fn more_telling(
    before: Option<(SocketAddr, io::Error)>,
    now: (SocketAddr, io::Error),
) -> (SocketAddr, io::Error) {
    let says_nothing = |(address, error): &(SocketAddr, io::Error)| {
        address.is_ipv6() && error.kind() == io::ErrorKind::AddrNotAvailable
    };
    before.filter(|before| !says_nothing(before)).unwrap_or(now)
}

impl Tunnel {
    /// Asks for the tunnel and waits until it is there.
    async fn open(&self, socket: &mut Stamped) -> io::Result<()> {
        let mut request = format!("CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n", self.authority);
        if let Some(authorization) = &self.authorization {
            request.push_str("Proxy-Authorization: ");
            request.push_str(authorization);
            request.push_str("\r\n");
        }
        request += "\r\n";
        socket.write_all(request.as_bytes()).await?;
        let mut head = Vec::with_capacity(512);
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() >= PROXY_HEAD_BYTES {
                return Err(io::Error::other("the proxy's answer to CONNECT has no end"));
            }
            // A byte at a time: what follows the head belongs to the server.
            match socket.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Err(io::Error::other("the proxy closed the connection at CONNECT"));
                }
                Err(error) => return Err(error),
            }
        }
        let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line).into_owned();
        match line.split(' ').nth(1) {
            Some(status) if status.len() == 3 && status.starts_with('2') => Ok(()),
            _ => Err(io::Error::other(format!("the proxy refused the tunnel: {line}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_that_is_missing_here_hides_no_other_failure() {
        use io::ErrorKind::{AddrNotAvailable, ConnectionRefused, TimedOut};
        let [four, six] = LOOPBACK.map(|address| SocketAddr::new(address, 1));
        let check = |failures: &[(SocketAddr, io::ErrorKind)], expect| {
            let failures = failures.iter().map(|(address, kind)| (*address, (*kind).into()));
            let told = failures.fold(None, |told, now| Some(more_telling(told, now)));
            assert_eq!(told.expect("a failure").1.kind(), expect);
        };
        check(&[(four, ConnectionRefused), (six, AddrNotAvailable)], ConnectionRefused);
        check(&[(six, AddrNotAvailable), (four, ConnectionRefused)], ConnectionRefused);
        check(&[(six, AddrNotAvailable)], AddrNotAvailable);
        // No port is left, though nobody listens on the other family.
        check(&[(four, AddrNotAvailable), (six, ConnectionRefused)], AddrNotAvailable);
        check(&[(four, TimedOut), (six, ConnectionRefused)], TimedOut);
    }
}
