//! `underfire run`: a source, a server, a run folder.

use anyhow::Context;
use tokio::sync::watch;

use super::Exit;
use super::args::RunArgs;
use super::console::{complain, print, say};
use super::live::{Live, stop_on_signals};
use super::results::Results;
use super::server::Server;
use super::traffic::Traffic;
use crate::client::{self, ProbeError, Timeouts};
use crate::clock::Utc;
use crate::metrics::Window;
use crate::prompt::Prompter;
use crate::replay::job::BodyMaker;
use crate::replay::{self, Mode, ReplayError, Setup, capacity};
use crate::report::{Folder, Recorder};
use crate::schedule::PlanFacts;
use crate::units::Nanos;

/// Carries out the command.
pub(super) fn run(args: &RunArgs, quit: fn(Exit) -> !) -> anyhow::Result<Exit> {
    let traffic = Traffic::open(args)?;
    if !args.output.quiet {
        traffic.say_notices();
    }
    let facts = traffic.look_ahead(args.target.api)?;
    match &facts {
        Some(facts) => check_plan(args, &traffic, facts)?,
        None => anyhow::ensure!(
            !args.output.dry_run && args.output.plan.is_none(),
            "a stream can be read once only, so it has no --dry-run and no --plan\nhint: give a file"
        ),
    }
    if let Some(path) = &args.output.plan {
        traffic.write_plan(path)?;
    }
    if args.output.dry_run {
        if let Some(facts) = &facts {
            print(&traffic.describe(facts));
        }
        return Ok(Exit::Ok);
    }
    match reach(args) {
        Ok(server) => replay(args, &traffic, facts.as_ref(), server, quit),
        Err(error) if error.is::<ProbeError>() => {
            complain(&error);
            Ok(Exit::NothingSucceeded)
        }
        Err(error) => Err(error),
    }
}

/// A schedule's first row is not waited for longer than this.
const LONGEST_WAIT: Nanos = Nanos::from_secs(24 * 3600);

/// What makes a plan not worth sending.
fn check_plan(args: &RunArgs, traffic: &Traffic, facts: &PlanFacts) -> anyhow::Result<()> {
    anyhow::ensure!(facts.rows > 0, traffic.nothing_left(facts));
    let warmup = args.limits.warmup;
    anyhow::ensure!(
        facts.last_due.is_none_or(|last| warmup <= last),
        "--warmup {:.3}s leaves nothing to measure: the last row is due at {:.3} s",
        warmup.as_secs_f64(),
        facts.last_due.unwrap_or_default().as_secs_f64()
    );
    anyhow::ensure!(
        facts.first_due.is_none_or(|first| first <= LONGEST_WAIT),
        "the first row is due after {:.1} days: are its times absolute?\nhint: --from T starts there, \
         --max-gap D shortens the wait, --time-unit names the unit",
        facts.first_due.unwrap_or_default().as_secs_f64() / 86_400.0
    );
    Ok(())
}

/// The server at `--url`, asked before any folder is made; `None` where one is to be simulated.
fn reach(args: &RunArgs) -> anyhow::Result<Option<Server>> {
    args.target.url.as_ref().map(|url| Server::at(url, &args.target)).transpose()
}

fn replay(
    args: &RunArgs,
    traffic: &Traffic,
    facts: Option<&PlanFacts>,
    server: Option<Server>,
    quit: fn(Exit) -> !,
) -> anyhow::Result<Exit> {
    let started = Utc::now().compact();
    let name = args.output.name.as_deref().unwrap_or(traffic.name());
    let folder = Folder::create(args.output.out.as_deref(), name, &started)?;
    let server = match server {
        Some(server) => server,
        None => Server::simulated(&folder.file("truth.csv"), args.shape.seed, &args.target)?,
    };
    if !args.output.quiet {
        if let Some(facts) = facts {
            say(traffic.describe(facts).trim_end());
        }
        say(&format!("server: {}", server.words));
    }
    let (stop, _) = watch::channel(false);
    stop_on_signals(&stop, quit).context("cannot watch for signals")?;
    let window = Window { warmup: args.limits.warmup, last_due: facts.and_then(|f| f.last_due) };
    let recorder = Recorder::create(&folder.file("requests.csv"), window)?;
    let results = Results::open(args, traffic, facts, &server, folder)?;

    let mut live = Live::new(recorder, facts.map(|facts| facts.rows), args.output.quiet);
    let setup = setup(args, &server, &started, facts);
    if let Some(words) = shortage(&setup, facts) {
        say(&format!("warning: {words}"));
    }
    let ran = replay::run(traffic.plan()?, &setup, &stop, |event| live.take(event));
    let interrupted = *stop.borrow() && ran.is_ok();
    let (recorder, anchor) = live.finish();
    let has_truth = server.end();
    // Whatever went wrong, what was measured is written first.
    let ran = ran.map_err(|error| match error {
        ReplayError::Worker(error) => anyhow::Error::new(error).context("cannot start a worker"),
        ReplayError::Plan(error) => error.into(),
        ReplayError::Content(error) => error.into(),
        ReplayError::Caller(error) => error,
    });
    let broken = ran.as_ref().err().map(|error| format!("{error:#}"));
    let late = traffic.late_notices();
    let exit = results.close(recorder, anchor, interrupted, has_truth, &late, broken.as_deref());
    ran?;
    exit
}

/// What decides when rows leave.
fn mode(args: &RunArgs, facts: Option<&PlanFacts>) -> Mode {
    match (args.shape.concurrency, args.shape.max_in_flight) {
        (Some(slots), _) => {
            Mode::Closed { slots: slots as usize, until: args.shape.duration.unwrap_or(Nanos::MAX) }
        }
        (None, Some(slots)) => {
            Mode::Capped { slots: slots as usize, last_due: facts.and_then(|facts| facts.last_due) }
        }
        (None, None) => Mode::Open,
    }
}

/// What to say where the system allows fewer streams than the run may need.
fn shortage(setup: &Setup, facts: Option<&PlanFacts>) -> Option<String> {
    let streams = match setup.mode {
        Mode::Closed { slots, .. } | Mode::Capped { slots, .. } => slots as u64,
        Mode::Open => facts.map(|facts| capacity::expected_streams(facts.rows, facts.last_due))?,
    };
    capacity::shortage(streams)
}

fn setup(args: &RunArgs, server: &Server, started: &str, facts: Option<&PlanFacts>) -> Setup {
    let limits = &args.limits;
    let salt = match args.shape.salt.as_str() {
        "none" => "",
        // Another one in every run: its start and its process.
        "run" => &format!("{started}-{}", std::process::id()),
        text => text,
    };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Setup {
        host: server.target.host.clone(),
        port: server.target.port,
        client: client::Settings {
            authority: server.target.authority.clone(),
            path: server.target.path_and_query.clone(),
            timeouts: Timeouts {
                connect: Some(limits.connect_timeout),
                first_token: limits.first_token_timeout,
                idle: limits.idle_timeout,
                total: limits.timeout,
            },
            ignore_eos: args.target.ignore_eos,
        },
        bodies: BodyMaker {
            api: args.target.api,
            model: server.model.clone(),
            include_usage: !args.target.no_usage,
            ignore_eos: args.target.ignore_eos,
            prompter: Prompter::new(args.shape.seed, salt),
        },
        workers: limits.workers.map_or(cores, usize::from),
        mode: mode(args, facts),
        drain: limits.drain.unwrap_or_default(),
    }
}
