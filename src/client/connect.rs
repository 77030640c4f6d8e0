//! Connections of our own: dialled when needed, kept when they may be, checked before reuse.
//!
//! Deliberately absent: retries, redirects, a cap on connections, and anything that dials behind the
//! caller's back. One worker owns one [`Pool`]; nothing is shared between threads.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::rc::Rc;

use tokio::io::DuplexStream;

use super::exchange::Link;
use super::http2::Connections;
use super::keep_alive::Terms;
use super::route::Route;
use super::stamped::{Stamped, Transport};
use super::wire::Wire;
use crate::clock::Clock;
use crate::units::Nanos;

/// A server that closes a connection so soon after its answer never meant to keep it, whatever it said.
const EARLY: Nanos = Nanos::from_secs(1);
/// Connections to such a server rest so long before they are used again: by then a close that was on its
/// way has come.
const REST: Nanos = Nanos::from_millis(100);

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

/// A connection that rests.
#[derive(Debug)]
struct Idle {
    wire: Wire,
    terms: Terms,
    since: Nanos,
    /// Not used from then on.
    until: Nanos,
}

/// The idle connections of one worker to one server.
#[derive(Debug)]
pub struct Pool {
    dial: Dial,
    clock: Clock,
    /// The one that rested longest first.
    idle: RefCell<Vec<Idle>>,
    /// The server closes what it said it would keep.
    closes_early: Cell<bool>,
    /// Somebody closes what rested too long.
    sweeping: Cell<bool>,
    /// In the place of idle ones, where requests share connections.
    shared: Option<Connections>,
}

impl Pool {
    /// None yet; they are dialled as they are needed.
    #[must_use]
    pub fn new(dial: Dial, clock: Clock) -> Self {
        let shared = dial.is_http2().then(Connections::default);
        let (closes_early, sweeping) = (Cell::default(), Cell::default());
        Self { dial, clock, idle: RefCell::default(), closes_early, sweeping, shared }
    }

    /// An idle connection that is still alive, the most recently used first; dead ones are dropped.
    pub(super) fn reuse(&self) -> Option<(Link, Terms)> {
        if let Some(shared) = &self.shared {
            return shared.reuse().map(|connection| (Link::Shared(connection), Terms::default()));
        }
        let now = self.clock.now();
        let mut idle = self.idle.borrow_mut();
        loop {
            let rest = if self.closes_early.get() { REST } else { Nanos::ZERO };
            let rested = idle.iter().rposition(|idle| idle.since + rest <= now)?;
            let mut found = idle.remove(rested);
            if found.until <= now {
                continue;
            }
            if found.wire.is_quiet() {
                return Some((Link::Own(found.wire), found.terms));
            }
            if found.terms.has_served() && now.since(found.since) < EARLY {
                self.saw_early_close();
            }
        }
    }

    /// The server closed a connection that it had said nothing of closing.
    pub(super) fn saw_early_close(&self) {
        self.closes_early.set(true);
    }

    /// Whether requests share connections.
    pub(super) fn is_shared(&self) -> bool {
        self.shared.is_some()
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

    /// Takes back a connection whose response has ended whole. Says whether a [`sweep`](Self::sweep) has to
    /// be started for it.
    pub(super) fn put_back(&self, wire: Wire, terms: Terms) -> bool {
        let Some(limit) = terms.idle_limit() else { return false };
        let since = self.clock.now();
        self.idle.borrow_mut().push(Idle { wire, terms, since, until: since + limit });
        !self.sweeping.replace(true)
    }

    /// Closes connections that rest too long, until there are none: before the server does it, so that
    /// it is left with no half of one.
    pub(super) async fn sweep(&self) {
        loop {
            let now = self.clock.now();
            self.idle.borrow_mut().retain(|idle| idle.until > now);
            let next = self.idle.borrow().iter().map(|idle| idle.until).min();
            let Some(next) = next else { break };
            self.clock.sleep_until(next).await;
        }
        self.sweeping.set(false);
    }
}
