//! Connections of our own: dialled when needed, kept when they may be, checked before reuse.
//!
//! Deliberately absent: retries, redirects, a cap on connections, and anything that dials behind the
//! caller's back. One worker owns one [`Pool`]; nothing is shared between threads.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::rc::Rc;

use tokio::io::DuplexStream;

use super::exchange::Link;
use super::http2::Connections;
use super::route::Route;
use super::stamped::{Stamped, Transport};
use super::wire::Wire;
use crate::clock::Clock;
use crate::units::Nanos;

/// An idle connection is not used again after this long: servers close theirs after 5 s or more.
const IDLE_LIMIT: Nanos = Nanos::from_millis(4_500);

/// Where connections lead.
#[derive(Clone)]
pub enum Dial {
    /// Over the system's network.
    Route(Rc<Route>),
    /// A pipe in memory to a server in the same thread.
    Memory(Rc<dyn Fn() -> DuplexStream>),
}

impl fmt::Debug for Dial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Route(route) => route.fmt(f),
            Self::Memory(_) => f.write_str("Memory"),
        }
    }
}

impl Dial {
    /// Over the system's network.
    #[must_use]
    pub fn route(route: &Route) -> Self {
        Self::Route(Rc::new(route.clone()))
    }

    fn is_http2(&self) -> bool {
        matches!(self, Self::Route(route) if route.http2)
    }

    async fn dial(&self, clock: &Clock) -> io::Result<Wire> {
        match self {
            Self::Route(route) => route.dial(clock).await,
            Self::Memory(connect) => {
                let pipe = Transport::Pipe(connect());
                Ok(Wire::Plain(Stamped::new(pipe, clock.clone())))
            }
        }
    }
}

/// The idle connections of one worker to one server.
#[derive(Debug)]
pub(super) struct Pool {
    dial: Dial,
    clock: Clock,
    idle: RefCell<Vec<(Wire, Nanos)>>,
    /// In the place of idle ones, where requests share connections.
    shared: Option<Connections>,
}

impl Pool {
    pub(super) fn new(dial: Dial, clock: Clock) -> Self {
        let shared = dial.is_http2().then(Connections::default);
        Self { dial, clock, idle: RefCell::default(), shared }
    }

    /// An idle connection that is still alive, the most recently used first; dead ones are dropped.
    pub(super) fn reuse(&self) -> Option<Link> {
        if let Some(shared) = &self.shared {
            return shared.reuse().map(Link::Shared);
        }
        let mut idle = self.idle.borrow_mut();
        let oldest = self.clock.now().since(IDLE_LIMIT);
        while let Some((mut connection, since)) = idle.pop() {
            if since < oldest {
                // Those below are older still.
                idle.clear();
                return None;
            }
            if connection.is_quiet() {
                return Some(Link::Own(connection));
            }
        }
        None
    }

    /// A new connection.
    pub(super) async fn dial(&self) -> io::Result<Link> {
        let dial = self.dial.dial(&self.clock);
        match &self.shared {
            Some(shared) => shared.get(dial).await.map(Link::Shared),
            None => dial.await.map(Link::Own),
        }
    }

    /// Drops all idle connections.
    pub(super) fn forget(&self) {
        self.idle.borrow_mut().clear();
    }

    /// Takes back a connection whose response has ended whole.
    pub(super) fn put_back(&self, connection: Wire) {
        self.idle.borrow_mut().push((connection, self.clock.now()));
    }
}
