//! `underfire run`: a source, a server, a run folder.

use std::sync::Arc;

use anyhow::Context;
use tokio::sync::watch;

use super::Exit;
use super::args::RunArgs;
use super::console::{complain, print, say};
use super::content_args::Given;
use super::live::{Live, stop_on_signals};
use super::prompts::{self, Prepared};
use super::results::Results;
use super::server::Server;
use super::traffic::Traffic;
use crate::client::{self, ProbeError, Timeouts};
use crate::clock::Utc;
use crate::metrics::Window;
use crate::prompt::Prompter;
use crate::replay::job::BodyMaker;
use crate::replay::{self, Mode, ReplayError, Setup};
use crate::report::{Folder, Recorder, TextFile};
use crate::schedule::PlanFacts;
use crate::units::Nanos;

/// Carries out the command.
pub(super) fn run(args: &RunArgs, quit: fn(Exit) -> !) -> anyhow::Result<Exit> {
    let traffic = Traffic::open(args)?;
    traffic.say_notices();
    let facts = traffic.look_ahead()?;
    if let Some(facts) = &facts {
        anyhow::ensure!(facts.rows > 0, traffic.nothing_left(facts));
    }
    let given = args.content.read(args.target.api, args.shape.seed, traffic.request_body())?;
    if let Some(path) = &args.output.plan {
        traffic.write_plan(path)?;
    }
    if args.output.dry_run {
        let facts = facts.context("a stream has no dry run\nhint: give a file")?;
        print(&traffic.describe(&facts));
        return Ok(Exit::Ok);
    }
    match reach(args) {
        Ok(server) => replay(args, &traffic, facts.as_ref(), given, server, quit),
        Err(error) if error.is::<ProbeError>() => {
            complain(&error);
            Ok(Exit::NothingSucceeded)
        }
        Err(error) => Err(error),
    }
}

/// The server at `--url`, asked before any folder is made; `None` where one is to be simulated.
fn reach(args: &RunArgs) -> anyhow::Result<Option<Server>> {
    args.target.url.as_ref().map(|url| Server::at(url, &args.target)).transpose()
}

fn replay(
    args: &RunArgs,
    traffic: &Traffic,
    facts: Option<&PlanFacts>,
    given: Given,
    server: Option<Server>,
    quit: fn(Exit) -> !,
) -> anyhow::Result<Exit> {
    let texts = args.content.save_text.as_deref().map(TextFile::create).transpose()?;
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
    let mut setup = setup(args, &given, &server, &started);
    let mut prepared = Prepared::prepare(args, facts, given, &server, &mut setup)?;
    prepared.prime(args, &setup)?;
    let (stop, _) = watch::channel(false);
    stop_on_signals(&stop, quit).context("cannot watch for signals")?;
    let window = Window { warmup: args.limits.warmup, last_due: facts.and_then(|f| f.last_due) };
    let recorder = Recorder::create(&folder.file("requests.csv"), window)?;
    let results = Results::open(args, traffic, facts, &server, &prepared, folder)?;

    let mut live = Live::new(recorder, texts, facts.map(|facts| facts.rows), args.output.quiet);
    let ran = replay::run(traffic.plan()?, &setup, &stop, |event| live.take(event));
    let interrupted = *stop.borrow() && ran.is_ok();
    let (recorder, anchor) = live.finish();
    let has_truth = server.end();
    let mut late = traffic.late_notices();
    late.extend(prompts::below_least(&setup));
    // Whatever went wrong, what was measured is written first.
    let exit = results.close(recorder, anchor, interrupted, has_truth, &late);
    ran.map_err(|error| match error {
        ReplayError::Worker(error) => anyhow::Error::new(error).context("cannot start a worker"),
        ReplayError::Plan(error) => error.into(),
        ReplayError::Content(error) => error.into(),
        ReplayError::Caller(error) => error,
    })?;
    exit
}

fn setup(args: &RunArgs, given: &Given, server: &Server, started: &str) -> Setup {
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
            extra: given.extra.clone(),
            prompter: Prompter::new(args.shape.seed, salt),
            keep_text: args.content.save_text.is_some(),
            below_least: Arc::default(),
        },
        workers: limits.workers.map_or(cores, usize::from),
        mode: match args.shape.concurrency {
            None => Mode::Open,
            Some(slots) => Mode::Closed {
                slots: slots as usize,
                until: args.shape.duration.unwrap_or(Nanos::MAX),
            },
        },
        drain: limits.drain.unwrap_or_default(),
    }
}
