//! The server of a run: the one at `--url`, or a simulated one started for it.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail};

use super::args::TargetArgs;
use super::console::say;
use crate::client::target::{self, Target};
use crate::client::{self, Dial, ProbeError};
use crate::clock::Clock;
use crate::report::{self, redact_url};
use crate::sim;

/// A server that can be sent to.
pub(super) struct Server {
    pub(super) target: Target,
    /// What the body names; `None` where the server did not say and nobody else did.
    pub(super) model: Option<String>,
    /// How the manifest calls it.
    pub(super) manifest: report::Target,
    /// How the console calls it.
    pub(super) words: String,
    child: Option<SimulatedServer>,
}

impl Server {
    /// The server at `url`. An unreachable one is a [`ProbeError`], unless the model is given:
    /// then nothing is asked.
    pub(super) fn at(url: &str, args: &TargetArgs) -> anyhow::Result<Self> {
        let target = target::endpoint(url, args.api)?;
        let model = match &args.model {
            Some(model) => Some(model.clone()),
            None => ask_model(&target)?,
        };
        let words = redact_url(url);
        let manifest = report::Target::Server { urls: vec![words.clone()] };
        Ok(Self { target, model, manifest, words, child: None })
    }

    /// A simulated server started for this run, with its truth log in `truth`.
    pub(super) fn simulated(truth: &Path, seed: u64, args: &TargetArgs) -> anyhow::Result<Self> {
        let settings = sim::Settings { seed, ..sim::Settings::default() };
        let child = SimulatedServer::start(&settings, truth)?;
        let target = target::endpoint(&format!("http://127.0.0.1:{}", child.port), args.api)?;
        let words = format!("built-in simulated server on port {} (no real model)", child.port);
        let model = args.model.clone().unwrap_or_else(|| settings.model.clone());
        let manifest = report::Target::Simulated { settings: serde_json::to_value(settings)? };
        Ok(Self { target, model: Some(model), manifest, words, child: Some(child) })
    }

    /// Whether it was started for this run.
    pub(super) fn is_simulated(&self) -> bool {
        self.child.is_some()
    }

    /// Ends a simulated server; true where there was one, whose truth log is then whole.
    pub(super) fn end(self) -> bool {
        self.child.is_some()
    }
}

/// Asks which model is served. An answer that names none is said; no answer at all is an error.
fn ask_model(target: &Target) -> anyhow::Result<Option<String>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let dial = Dial::Tcp { host: target.host.clone(), port: target.port };
    let asked = tokio::task::LocalSet::new().block_on(&runtime, async {
        let clock = Clock::real()?;
        anyhow::Ok(client::first_model(&dial, &clock, &target.authority, &target.models_path).await)
    })?;
    match asked {
        Ok(model) => Ok(Some(model)),
        Err(error @ ProbeError::Refused { .. }) => {
            say(&format!("note: {error}; requests go out without a model (give --model NAME)"));
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// A simulated server in a process of its own, so that its load is not counted as the client's.
/// It ends when this value is dropped, and by itself when this process dies.
struct SimulatedServer {
    child: Child,
    port: u16,
}

impl SimulatedServer {
    fn start(settings: &sim::Settings, truth: &Path) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let seed = settings.seed.to_string();
        let mut child = Command::new(program)
            .args(["sim", "--port", "0", "--until-stdin-closes", "--seed", &seed, "--truth"])
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
}

impl Drop for SimulatedServer {
    fn drop(&mut self) {
        // Its shutdown signal; it writes out its log and ends.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
