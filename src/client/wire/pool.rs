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
use super::maybe_tls::Wire;
use super::route::Route;
use super::stamped::{Stamped, Transport};
use crate::clock::Clock;
use crate::units::Nanos;

/// A server that closes a connection so soon after its answer never meant to keep it, whatever it said.
const EARLY: Nanos = Nanos::from_secs(1);
/// Connections to such a server rest so long before they are used again: by then a close that was on its
/// way has come.
const REST: Nanos = Nanos::from_millis(100);

/// One that carried nothing yet rests no longer than this: servers wait a minute for a first request.
const FRESH_LIMIT: Nanos = Nanos::from_secs(30);

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

/// A connection that has rested and is used again.
pub(crate) struct Reused {
    pub(crate) link: Link,
    pub(crate) terms: Terms,
    /// How long it rested; zero where requests share it.
    pub(crate) rested: Nanos,
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
    /// One that rested longer is not used again: a request crossed the server's close at twice the age.
    longest_rest: Cell<Nanos>,
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
        let longest_rest = Cell::new(Nanos::MAX);
        Self { dial, clock, idle: RefCell::default(), closes_early, longest_rest, sweeping, shared }
    }

    /// An idle connection that is still alive, the most recently used first; dead ones are dropped.
    pub(crate) fn reuse(&self) -> Option<Reused> {
        if let Some(shared) = &self.shared {
            let link = Link::Shared(shared.reuse()?);
            return Some(Reused { link, terms: Terms::default(), rested: Nanos::ZERO });
        }
        let now = self.clock.now();
        let mut idle = self.idle.borrow_mut();
        loop {
            let rest = if self.closes_early.get() { REST } else { Nanos::ZERO };
            let rested = idle.iter().rposition(|idle| idle.since + rest <= now)?;
            let mut found = idle.remove(rested);
            let age = now.since(found.since);
            if found.until <= now || age > self.longest_rest.get() {
                continue;
            }
            if found.wire.is_quiet() {
                return Some(Reused {
                    link: Link::Own(found.wire),
                    terms: found.terms,
                    rested: age,
                });
            }
            if found.terms.has_served() && age < EARLY {
                self.closes_early.set(true);
            }
        }
    }

    /// The server closed a connection that had rested so long, as a request crossed it. A close right
    /// behind an answer shows within [`REST`]; any other is by age, and a server that is busy may make it
    /// late, so that a connection older than it means to keep is still open and is closed on the next
    /// request too: from now on none that rested longer than half of it is used.
    pub(crate) fn saw_crossing(&self, rested: Nanos) {
        self.closes_early.set(true);
        if rested >= REST {
            self.longest_rest.set(self.longest_rest.get().min(Nanos(rested.0 / 2)));
        }
    }

    /// Whether requests share connections.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// A new connection.
    pub(crate) async fn dial(&self) -> io::Result<Link> {
        let dial = self.dial.dial(&self.clock);
        match &self.shared {
            Some(shared) => shared.get(dial).await.map(Link::Shared),
            None => dial.await.map(Link::Own),
        }
    }

    /// Drops all idle connections.
    pub(crate) fn forget(&self) {
        self.idle.borrow_mut().clear();
    }

    /// Takes back a connection whose response has ended whole. Says whether a [`sweep`](Self::sweep) has to
    /// be started for it.
    pub(crate) fn put_back(&self, wire: Wire, terms: Terms) -> bool {
        let Some(limit) = terms.idle_limit() else { return false };
        self.rest(wire, terms, limit);
        !self.sweeping.replace(true)
    }

    /// Keeps a connection that has carried nothing yet. Nobody sweeps it: one that the server drops is found
    /// when it is to be used.
    pub(crate) fn keep_fresh(&self, wire: Wire) {
        self.rest(wire, Terms::default(), FRESH_LIMIT);
    }

    fn rest(&self, wire: Wire, terms: Terms, limit: Nanos) {
        let since = self.clock.now();
        self.idle.borrow_mut().push(Idle { wire, terms, since, until: since + limit });
    }

    /// Closes connections that rest too long, until there are none: before the server does it, so that
    /// it is left with no half of one.
    pub(crate) async fn sweep(&self) {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clock::VirtualTime;

    /// A pipe to a server that leaves it open as long as it is kept.
    fn idle_pipe(clock: &Clock, servers: &mut Vec<DuplexStream>) -> Wire {
        let (near, far) = tokio::io::duplex(64);
        servers.push(far);
        Wire::Plain(Stamped::new(Transport::Pipe(near), clock.clone()))
    }

    #[test]
    fn after_a_crossing_nothing_half_as_old_is_used_again() {
        let time = Arc::new(VirtualTime::default());
        let clock = Clock::of_virtual(&time);
        let ran = time.run(|| async {
            let dial = Dial::Memory(Rc::new(|| tokio::io::duplex(64).0));
            let (pool, mut servers) = (Pool::new(dial, clock.clone()), Vec::new());
            let mut used = async |rest_ms: u64| {
                pool.put_back(idle_pipe(&clock, &mut servers), Terms::default());
                clock.sleep_until(clock.now() + Nanos::from_millis(rest_ms)).await;
                let used = pool.reuse().map(|found| found.rested);
                pool.forget();
                used
            };
            let s = Nanos::from_secs;
            assert_eq!(used(3_000).await, Some(s(3)));
            assert_eq!(used(0).await, Some(s(0)));
            pool.saw_crossing(Nanos::ZERO);
            assert_eq!(used(0).await, None, "not before a close that is on its way has come");
            assert_eq!(used(3_000).await, Some(s(3)), "then it has");
            pool.saw_crossing(s(2));
            assert_eq!(used(3_000).await, None);
            assert_eq!(used(1_000).await, Some(s(1)));
            // A server that closes after a moment: none is used again.
            pool.saw_crossing(Nanos::from_millis(110));
            for rest_ms in [0, 50, 99, 100, 101, 1_000] {
                assert_eq!(used(rest_ms).await, None, "{rest_ms}");
            }
        });
        ran.expect("a runtime").expect("no stall");
    }
}
