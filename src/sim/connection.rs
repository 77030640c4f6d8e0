//! The server's connections: from a port, or from anywhere that bytes come from.
//!
//! Absent: what is answered on them (see `route`).

use std::future::Future;
use std::pin::pin;
use std::rc::Rc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::fault::{Link, Transport, Wire};
use super::route;
use super::server::Server;
use super::truth::{Ended, Ledger};
use crate::units::Nanos;

/// How long no connection is accepted after one could not be (no file descriptors left).
const ACCEPT_PAUSE: Nanos = Nanos::from_millis(10);

impl Server {
    /// Serves one connection until either side ends it.
    pub async fn serve_connection<IO>(self: Rc<Self>, io: IO)
    where
        IO: Transport,
    {
        if self.refuses() {
            io.reset_on_close();
            return;
        }
        // Repeatable to the byte in virtual time, so no wall clock there.
        let has_date = !self.clock().is_virtual();
        let link = Rc::new(Link::default());
        let wire = Wire::new(io, link.clone());
        let (clock, never_idle) = (self.clock().clone(), self.settings().faults.is_empty());
        let service = {
            let link = link.clone();
            service_fn(move |request| route::answer(self.clone(), link.clone(), request))
        };
        let connection = http1::Builder::new()
            .writev(false)
            .auto_date_header(has_date)
            .header_read_timeout(None)
            .serve_connection(TokioIo::new(wire), service);
        // A client that goes away is no fault of the server's; its requests are in the truth log.
        if never_idle {
            let _ = connection.await;
            return;
        }
        // A request that has come, or an answer that is not written out, goes before a close for idleness,
        // however late both are seen.
        tokio::select! {
            biased;
            _ = connection => {}
            () = link.idled(&clock) => {}
        }
    }

    /// Whether the connection that has just come is to be turned away. It is a row of the truth log,
    /// so that every request that a client tried is one.
    fn refuses(&self) -> bool {
        let settings = self.settings();
        if settings.faults.is_empty() {
            return false;
        }
        let (number, age) = (self.connect(), self.age());
        let refuses = settings.faults.refuses(settings.seed, number, age);
        if refuses {
            let mut ledger = Ledger::new(self.clock().now(), false);
            "refuse".clone_into(&mut ledger.fault);
            self.note(&ledger.row(String::new(), Ended::Broken));
        }
        refuses
    }

    /// Accepts connections until `shutdown` ends, then cuts those that are open.
    pub async fn listen(self: Rc<Self>, listener: TcpListener, shutdown: impl Future) {
        let mut shutdown = pin!(shutdown);
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                _ = &mut shutdown => break,
                Some(_) = connections.join_next() => {}
                accepted = listener.accept() => match accepted {
                    Ok((socket, _)) => {
                        // Only slower where it fails.
                        let _ = socket.set_nodelay(true);
                        connections.spawn_local(self.clone().serve_connection(socket));
                    }
                    Err(_) => self.clock().sleep_until(self.clock().now() + ACCEPT_PAUSE).await,
                },
            }
        }
        connections.shutdown().await;
    }
}
