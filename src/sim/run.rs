//! A simulated server on a real port and in real time, for as long as somebody wants it.
//!
//! Absent: the command line, signals, and the parent that may have started this process; they are in
//! the future that says when to stop.

use std::fs::File;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use tokio::net::TcpSocket;
use tokio::task::LocalSet;

use super::server::Server;
use super::settings::{Settings, SettingsError};
use super::truth::TruthError;
use crate::clock::Clock;

/// Connections that may wait to be accepted: more than the kernel's usual limit, which then holds.
const BACKLOG: u32 = 8_192;

/// The simulated server could not run, or could not tell the truth.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It cannot be simulated.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// No runtime or timer from the system.
    #[error("failed to start the simulated server: {0}")]
    Start(#[source] io::Error),
    /// The port.
    #[error("failed to listen on {address}: {source}")]
    Listen {
        /// What was asked for.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The truth log's file.
    #[error("failed to create {}: {source}", path.display())]
    Create {
        /// What was asked for.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It was served to the end, but the log is not whole.
    #[error(transparent)]
    Truth(#[from] TruthError),
}

/// Serves on `address` until `until` ends; blocks the thread.
///
/// `on_ready` gets the address with the port that was really taken, once connections are accepted.
/// Streams that are open at the end are cut, and are in the truth log as cancelled.
pub fn run_blocking(
    settings: Settings,
    address: SocketAddr,
    truth: Option<PathBuf>,
    on_ready: impl FnOnce(SocketAddr),
    until: impl Future<Output = ()>,
) -> Result<(), RunError> {
    settings.check()?;
    crate::machine::sockets::prepare_descriptors();
    let truth = match truth {
        None => None,
        Some(path) => {
            let file = File::create(&path).map_err(|source| RunError::Create { path, source })?;
            Some(Box::new(file) as Box<dyn io::Write>)
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .map_err(RunError::Start)?;
    LocalSet::new().block_on(&runtime, async {
        let clock = Clock::real().map_err(RunError::Start)?;
        let server = Server::new(settings, clock, truth);
        let listen = |source| RunError::Listen { address, source };
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
        let socket = socket.map_err(listen)?;
        // A port just left by another server can be taken again.
        socket.set_reuseaddr(true).map_err(listen)?;
        socket.bind(address).map_err(listen)?;
        let listener = socket.listen(BACKLOG).map_err(listen)?;
        on_ready(listener.local_addr().map_err(listen)?);
        server.clone().listen(listener, until).await;
        Ok(server.finish()?)
    })
}
