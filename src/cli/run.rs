//! `underfire run`: a source, a server, a run folder.

use std::sync::Arc;

use anyhow::Context;
use tokio::sync::watch;

use super::Exit;
use super::args::RunArgs;
use super::ask::NotServed;
use super::console::{complain, print, say};
use super::content_args::Given;
use super::live::{Finished, Live, stop_on_signals};
use super::prompts::{self, Prepared};
use super::reach::ways;
use super::results::{Ending, Results};
use super::scraping::Scraping;
use super::server::Server;
use super::server_count::ServerCount;
use super::text_count::TextCounter;
use super::traffic::Traffic;
use crate::client::dialect::Api;
use crate::client::{FetchError, Retries, Timeouts};
use crate::clock::Utc;
use crate::machine::disk::Expected;
use crate::metrics::Window;
use crate::metrics::abort::AbortWatch;
use crate::prompt::Prompter;
use crate::replay::drain::Stop;
use crate::replay::job::BodyMaker;
use crate::replay::{self, Mode, ReplayError, Setup, capacity};
use crate::report::{Folder, Recorder, TextFile};
use crate::schedule::PlanFacts;
use crate::sim;
use crate::trace::read::TraceError;
use crate::units::Nanos;

/// Carries out the command.
pub(super) fn run(args: &RunArgs, quit: fn(Exit) -> !) -> anyhow::Result<Exit> {
    let mut traffic = Traffic::open(&args.source, &args.reading, &args.shape, args.target.api)?;
    if !args.output.quiet {
        traffic.say_notices();
    }
    let given = args.content.read(args.target.api, args.shape.seed, traffic.request_body())?;
    let facts = traffic.look_ahead()?;
    if let Some(words) = traffic.idle_options(facts.as_ref())
        && !args.output.quiet
    {
        say(&format!("note: {words}"));
    }
    match &facts {
        Some(facts) => check_plan(args, &traffic, facts)?,
        None => anyhow::ensure!(
            !args.output.dry_run && args.output.plan.is_none(),
            "the rows cannot be counted before they are sent, so there is no --dry-run and no --plan\nhint: \
             give a file for a stream, and --limit for a closed loop without an end"
        ),
    }
    if let Some(warning) = facts.as_ref().and_then(|facts| natural_warning(args, facts)) {
        say(&format!("warning: {warning}"));
    }
    if args.output.dry_run {
        write_plan(args, &traffic)?;
        if let Some(facts) = &facts {
            print(&traffic.describe(facts));
        }
        if let Some(words) = traffic.fidelity_words(None) {
            print(&words);
        }
        return Ok(Exit::Ok);
    }
    args.content.save_text.as_deref().map_or(Ok(()), TextFile::check)?;
    match reach(args, &given) {
        Ok(server) => {
            let facts = match max_len_tok(server.as_ref()) {
                Some(tok) => traffic.fit(tok, args.reach.clip_to_server, facts)?,
                None => facts,
            };
            write_plan(args, &traffic)?;
            replay(args, &traffic, facts.as_ref(), given, server, quit)
        }
        Err(error) if error.is::<FetchError>() || error.is::<NotServed>() => {
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

/// What answers that end by themselves come to on an API that ends them early.
fn natural_warning(args: &RunArgs, facts: &PlanFacts) -> Option<String> {
    let rows = facts.output.natural_rows;
    (rows > 0 && args.target.api == Api::Completions).then(|| {
        format!(
            "{rows} rows ask for no completion length, and servers of the completions API then end most answers \
             after 16 tokens; --api chat has no such limit, and --max-output-tok N asks for one"
        )
    })
}

fn write_plan(args: &RunArgs, traffic: &Traffic) -> anyhow::Result<()> {
    args.output.plan.as_ref().map_or(Ok(()), |path| traffic.write_plan(path))
}

/// The most that every server of the run takes, where one tells.
fn max_len_tok(server: Option<&Server>) -> Option<u64> {
    match server {
        Some(server) => server.max_len_tok(),
        None => Some(sim::Settings::default().max_model_len_tok),
    }
}

/// The server at `--url`, asked before any folder is made; `None` where one is to be simulated.
fn reach(args: &RunArgs, given: &Given) -> anyhow::Result<Option<Server>> {
    let ways = ways(args)?;
    if ways.is_empty() {
        return Ok(None);
    }
    let mut server = Server::at(ways, args)?;
    let bodies = bodies(args, given, &server, &Utc::now().compact());
    server.preflight(timeouts(args), &bodies, args)?;
    Ok(Some(server))
}

fn replay(
    args: &RunArgs,
    traffic: &Traffic,
    facts: Option<&PlanFacts>,
    given: Given,
    server: Option<Server>,
    quit: fn(Exit) -> !,
) -> anyhow::Result<Exit> {
    let started = Utc::now().compact();
    let texts = args.content.save_text.as_deref().map(TextFile::create).transpose()?;
    let name = args.output.name.as_deref().unwrap_or(traffic.name());
    let make_folder = || Folder::create(args.output.out.as_deref(), name, &started);
    let (server, folder) = if let Some(server) = server {
        // Made when everything is ready: who is interrupted before that finds no empty folder.
        args.output.out.as_deref().map_or(Ok(()), Folder::check)?;
        (server, None)
    } else {
        // Its log is a file of the folder.
        let folder = make_folder()?;
        (Server::simulated(&folder.file("truth.csv"), args)?, Some(folder))
    };
    if !args.output.quiet {
        if let Some(facts) = facts {
            say(traffic.describe(facts).trim_end());
        }
        say(&format!("server: {}\n{}", server.words, server.describe().trim_end()));
    }
    for notice in &server.notices {
        say(&format!("note: {notice}"));
    }
    let counter = given.tokenizer.clone().map(TextCounter::new);
    let mut setup = setup(args, &given, &server, &started, (traffic, facts));
    let mut prepared = Prepared::prepare(args, facts, given, &server, &mut setup)?;
    prepared.prime(args, &setup)?;
    let (stop, _) = watch::channel(Stop::No);
    stop_on_signals(&stop, quit).context("cannot watch for signals")?;
    if args.limits.calibrate {
        prepared.calibrate(facts, &setup, &stop)?;
        if *stop.borrow() == Stop::All {
            return Ok(Exit::Interrupted);
        }
    }
    let scraping = Scraping::of(args, &server)?;
    let folder = folder.map_or_else(make_folder, Ok)?;
    if let Some(facts) = facts
        && let Some(warning) = files(facts, args.output.chunks).warning(folder.path())
    {
        say(&format!("warning: {warning}"));
    }
    // Turns are due when they are due: the last of them is known at the end.
    let last_due = facts.filter(|facts| facts.think_rows == 0).and_then(|facts| facts.last_due);
    let window = Window { warmup: args.limits.warmup, last_due };
    let recorder = Recorder::create(&folder, window, args.output.chunks, args.limits.retries > 0)?
        .with_reader_pace(args.limits.reader_pace);
    let server_count = scraping.map(|scraping| ServerCount::new(scraping, &folder)).transpose()?;
    let results = Results::open(args, traffic, facts, &server, &prepared, (folder, window))?;

    let abort = AbortWatch::new(&args.judgement.abort_on, args.judgement.max_refused);
    let rows = facts.map(|facts| facts.rows);
    let mut live = Live::new(
        (recorder, server_count),
        (texts, counter),
        rows,
        args.output.quiet,
        abort,
        stop.clone(),
    );
    if let Some(words) = shortage(&setup, facts) {
        say(&format!("warning: {words}"));
    }
    let ran = replay::run(traffic.plan()?, &setup, &stop, |event| live.take(event));
    let finished = live.finish();
    let Finished { recorder, sent, anchor, aborted, notice, .. } = finished;
    let ending = Ending {
        anchor,
        server: finished.server,
        in_flight: finished.in_flight,
        client: finished.client,
        dialled: finished.dialled,
        interrupted: *stop.borrow() == Stop::All && ran.is_ok(),
        stopped: ran.as_ref().err().map(first_line),
        aborted: aborted.map(|reason| reason.to_string()),
        fidelity: traffic.fidelity(sent.as_ref()),
        fidelity_words: traffic.fidelity_words(sent.as_ref()),
    };
    let has_truth = server.end();
    // Whatever went wrong, what was measured is written first.
    let mut late = traffic.late_notices();
    late.extend(prompts::below_least(&setup));
    late.extend(notice);
    let exit = results.close(recorder, ending, has_truth, &late);
    ran.map_err(why)?;
    exit
}

/// Why a run broke off, for the person who started it.
pub(super) fn why(error: ReplayError<TraceError, anyhow::Error>) -> anyhow::Error {
    match error {
        ReplayError::Worker(error) => anyhow::Error::new(error).context("cannot start a worker"),
        ReplayError::Panicked(error) => error.into(),
        ReplayError::Plan(error) => error.into(),
        ReplayError::Content(error) => error.into(),
        ReplayError::Caller(error) => error,
    }
}

/// An error with its causes, without its hint.
pub(super) fn first_line(error: &impl std::fmt::Display) -> String {
    format!("{error:#}").lines().next().unwrap_or_default().to_owned()
}

/// What decides when rows leave.
fn mode(args: &RunArgs, traffic: &Traffic, facts: Option<&PlanFacts>) -> Mode {
    let slots = |slots: u32| usize::try_from(slots).unwrap_or(usize::MAX);
    if let Some(concurrency) = args.shape.concurrency {
        return Mode::Closed {
            slots: slots(concurrency),
            ramp: Nanos::ZERO,
            until: until(args, traffic),
        };
    }
    if let Some((closed, _)) = traffic.closed() {
        let until = until(args, traffic);
        return Mode::Closed { slots: slots(closed.slots), ramp: closed.ramp, until };
    }
    match args.shape.max_in_flight {
        Some(most) => {
            let last_due = facts.and_then(|facts| facts.last_due);
            Mode::Capped { slots: slots(most), last_due }
        }
        None => Mode::Open,
    }
}

/// When nothing is due any more, though a slot came free or a turn ended.
fn until(args: &RunArgs, traffic: &Traffic) -> Nanos {
    let own = traffic.closed().and_then(|(_, duration)| duration);
    [args.shape.duration, own].into_iter().flatten().min().unwrap_or(Nanos::MAX)
}

/// Whether turns follow one another; of a stream that is not known before.
fn has_turns(facts: Option<&PlanFacts>) -> bool {
    facts.is_none_or(|facts| facts.think_rows > 0)
}

/// What to say where the system allows fewer streams than the run may need.
fn shortage(setup: &Setup, facts: Option<&PlanFacts>) -> Option<String> {
    let streams = match setup.mode {
        Mode::Closed { slots, .. } | Mode::Capped { slots, .. } => slots as u64,
        Mode::Open => facts.map(|facts| capacity::expected_streams(facts.rows, facts.last_due))?,
    };
    capacity::shortage(streams)
}

fn timeouts(args: &RunArgs) -> Timeouts {
    let limits = &args.limits;
    Timeouts {
        connect: Some(limits.connect_timeout),
        first_token: limits.first_token_timeout,
        idle: limits.idle_timeout,
        total: limits.timeout,
    }
}

fn retries(args: &RunArgs) -> Retries {
    Retries { limit: args.limits.retries, seed: args.shape.seed }
}

fn bodies(args: &RunArgs, given: &Given, server: &Server, started: &str) -> BodyMaker {
    let salt = match args.shape.salt.as_str() {
        "none" => "",
        // Another one in every run: its start and its process.
        "run" => &format!("{started}-{}", std::process::id()),
        text => text,
    };
    BodyMaker {
        api: args.target.api,
        models: server.models(),
        include_usage: !args.target.no_usage,
        running_usage: server.keys.running_usage,
        max_tokens_key: args.reach.max_tokens_key,
        ignore_eos: server.keys.ignore_eos,
        extra: given.extra.clone(),
        prompter: Prompter::new(args.shape.seed, salt),
        keep_text: args.content.save_text.is_some() || given.tokenizer.is_some(),
        below_least: Arc::default(),
    }
}

/// What the run will write.
fn files(facts: &PlanFacts, chunks: bool) -> Expected {
    let (output, rows) = (&facts.output, facts.rows);
    let is_open_ended = output.total().is_none();
    Expected { rows, output_tok: output.limited_tok, is_open_ended, chunks }
}

fn setup(
    args: &RunArgs,
    given: &Given,
    server: &Server,
    started: &str,
    (traffic, facts): (&Traffic, Option<&PlanFacts>),
) -> Setup {
    let limits = &args.limits;
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mode = mode(args, traffic, facts);
    // A free slot takes the next row, whoever has it: so turns and slots are with one worker.
    let is_alone = mode != Mode::Open && has_turns(facts);
    let workers = if is_alone { 1 } else { limits.workers.map_or(cores, usize::from) };
    let mut targets = server.endpoints(timeouts(args), retries(args), args.output.chunks);
    for target in &mut targets {
        target.route.rx_time &= !limits.no_rx_time;
    }
    Setup {
        targets,
        bodies: bodies(args, given, server, started),
        predial: mode.predial(limits.predial, facts.map(|facts| facts.rows), workers),
        workers,
        mode,
        until: until(args, traffic),
        drain: limits.drain.unwrap_or_default(),
    }
}
