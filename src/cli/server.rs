//! The server of a run: the one at `--url`, or a simulated one started for it.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail};

use super::args::RunArgs;
use super::console::say;
use super::reach::{self, Way};
use crate::client::{self, Dial, Endpoint, ProbeError, Timeouts};
use crate::clock::Clock;
use crate::report;
use crate::sim;

/// The servers of a run.
pub(super) struct Server {
    ways: Vec<Way>,
    /// What the bodies name, by target; `None` where a server did not say and nobody else did.
    pub(super) models: Vec<Option<String>>,
    /// How the manifest calls them.
    pub(super) manifest: report::Target,
    /// How the console calls them.
    pub(super) words: String,
    child: Option<SimulatedServer>,
}

impl Server {
    /// The servers that were named. An unreachable one is a [`ProbeError`], unless the model is given:
    /// then nothing is asked.
    pub(super) fn at(ways: Vec<Way>, args: &RunArgs) -> anyhow::Result<Self> {
        let models = match &args.target.model {
            Some(model) => vec![Some(model.clone()); ways.len()],
            None => ways.iter().map(ask_model).collect::<anyhow::Result<_>>()?,
        };
        let urls: Vec<String> = ways.iter().map(|way| way.name.clone()).collect();
        let words = urls.join(", ");
        let manifest = report::Target::Server { urls };
        Ok(Self { ways, models, manifest, words, child: None })
    }

    /// A simulated server started for this run, with its truth log in `truth`.
    pub(super) fn simulated(truth: &Path, args: &RunArgs) -> anyhow::Result<Self> {
        let settings = sim::Settings { seed: args.shape.seed, ..sim::Settings::default() };
        let child = SimulatedServer::start(&settings, truth)?;
        let way = reach::own(&format!("http://127.0.0.1:{}", child.port), args)?;
        let words = format!("built-in simulated server on port {} (no real model)", child.port);
        let model = args.target.model.clone().unwrap_or_else(|| settings.model.clone());
        let manifest = report::Target::Simulated { settings: serde_json::to_value(settings)? };
        let (ways, models) = (vec![way], vec![Some(model)]);
        Ok(Self { ways, models, manifest, words, child: Some(child) })
    }

    /// The model of the first.
    pub(super) fn model(&self) -> Option<String> {
        self.models.first().cloned().flatten()
    }

    /// Where requests go, by target.
    pub(super) fn endpoints(&self, timeouts: Timeouts, ignore_eos: bool) -> Vec<Endpoint> {
        let endpoint = |way: &Way| Endpoint {
            route: way.route.clone(),
            settings: client::Settings { head: way.head.clone(), timeouts, ignore_eos },
        };
        self.ways.iter().map(endpoint).collect()
    }

    /// Ends a simulated server; true where there was one, whose truth log is then whole.
    pub(super) fn end(self) -> bool {
        self.child.is_some()
    }
}

/// Asks which model is served. An answer that names none is said; no answer at all is an error.
fn ask_model(way: &Way) -> anyhow::Result<Option<String>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let dial = Dial::route(&way.route);
    let asked = tokio::task::LocalSet::new().block_on(&runtime, async {
        let clock = Clock::real()?;
        let (authority, path) = (&way.target.authority, &way.target.models_path);
        anyhow::Ok(client::first_model(&dial, &clock, &way.head, authority, path).await)
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
