//! What each path answers.
//!
//! Absent: time, and the bytes of an answer.

use std::rc::Rc;

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use hyper::{Method, Request};

use super::answer::{self, Answer, Parting, head, json, refused};
use super::chunk::{Chunks, Finish, Plan};
use super::draw;
use super::fault::{self, Broken, FaultyBody, Link, Script};
use super::refusal::Refusal;
use super::request::{Api, GenerateRequest};
use super::server::Server;
use super::settings::NATURAL_MEAN_TOK;
use super::stream::{Entry, TokenBody, whole};
use super::truth::Ended;

/// The longest request body that is read: about 16 million words.
const MAX_BODY_BYTES: usize = 64 << 20;

/// Answers one request; an error ends its connection.
pub(super) async fn answer(
    server: Rc<Server>,
    link: Rc<Link>,
    request: Request<Incoming>,
) -> Result<Answer, Broken> {
    let (api, wanted) = match request.uri().path() {
        "/v1/chat/completions" => (Some(Api::Chat), Method::POST),
        "/v1/completions" => (Some(Api::Completions), Method::POST),
        "/v1/models" | "/health" | "/metrics" => (None, Method::GET),
        _ => return Ok(refused(Refusal::no_route())),
    };
    if *request.method() != wanted {
        let allow = if wanted == Method::POST { "POST" } else { "GET" };
        return Ok(refused(Refusal::wrong_method(allow)));
    }
    match api {
        Some(api) => {
            let (number, ledger) = server.arrive();
            let script = server.script(number);
            link.begin(script.as_deref());
            let entry = Entry::new(server.clone(), api, number, ledger);
            let parting = script
                .is_some()
                .then(|| Parting { link: link.clone(), clock: server.clock().clone() });
            let answer = match script {
                None => generate(server, entry, request.into_body()).await,
                Some(script) => {
                    generate_faulty(server, entry, script, link, request.into_body()).await?
                }
            };
            Ok(answer.map(|body| body.parting(parting)))
        }
        None => Ok(match request.uri().path() {
            "/health" => head(200, Bytes::new()),
            "/metrics" => {
                server.metrics().map_or_else(|| refused(Refusal::no_route()), answer::metrics)
            }
            _ => json(200, models(&server)),
        }),
    }
}

async fn generate(server: Rc<Server>, mut entry: Entry, body: Incoming) -> Answer {
    match plan(&server, &mut entry, body).await {
        Ok(plan) => {
            let chunks = chunks(&server, &entry, &plan);
            if plan.ask.is_stream {
                answer::stream(TokenBody::new(entry, plan, chunks))
            } else {
                json(200, whole(entry, plan, chunks).await)
            }
        }
        Err(refusal) => {
            entry.end(Ended::Refused);
            refused(refusal)
        }
    }
}

/// The same for a request that faults fall on.
async fn generate_faulty(
    server: Rc<Server>,
    mut entry: Entry,
    script: Box<Script>,
    link: Rc<Link>,
    body: Incoming,
) -> Result<Answer, Broken> {
    entry.ledger.fault.clone_from(&script.logged);
    let arrival = server.clock().now();
    let planned = match script.answer {
        fault::Answer::Stream | fault::Answer::Json => {
            plan(&server, &mut entry, body).await.map(Some)
        }
        _ => read(body).await.map(|_| None),
    };
    if let Some(span) = script.head_after {
        server.clock().sleep_until(arrival + span).await;
    }
    let plan = match (planned, script.answer) {
        (Err(refusal), _) => {
            entry.end(Ended::Refused);
            return Ok(refused(refusal));
        }
        (Ok(Some(plan)), _) => plan,
        (Ok(None), fault::Answer::Status(status)) => {
            entry.end(Ended::Refused);
            return Ok(refused(Refusal::on_purpose(status)));
        }
        (Ok(None), fault::Answer::Redirect(status)) => {
            entry.end(Ended::Refused);
            return Ok(answer::redirect(status, "/v1/chat/completions"));
        }
        (Ok(None), _) => {
            entry.end(Ended::Broken);
            if script.resets {
                link.reset_on_close();
            }
            return Err(Broken);
        }
    };
    let mut chunks = chunks(&server, &entry, &plan);
    if script.answer == fault::Answer::Json || !plan.ask.is_stream {
        return Ok(json(200, whole(entry, plan, chunks).await));
    }
    if script.running_usage {
        chunks.count_always();
    }
    let gzip = script.gzip;
    let body = FaultyBody::new(entry, plan, chunks, script, link);
    Ok(answer::faulty_stream(body, gzip))
}

fn chunks(server: &Server, entry: &Entry, plan: &Plan) -> Chunks {
    Chunks::new(&plan.ask, entry.number(), server.unix_seconds(), &server.settings().model)
}

/// The whole body of a request.
async fn read(body: Incoming) -> Result<Bytes, Refusal> {
    // Said at once where the length is announced; else as soon as it is passed.
    if body.size_hint().lower() > MAX_BODY_BYTES as u64 {
        return Err(Refusal::too_large(MAX_BODY_BYTES));
    }
    let body = Limited::new(body, MAX_BODY_BYTES).collect().await.map_err(|error| {
        if error.is::<LengthLimitError>() {
            Refusal::too_large(MAX_BODY_BYTES)
        } else {
            Refusal::parameter("body", &format!("the body could not be read: {error}"))
        }
    })?;
    Ok(body.to_bytes())
}

/// Reads the request and has the engine take it.
async fn plan(server: &Rc<Server>, entry: &mut Entry, body: Incoming) -> Result<Plan, Refusal> {
    let body = read(body).await?;
    let settings = server.settings();
    let ask = GenerateRequest::read(entry.api(), &body, settings)?;
    entry.ledger.prompt_tok = Some(ask.prompt_tok);
    // Without a longest answer it would fill all the model's length, as no real model's answer does.
    let natural_tok = settings
        .mean_output_tok
        .or(ask.is_open_ended.then_some(NATURAL_MEAN_TOK))
        .filter(|_| !ask.ignore_eos)
        .map(|mean_tok| draw::natural_tok(settings.seed, entry.number(), mean_tok))
        .map(|natural_tok| natural_tok.max(ask.min_tok));
    let (output_tok, finish) = match natural_tok {
        Some(natural_tok) if natural_tok < ask.max_tok => (natural_tok, Finish::Stop),
        _ => (ask.max_tok, Finish::Length),
    };
    let plan = Plan { ask, output_tok, finish };
    entry.admit(&plan).map_err(Refusal::queue_full)?;
    Ok(plan)
}

/// The list of models: one.
fn models(server: &Server) -> Bytes {
    let settings = server.settings();
    let document = serde_json::json!({
        "object": "list",
        "data": [{
            "id": settings.model,
            "object": "model",
            "created": i64::try_from(server.unix_seconds()).unwrap_or(0),
            "owned_by": "underfire",
            "root": settings.model,
            "parent": null,
            "max_model_len": settings.max_model_len_tok,
        }],
    });
    document.to_string().into()
}
