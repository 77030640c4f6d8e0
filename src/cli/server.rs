//! The server of a run: the one at `--url`, or a simulated one started for it.

use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};

use super::args::RunArgs;
use super::ask::{self, Answers, Keys};
use super::reach::{self, Way};
use super::reach_args::Switch;
use super::simulated::SimulatedServer;
use crate::client::{Endpoint, Retries, Settings, Timeouts};
use crate::replay::job::BodyMaker;
use crate::report;
use crate::server::{Engine, Model, ServerFacts};
use crate::sim;

/// The servers of a run.
pub(super) struct Server {
    ways: Vec<Way>,
    /// What they said when asked.
    answers: Answers,
    /// The vendor keys that bodies bear.
    pub(super) keys: Keys,
    /// What came of the requests sent ahead, by target.
    preflights: Vec<Value>,
    /// What a person should know about them.
    pub(super) notices: Vec<String>,
    /// How the manifest calls them.
    pub(super) manifest: report::Target,
    /// How the console calls them.
    pub(super) words: String,
    child: Option<SimulatedServer>,
}

impl Server {
    /// The servers that were named, asked by GET. An unreachable one is a [`FetchError`], unless rows
    /// can be sent to it all the same.
    ///
    /// [`FetchError`]: crate::client::FetchError
    pub(super) fn at(ways: Vec<Way>, args: &RunArgs) -> anyhow::Result<Self> {
        let answers = ask::ask(&ways, args)?;
        let keys = Keys::settle(&answers, args)?;
        let urls: Vec<String> = ways.iter().map(|way| way.name.clone()).collect();
        let manifest = report::Target::Server { urls };
        let words = manifest.to_string();
        let preflights = Vec::new();
        let notices = Vec::new();
        Ok(Self { ways, answers, keys, preflights, notices, manifest, words, child: None })
    }

    /// Sends one small request to each, where that is allowed and somebody is there.
    pub(super) fn preflight(
        &mut self,
        timeouts: Timeouts,
        bodies: &BodyMaker,
        args: &RunArgs,
    ) -> anyhow::Result<()> {
        if args.reach.may_probe() && self.answers.silent == 0 {
            let endpoints = self.endpoints(timeouts, Retries::default(), false);
            let (ways, answers) = (&self.ways, &self.answers);
            (self.preflights, self.notices) =
                ask::preflight(ways, &endpoints, answers, bodies, args)?;
        }
        Ok(())
    }

    /// A simulated server started for this run, with its truth log in `truth`.
    pub(super) fn simulated(truth: &Path, args: &RunArgs) -> anyhow::Result<Self> {
        let settings = sim::Settings { seed: args.shape.seed, ..sim::Settings::default() };
        let child = SimulatedServer::start(&settings, truth)?;
        let way = reach::own(&format!("http://127.0.0.1:{}", child.port()), args.target.api)?;
        let words = format!("built-in simulated server on port {} (no real model)", child.port());
        let model = args.target.model.clone().unwrap_or_else(|| settings.model.clone());
        let max_len_tok = settings.max_model_len_tok;
        let manifest = report::Target::Simulated { settings: serde_json::to_value(settings)? };
        let facts = ServerFacts {
            engine: Some(Engine::Underfire),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            models: vec![Model { max_len_tok: Some(max_len_tok), ..Model::default() }],
            refusal: None,
        };
        let answers = Answers { facts: vec![facts], models: vec![Some(model)], silent: 0 };
        // Its chunks are one token each, so usage on every one would only be more bytes.
        let running_usage = args.reach.running_usage == Switch::On;
        Ok(Self {
            ways: vec![way],
            answers,
            keys: Keys { ignore_eos: args.target.ignore_eos, running_usage },
            preflights: Vec::new(),
            notices: Vec::new(),
            manifest,
            words,
            child: Some(child),
        })
    }

    /// The model of the first.
    pub(super) fn model(&self) -> Option<String> {
        self.answers.models.first().cloned().flatten()
    }

    /// What the bodies name, by target; `None` where a server did not say and nobody else did.
    pub(super) fn models(&self) -> Vec<Option<String>> {
        self.answers.models.clone()
    }

    /// What is known of each server, a line each.
    pub(super) fn describe(&self) -> String {
        let mut text = String::new();
        for (index, facts) in self.answers.facts.iter().enumerate() {
            if self.ways.len() > 1 {
                let _ = write!(text, "target {index} · ");
            }
            let _ = write!(text, "engine: {}", ask::engine_word(facts));
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
    pub(super) fn about(&self) -> Value {
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
    pub(super) fn max_len_tok(&self) -> Option<u64> {
        (0..self.ways.len()).filter_map(|index| self.max_len_of(index)).min()
    }

    /// The longest request of the model in use at a server, where it tells.
    fn max_len_of(&self, index: usize) -> Option<u64> {
        let models = &self.answers.facts.get(index)?.models;
        let named = self.answers.models.get(index)?.as_deref();
        let used = models.iter().find(|model| Some(model.id.as_str()) == named);
        used.or_else(|| models.first().filter(|_| models.len() == 1))?.max_len_tok
    }

    /// Where requests go, by target.
    pub(super) fn endpoints(
        &self,
        timeouts: Timeouts,
        retries: Retries,
        keep_kinds: bool,
    ) -> Vec<Endpoint> {
        let ignore_eos = self.keys.ignore_eos;
        let endpoint = |way: &Way| {
            let plain = way.endpoint(timeouts);
            let settings = Settings { ignore_eos, retries, keep_kinds, ..plain.settings };
            Endpoint { settings, ..plain }
        };
        self.ways.iter().map(endpoint).collect()
    }

    /// Where a simulated server that was started for this run is.
    pub(super) fn simulated_url(&self) -> Option<String> {
        self.child.as_ref().map(|child| format!("http://127.0.0.1:{}", child.port()))
    }

    /// For a question to the first one's tokenizer.
    pub(super) fn tokenize_path(&self) -> String {
        self.ways.first().map(|way| way.target.tokenize_path()).unwrap_or_default()
    }

    /// Whether all are simulated, so that a word is a token.
    pub(super) fn is_simulated(&self) -> bool {
        self.answers.facts.iter().all(|facts| facts.engine == Some(Engine::Underfire))
    }

    /// Ends a simulated server; true where there was one, whose truth log is then whole.
    pub(super) fn end(self) -> bool {
        self.child.is_some()
    }
}

/// Whether a version is one: a llama.cpp that was built outside its repository says `b0-unknown`.
fn is_told(version: &str) -> bool {
    !version.ends_with("unknown")
}
