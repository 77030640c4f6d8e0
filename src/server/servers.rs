//! The servers of a run: those at `--url`, or a simulated one started for it.

use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};

use super::address::Address;
use super::discovery::{self, Answers, Keys, Tell, engine_word};
use super::engine::{Engine, Model};
use super::error::ServerError;
use super::probe::ServerFacts;
use super::settings::{ServerSettings, Switch};
use super::simulated::SimulatedServer;
use crate::client::{Endpoint, RequestHead, Retries, Route, Settings, Timeouts, url};
use crate::replay::job::BodyMaker;
use crate::sim;

/// The servers of a run.
#[derive(Debug)]
pub struct Servers {
    addresses: Vec<Address>,
    /// What they said when asked.
    answers: Answers,
    /// The vendor keys that bodies bear.
    pub(crate) keys: Keys,
    /// What came of the requests sent ahead, by target.
    preflights: Vec<Value>,
    /// What a person should know about them.
    pub notices: Vec<String>,
    /// Settings of the simulated one.
    pub simulated: Option<sim::Settings>,
    process: Option<SimulatedServer>,
}

impl Servers {
    /// The servers at these addresses, asked by GET. An unreachable one is an error, unless rows can be
    /// sent to it all the same.
    pub fn at(
        addresses: Vec<Address>,
        settings: &ServerSettings,
        tell: Tell<'_>,
    ) -> Result<Self, ServerError> {
        let answers = discovery::discover(&addresses, settings, tell)?;
        let keys = Keys::settle(&answers, settings)?;
        Ok(Self {
            addresses,
            answers,
            keys,
            preflights: Vec::new(),
            notices: Vec::new(),
            simulated: None,
            process: None,
        })
    }

    /// Sends one small request to each, where that is allowed and somebody is there.
    pub fn preflight(
        &mut self,
        timeouts: Timeouts,
        bodies: &BodyMaker,
        settings: &ServerSettings,
        tell: Tell<'_>,
    ) -> Result<(), ServerError> {
        if settings.may_probe() && self.answers.silent == 0 {
            let endpoints = self.endpoints(timeouts, Retries::default(), false);
            let (addresses, answers) = (&self.addresses, &self.answers);
            (self.preflights, self.notices) =
                discovery::preflight(addresses, &endpoints, answers, bodies, settings, tell)?;
        }
        Ok(())
    }

    /// A simulated server as a process: `program sim …`, with its truth log in `truth`.
    pub fn simulated(
        program: &Path,
        sim: sim::Settings,
        truth: Option<&Path>,
        settings: &ServerSettings,
    ) -> Result<Self, ServerError> {
        let process = SimulatedServer::start(program, &sim, truth)?;
        let address = Address::own(&process.url(), settings.api)?;
        Ok(Self { process: Some(process), ..Self::of_simulator(address, sim, settings) })
    }

    /// A simulated server in memory, for virtual time.
    pub fn in_memory(sim: sim::Settings, settings: &ServerSettings) -> Result<Self, ServerError> {
        let target = url::endpoint("http://memory", settings.api)?;
        let address = Address {
            target,
            route: Route::tcp("memory", 0),
            head: RequestHead::in_memory(settings.api.path()),
            name: "memory".to_owned(),
        };
        Ok(Self::of_simulator(address, sim, settings))
    }

    fn of_simulator(address: Address, sim: sim::Settings, settings: &ServerSettings) -> Self {
        let model = Model { max_len_tok: Some(sim.max_model_len_tok), ..Model::default() };
        let facts = ServerFacts {
            engine: Some(Engine::Underfire),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            models: vec![model],
            refusal: None,
        };
        let named = settings.model.clone().unwrap_or_else(|| sim.model.clone());
        Self {
            addresses: vec![address],
            answers: Answers { facts: vec![facts], models: vec![Some(named)], silent: 0 },
            // Its chunks are one token each, so usage on every one would only be more bytes.
            keys: Keys {
                ignore_eos: settings.ignore_eos,
                running_usage: settings.running_usage == Switch::On,
            },
            preflights: Vec::new(),
            notices: Vec::new(),
            simulated: Some(sim),
            process: None,
        }
    }

    /// Where they are, as they may be told, by target.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        self.addresses.iter().map(|address| address.name.clone()).collect()
    }

    /// Where a simulated one listens, in words.
    #[must_use]
    pub fn describe_simulated(&self) -> Option<String> {
        self.simulated.as_ref()?;
        Some(match &self.process {
            Some(process) => {
                format!("built-in simulated server on port {} (no real model)", process.port())
            }
            None => "built-in simulated server in virtual time (no real model)".to_owned(),
        })
    }

    /// The model of the first.
    #[must_use]
    pub fn model(&self) -> Option<String> {
        self.answers.models.first().cloned().flatten()
    }

    /// What the bodies name, by target; `None` where a server did not say and nobody else did.
    #[must_use]
    pub fn models(&self) -> Vec<Option<String>> {
        self.answers.models.clone()
    }

    /// What is known of each server, a line each.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for (index, facts) in self.answers.facts.iter().enumerate() {
            if self.addresses.len() > 1 {
                let _ = write!(text, "target {index} · ");
            }
            let _ = write!(text, "engine: {}", engine_word(facts));
            match facts.version.as_deref() {
                Some(version) if is_told(version) => text.extend([" ", version]),
                Some(_) => text.push_str(", version unknown"),
                None => {}
            }
            if let Some(len) = self.max_len_of(index) {
                let _ = write!(text, " · at most {len} tokens a request");
            }
            let keys =
                [(self.keys.running_usage, "running usage"), (self.keys.ignore_eos, "ignore_eos")];
            for (_, key) in keys.iter().filter(|(sent, _)| *sent) {
                let _ = write!(text, " · asks for {key}");
            }
            text.push('\n');
        }
        text
    }

    /// The same for the manifest: an object, or one for each of several servers.
    #[must_use]
    pub fn about(&self) -> Value {
        let mut each = self.answers.facts.iter().enumerate().map(|(index, facts)| {
            json!({
                "engine": facts.engine.map(|engine| engine.to_string()),
                "version": facts.version.as_deref().filter(|version| is_told(version)),
                "max_model_len": self.max_len_of(index),
                "running_usage": self.keys.running_usage,
                "ignore_eos": self.keys.ignore_eos,
                "preflight": self.preflights.get(index),
            })
        });
        if self.answers.facts.len() == 1 { each.next().unwrap_or_default() } else { each.collect() }
    }

    /// The longest request that every server takes, where one tells.
    #[must_use]
    pub fn max_len_tok(&self) -> Option<u64> {
        (0..self.addresses.len()).filter_map(|index| self.max_len_of(index)).min()
    }

    /// The longest request of the model in use at a server, where it tells.
    fn max_len_of(&self, index: usize) -> Option<u64> {
        let models = &self.answers.facts.get(index)?.models;
        let named = self.answers.models.get(index)?.as_deref();
        let used = models.iter().find(|model| Some(model.id.as_str()) == named);
        used.or_else(|| models.first().filter(|_| models.len() == 1))?.max_len_tok
    }

    /// Where requests go, by target.
    #[must_use]
    pub fn endpoints(
        &self,
        timeouts: Timeouts,
        retries: Retries,
        keep_kinds: bool,
    ) -> Vec<Endpoint> {
        let ignore_eos = self.keys.ignore_eos;
        let endpoint = |address: &Address| {
            let plain = address.endpoint(timeouts);
            let settings = Settings { ignore_eos, retries, keep_kinds, ..plain.settings };
            Endpoint { settings, ..plain }
        };
        self.addresses.iter().map(endpoint).collect()
    }

    /// Where a simulated server that was started for this run is.
    #[must_use]
    pub fn simulated_url(&self) -> Option<String> {
        self.process.as_ref().map(SimulatedServer::url)
    }

    /// For a question to the first one's tokenizer.
    #[must_use]
    pub fn tokenize_path(&self) -> String {
        self.addresses.first().map(|address| address.target.tokenize_path()).unwrap_or_default()
    }

    /// Whether all are simulated, so that a word is a token.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.answers.facts.iter().all(|facts| facts.engine == Some(Engine::Underfire))
    }

    /// Ends a simulated server; true where there was one, whose truth log is then whole.
    #[must_use]
    pub fn end(self) -> bool {
        self.process.is_some()
    }
}

/// Whether a version is one: a llama.cpp that was built outside its repository says `b0-unknown`.
fn is_told(version: &str) -> bool {
    !version.ends_with("unknown")
}
