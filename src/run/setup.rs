//! Settings to what a replay is set up with.

use std::sync::Arc;

use super::content::Content;
use super::settings::{Salt, Settings, Target};
use super::traffic::Traffic;
use crate::client::{Retries, Timeouts};
use crate::machine::host;
use crate::prompt::Prompter;
use crate::replay::job::BodyMaker;
use crate::replay::{Mode, Setup, capacity};
use crate::schedule::PlanFacts;
use crate::server::Servers;
use crate::units::Nanos;

/// Everything about the replay but its plan. `started` is when the run was prepared.
pub(super) fn setup(
    settings: &Settings,
    content: &Content,
    servers: &Servers,
    started: &str,
    traffic: &Traffic,
    plan: Option<&PlanFacts>,
) -> Setup {
    let limits = &settings.limits;
    let mode = mode(settings, traffic, plan);
    // A free slot takes the next row, whoever has it: so turns and slots are with one worker.
    let is_alone = mode != Mode::Open && has_turns(plan);
    let cores = || host::cores().unwrap_or(1);
    let workers = if is_alone { 1 } else { limits.workers.map_or_else(cores, usize::from) };
    let retries = Retries { limit: limits.retries, seed: settings.schedule.seed };
    let mut targets = servers.endpoints(timeouts(settings), retries, settings.output.chunks);
    for target in &mut targets {
        target.route.rx_time &= limits.rx_time;
    }
    Setup {
        targets,
        bodies: bodies(settings, content, servers, started),
        predial: mode.predial(limits.predial, plan.map(|plan| plan.rows), workers),
        workers,
        mode,
        until: until(settings, traffic),
        drain: limits.drain,
    }
}

/// Limits on waiting.
pub(super) fn timeouts(settings: &Settings) -> Timeouts {
    let limits = &settings.limits;
    Timeouts {
        connect: Some(limits.connect_timeout),
        first_token: limits.first_token_timeout,
        idle: limits.idle_timeout,
        total: limits.timeout,
    }
}

/// What all bodies have in common.
pub(super) fn bodies(
    settings: &Settings,
    content: &Content,
    servers: &Servers,
    started: &str,
) -> BodyMaker {
    let salt = match &settings.content.salt {
        // Virtual time has no cache that another run could have filled.
        Salt::Run if matches!(settings.target, Target::Virtual(_)) => String::new(),
        // Another one in every run: its start and its process.
        Salt::Run => format!("{started}-{}", std::process::id()),
        Salt::None => String::new(),
        Salt::Text(text) => text.clone(),
    };
    BodyMaker {
        api: settings.server.api,
        models: servers.models(),
        include_usage: settings.server.usage,
        running_usage: servers.keys.running_usage,
        max_tokens_key: settings.server.max_tokens_key,
        ignore_eos: servers.keys.ignore_eos,
        extra: content.extra.clone(),
        prompter: Prompter::new(settings.schedule.seed, &salt),
        keep_text: settings.content.save_text.is_some() || content.tokenizer.is_some(),
        below_least: Arc::default(),
    }
}

/// What decides when rows leave.
fn mode(settings: &Settings, traffic: &Traffic, plan: Option<&PlanFacts>) -> Mode {
    let slots = |slots: u32| usize::try_from(slots).unwrap_or(usize::MAX);
    let until = until(settings, traffic);
    if let Some(concurrency) = settings.schedule.concurrency {
        return Mode::Closed { slots: slots(concurrency), ramp: Nanos::ZERO, until };
    }
    if let Some((closed, _)) = traffic.closed() {
        return Mode::Closed { slots: slots(closed.slots), ramp: closed.ramp, until };
    }
    match settings.schedule.max_in_flight {
        Some(most) => {
            Mode::Capped { slots: slots(most), last_due: plan.and_then(|plan| plan.last_due) }
        }
        None => Mode::Open,
    }
}

/// When nothing is due any more, though a slot came free or a turn ended.
fn until(settings: &Settings, traffic: &Traffic) -> Nanos {
    let own = traffic.closed().and_then(|(_, duration)| duration);
    [settings.schedule.shape.duration, own].into_iter().flatten().min().unwrap_or(Nanos::MAX)
}

/// Whether turns follow one another; of a stream that is not known before.
fn has_turns(plan: Option<&PlanFacts>) -> bool {
    plan.is_none_or(|plan| plan.think_rows > 0)
}

/// What to say where the system allows fewer streams than the run may need.
pub(super) fn shortage(setup: &Setup, plan: Option<&PlanFacts>) -> Option<String> {
    let streams = match setup.mode {
        Mode::Closed { slots, .. } | Mode::Capped { slots, .. } => slots as u64,
        Mode::Open => plan.map(|plan| capacity::expected_streams(plan.rows, plan.last_due))?,
    };
    capacity::shortage(streams)
}
