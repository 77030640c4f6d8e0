//! What servers are asked before `t0`, and how their answers settle the vendor keys of a run.
//!
//! GETs first (is anybody there, which models, which engine), then one small POST to each server. The
//! results are told apart from those of rows. Deliberately absent: printing.

use std::io::ErrorKind;

use serde_json::{Value, json};
use tokio::task::LocalSet;

use super::address::Address;
use super::engine::Engine;
use super::error::ServerError;
use super::preflight::{self, PREFLIGHT_OUTPUT_TOK, Sent, Verdict};
use super::probe::{Probe, ServerFacts};
use super::settings::{ServerSettings, Switch};
use crate::client::{AttemptControl, Client, Dial, Endpoint, FetchError};
use crate::clock::Clock;
use crate::record::{Outcome, StreamRecord};
use crate::replay::job::{BodyMaker, Job, JobError};
use crate::schedule::Planned;
use crate::trace::Request;
use crate::units::Nanos;

/// How often a server that is not ready is asked again.
const READY_POLL: Nanos = Nanos::from_millis(250);
/// A fault that may pass is given this long to do so, where nobody says `--wait-ready`.
const PATIENCE: Nanos = Nanos::from_secs(3);
/// A preflight is given this long, unless `--timeout` says otherwise.
const PREFLIGHT_LIMIT: Nanos = Nanos::from_secs(60);
/// Tokens of its prompt.
const PREFLIGHT_INPUT_TOK: u32 = 8;

/// What a person should know of what is learnt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remark {
    /// Bears on the rows to come.
    Note(String),
    /// A server is waited for: which, and why.
    Waiting(String),
    /// What came of the small request sent ahead.
    Preflight(String),
}

/// Takes remarks.
pub type Tell<'a> = &'a mut dyn FnMut(Remark);

/// What asking every server told, by target.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// What each tells of itself.
    pub(super) facts: Vec<ServerFacts>,
    /// What the bodies name.
    pub(super) models: Vec<Option<String>>,
    /// Those that did not answer at all.
    pub(super) silent: usize,
}

/// Asks by GET whatever may be asked. Only where rows could not be sent for it is silence an error.
pub(super) fn discover(
    addresses: &[Address],
    settings: &ServerSettings,
    tell: Tell<'_>,
) -> Result<Answers, ServerError> {
    on_a_runtime(async |clock: Clock| {
        let mut answers = Answers::default();
        for address in addresses {
            let probe = Probe::new(&address.target, &address.route, &address.head, clock.clone());
            if let Some(limit) = settings.wait_ready {
                wait_ready(&probe, &clock, limit, address, tell).await.map_err(|why| {
                    let limit_s = limit.as_secs_f64();
                    ServerError::NotServed(format!(
                        "not ready after {limit_s} s (--wait-ready): {why}"
                    ))
                })?;
            }
            let mut asked = ask(&probe, settings).await;
            // What is definite is asked about once more, and not waited for.
            if may_pass(&asked)
                && settings.wait_ready.is_none()
                && settings.preflight
                && wait_ready(&probe, &clock, PATIENCE, address, tell).await.is_ok()
            {
                asked = ask(&probe, settings).await;
            }
            let facts = match asked {
                Ok(facts) => facts,
                Err(error) if settings.model.is_some() || !settings.preflight => {
                    tell(Remark::Note(format!("{error}; rows are sent all the same")));
                    answers.silent += 1;
                    ServerFacts { engine: settings.engine, ..ServerFacts::default() }
                }
                Err(error @ FetchError::NotHttp { .. }) if settings.connection.http2 => {
                    return Err(ServerError::NotServed(format!(
                        "{error}\nhint: does this server speak HTTP/2? Without --http2 it is asked by HTTP/1.1"
                    )));
                }
                Err(error) => return Err(error.into()),
            };
            let first = facts.models.first().map(|model| model.id.clone());
            let model = settings.model.clone().or(first);
            if model.is_none() {
                let why = facts.refusal.as_deref().unwrap_or("no model is known");
                tell(Remark::Note(format!(
                    "{why}; requests go out without a model (give --model NAME)"
                )));
            }
            answers.models.push(model);
            answers.facts.push(facts);
        }
        Ok(answers)
    })
}

async fn ask(probe: &Probe<'_>, settings: &ServerSettings) -> Result<ServerFacts, FetchError> {
    let named = settings.engine;
    let may_ask = settings.may_probe();
    if !may_ask && settings.model.is_some() {
        return Ok(ServerFacts { engine: named, ..ServerFacts::default() });
    }
    let mut facts = probe.models().await?;
    facts.engine = named.or(facts.engine);
    if may_ask {
        // A server that leaves these unanswered is still one.
        let _ = probe.recognise(&mut facts).await;
    }
    Ok(facts)
}

/// Whether asking again may have another answer: nobody listens yet, or there is no list of models (a
/// server that still loads its model says 503).
fn may_pass(asked: &Result<ServerFacts, FetchError>) -> bool {
    match asked {
        Ok(facts) => facts.refusal.is_some(),
        Err(FetchError::Unreachable { source, .. }) => matches!(
            source.kind(),
            ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset | ErrorKind::NotFound
        ),
        Err(FetchError::NotHttp { .. } | FetchError::Silent { .. }) => false,
    }
}

/// Asks until there is an answer that is no server's error, or says why there was none in time.
async fn wait_ready(
    probe: &Probe<'_>,
    clock: &Clock,
    limit: Nanos,
    address: &Address,
    tell: Tell<'_>,
) -> Result<(), String> {
    let deadline = clock.now() + limit;
    let mut said = false;
    loop {
        let why = match probe.is_ready().await {
            Ok(true) => return Ok(()),
            Ok(false) => format!("{} answers with an error", address.name),
            Err(error) => error.to_string(),
        };
        if clock.now() >= deadline {
            return Err(why);
        }
        if !said {
            tell(waiting(address, &why));
            said = true;
        }
        clock.sleep_until(deadline.min(clock.now() + READY_POLL)).await;
    }
}

fn waiting(address: &Address, why: &str) -> Remark {
    Remark::Waiting(format!("waiting for the server {} to be ready: {why}", address.name))
}

/// The vendor keys that every server of a run takes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Keys {
    pub(crate) ignore_eos: bool,
    pub(crate) running_usage: bool,
}

impl Keys {
    /// Settles the keys; one that was asked for and that a server is not known to take is an error.
    pub(super) fn settle(
        answers: &Answers,
        settings: &ServerSettings,
    ) -> Result<Self, ServerError> {
        let all_take = |takes: fn(Engine) -> bool| {
            answers.facts.iter().all(|facts| facts.engine.is_some_and(takes))
        };
        // Of a server that says nothing nobody can know, and its rows will tell.
        let can_tell = answers.silent == 0;
        if settings.ignore_eos && can_tell && !all_take(Engine::ignores_eos) {
            let words = Engine::words_that_ignore_eos();
            let engines: Vec<String> = answers.facts.iter().map(engine_word).collect();
            return Err(ServerError::Settings(format!(
                "--ignore-eos: it is not known that this server takes the key (engine: {})\nhint: \
                 name the engine by --engine where it is one of {words}",
                engines.join(", ")
            )));
        }
        let running_usage = match settings.running_usage {
            Switch::On => true,
            Switch::Off => false,
            Switch::Auto => settings.usage && all_take(Engine::has_running_usage),
        };
        Ok(Self { ignore_eos: settings.ignore_eos, running_usage })
    }
}

/// The engine in a word.
pub(super) fn engine_word(facts: &ServerFacts) -> String {
    facts.engine.map_or_else(|| "not recognised".to_owned(), |engine| engine.to_string())
}

/// One small request to each server. What it says goes to the person and the manifest; a refusal that
/// every row would meet is an error.
pub(super) fn preflight(
    addresses: &[Address],
    endpoints: &[Endpoint],
    answers: &Answers,
    bodies: &BodyMaker,
    settings: &ServerSettings,
    tell: Tell<'_>,
) -> Result<(Vec<Value>, Vec<String>), ServerError> {
    let (mut outcomes, mut notices) = (Vec::new(), Vec::new());
    for (index, (address, endpoint)) in addresses.iter().zip(endpoints).enumerate() {
        let bodies = BodyMaker { models: vec![answers.models[index].clone()], ..bodies.clone() };
        let job = || bodies.job(planned(index));
        let record = on_a_runtime(async |clock| {
            send_patiently(endpoint, &clock, job, address, &mut *tell).await
        })?;
        let listed: Vec<String> =
            answers.facts[index].models.iter().map(|model| model.id.clone()).collect();
        let sent = Sent {
            url: &address.name,
            model: answers.models[index].as_deref(),
            listed: &listed,
            has_key: settings.connection.headers.has_key(),
            usage: bodies.include_usage,
        };
        match preflight::judge(&record, &sent) {
            Verdict::Fine(said) => notices.extend(said),
            Verdict::Refused(why) => return Err(ServerError::NotServed(why)),
            Verdict::Unreachable(why) if settings.model.is_none() => {
                return Err(ServerError::NotServed(why));
            }
            Verdict::Unreachable(why) => notices.push(format!("the preflight failed: {why}")),
        }
        tell(Remark::Preflight(describe(&record)));
        outcomes.push(outcome(&record));
    }
    Ok((outcomes, notices))
}

/// A row that no trace has, so that its prompt is no other's beginning.
fn planned(index: usize) -> Planned {
    let request = Request {
        row: u64::MAX - index as u64,
        input_tok: PREFLIGHT_INPUT_TOK,
        output_tok: Some(PREFLIGHT_OUTPUT_TOK),
        ..Request::default()
    };
    Planned { index: 0, due: None, request }
}

/// Sends it again while what is wrong may pass, within a few seconds.
async fn send_patiently(
    endpoint: &Endpoint,
    clock: &Clock,
    job: impl Fn() -> Result<Job, JobError>,
    address: &Address,
    tell: Tell<'_>,
) -> Result<StreamRecord, ServerError> {
    let deadline = clock.now() + PATIENCE;
    let mut pause = READY_POLL;
    loop {
        let record = send(endpoint, clock.clone(), job()?).await;
        let may_pass = matches!(record.outcome, Outcome::Connect | Outcome::Http(502..=504));
        if !may_pass || clock.now() + pause >= deadline {
            return Ok(record);
        }
        if pause == READY_POLL {
            let why = record.error.as_deref().unwrap_or("no answer");
            let why = format!("the preflight ended as {}: {why}", record.outcome);
            tell(waiting(address, &why));
        }
        clock.sleep_until(clock.now() + pause).await;
        pause = pause + pause;
    }
}

async fn send(endpoint: &Endpoint, clock: Clock, job: Job) -> StreamRecord {
    let mut settings = endpoint.settings.clone();
    settings.timeouts.total.get_or_insert(PREFLIGHT_LIMIT);
    let t0 = clock.now();
    let client = Client::new(Dial::route(&endpoint.route), clock, t0, settings);
    client.perform(job.record(Nanos::ZERO), job.body, &AttemptControl::default()).await
}

fn describe(record: &StreamRecord) -> String {
    let (tokens, chunks) = (output_tok(record), record.tokens.count());
    let ttft = record
        .tokens
        .first()
        .map_or_else(String::new, |at| format!(", first token after {:.1} ms", at.as_millis_f64()));
    format!(
        "preflight: {} · {tokens} tokens in {chunks} chunks{ttft} (not in the results)",
        record.outcome
    )
}

fn outcome(record: &StreamRecord) -> Value {
    json!({
        "outcome": record.outcome.to_string(),
        "ttft_ms": record.tokens.first().map(Nanos::as_millis_f64),
        "output_tok": output_tok(record),
        "chunks": record.tokens.count(),
    })
}

fn output_tok(record: &StreamRecord) -> u64 {
    record.usage.and_then(|usage| usage.output_tok).unwrap_or(record.tokens.count())
}

/// Runs a question to its end on this thread.
fn on_a_runtime<T>(
    question: impl AsyncFnOnce(Clock) -> Result<T, ServerError>,
) -> Result<T, ServerError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    LocalSet::new().block_on(&runtime, async { question(Clock::real()?).await })
}
