//! What `run.json` and the summary say of a run before its first row is due.

use serde_json::{Value, json};

use super::prompts::Prompts;
use super::settings::Settings;
use super::traffic::Traffic;
use crate::machine::host;
use crate::report::{Folder, Machine, Manifest, OwnError, RunFacts, Scale, Target};
use crate::schedule::PlanFacts;
use crate::server::Servers;

/// What is known of a run before `t0`.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) settings: &'a Settings,
    pub(super) traffic: &'a Traffic,
    pub(super) plan: Option<&'a PlanFacts>,
    pub(super) servers: &'a Servers,
    pub(super) prompts: &'a Prompts,
    pub(super) own_error: Option<&'a OwnError>,
}

impl Known<'_> {
    /// For the run's manifest. It says interrupted until the run has ended: one that is killed never says
    /// so itself.
    pub(super) fn manifest(&self) -> Manifest {
        let Self { settings, traffic, plan, servers, prompts, own_error } = *self;
        let (method, factor) = traffic.scale();
        Manifest {
            seed: settings.schedule.seed,
            plan_hash: plan.map(|plan| plan.plan_hash.clone()),
            scale: Some(Scale { method, factor }),
            source: traffic.manifest(plan),
            fidelity: traffic.fidelity(None),
            settings: self.settings(),
            target: Some(target(servers)),
            model: servers.model(),
            api: Some(settings.server.api.to_string()),
            server: servers.about(),
            calibration: own_error.cloned(),
            labels: settings.output.labels.clone(),
            notices: [traffic.notices(), &servers.notices, &prompts.notices]
                .concat()
                .into_iter()
                .chain(cap_notice(settings))
                .collect(),
            interrupted: true,
            machine: Some(Machine {
                cores: host::cores().map(|cores| cores as u64),
                memory_bytes: host::memory_bytes(),
                kernel: host::kernel(),
            }),
            ..Manifest::new(&settings.output.command)
        }
    }

    /// What was asked for, and the tokenizer that was found.
    fn settings(&self) -> Value {
        let mut value = self.settings.manifest();
        value["tokenizer"] = self.prompts.tokenizer.clone();
        value
    }

    /// For the summary that people read.
    pub(super) fn facts(&self, folder: Option<&Folder>) -> RunFacts {
        let Self { settings, traffic, servers, prompts, own_error, .. } = *self;
        let name = folder.and_then(|folder| folder.path().file_name());
        let name = name.map(|name| name.to_string_lossy().into_owned());
        RunFacts {
            name: name.unwrap_or_else(|| traffic.name().to_owned()),
            target: describe_target(servers),
            model: servers.model(),
            folder: folder.map(|folder| folder.path().display().to_string()),
            input_remedy: prompts.input_remedy.map(str::to_owned),
            cache_unasked_tok: prompts.cache_unasked_tok,
            own_error: own_error.cloned(),
            notices: cap_notice(settings).into_iter().collect(),
            ..RunFacts::default()
        }
    }
}

/// Where requests go, as the manifest calls it.
fn target(servers: &Servers) -> Target {
    match &servers.simulated {
        Some(settings) => Target::Simulated { settings: json!(settings) },
        None => Target::Server { urls: servers.urls() },
    }
}

/// The servers of a run for people: a simulated one tells its port too.
#[must_use]
pub fn describe_target(servers: &Servers) -> String {
    servers.describe_simulated().unwrap_or_else(|| target(servers).to_string())
}

/// What a cap on requests in flight does to the figures, so that nobody reads them without it.
fn cap_notice(settings: &Settings) -> Option<String> {
    let slots = settings.schedule.max_in_flight?;
    Some(format!(
        "at most {slots} requests in flight (--max-in-flight): a row that found no room left late, and \
         its wait is in the lag and in every latency from due"
    ))
}
