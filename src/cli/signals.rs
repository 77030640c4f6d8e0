//! Signals to the stop of a run.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::Exit;
use crate::replay::drain::Stop;

/// Turns the first SIGINT or SIGTERM into a stop, and the second into the end of the process.
pub(super) fn stop_on_signals(
    stop: &watch::Sender<Stop>,
    quit: fn(Exit) -> !,
) -> anyhow::Result<()> {
    let stop = stop.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (mut interrupt, mut terminate) = {
        let _entered = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(async {
            for count in 0.. {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                if count > 0 {
                    quit(Exit::Interrupted);
                }
                Stop::All.request(&stop);
            }
        });
    })?;
    Ok(())
}
