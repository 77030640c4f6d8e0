//! A simulated server for a run or a calibration: this program once more, as a child.
//!
//! Deliberately absent: what the server is like (see [`crate::sim`]), and how its log is read.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};

use super::sim::arguments;
use crate::machine::process;
use crate::sim;
use crate::units::Nanos;

/// A simulated server in a process of its own, so that its load is not counted as the client's.
/// It ends when this value is dropped, and by itself when this process dies.
pub(super) struct SimulatedServer {
    child: Child,
    port: u16,
}

impl SimulatedServer {
    /// Starts one on a port of its own, with its truth log in `truth`.
    pub(super) fn start(settings: &sim::Settings, truth: &Path) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let mut child = Command::new(program)
            .args(["sim", "--port", "0", "--until-stdin-closes"])
            .args(arguments(settings))
            .arg("--truth")
            .arg(truth)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the simulated server")?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout.take(1024)).read_line(&mut line)?;
        }
        let port = line.trim().rsplit(':').next().and_then(|port| port.parse().ok());
        let Some(port) = port else {
            let _ = child.kill();
            let _ = child.wait();
            bail!("the simulated server did not say its port (it said `{}`)", line.trim());
        };
        Ok(Self { child, port })
    }

    /// Where it listens on loopback.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Processor time of its one busy thread so far; `None` where the system does not say.
    pub(super) fn cpu(&self) -> Option<Nanos> {
        process::cpu_of(self.child.id())
    }
}

/// How often, and how many times, the end of the child is looked for before it is forced: 5 s.
const CHILD_LOOK: Duration = Duration::from_millis(5);
const CHILD_LOOKS: u32 = 1_000;

impl Drop for SimulatedServer {
    fn drop(&mut self) {
        // Its shutdown signal; it writes out its log and ends.
        drop(self.child.stdin.take());
        let (_never, pause) = std::sync::mpsc::channel::<()>();
        for _ in 0..CHILD_LOOKS {
            if self.child.try_wait().is_ok_and(|ended| ended.is_some()) {
                return;
            }
            let _ = pause.recv_timeout(CHILD_LOOK);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
