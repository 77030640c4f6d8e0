//! What each path answers.
//!
//! Absent: time, and the bytes of an answer.

use std::rc::Rc;

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, SERVER};
use hyper::{Method, Request, Response, StatusCode};

use super::chunk::{Chunks, Finish};
use super::draw;
use super::refusal::Refusal;
use super::request::{Api, Ask};
use super::server::Server;
use super::stream::{Entry, Plan, TokenBody, whole};
use super::truth::Ended;

/// The longest request body that is read: about 16 million words.
const MAX_BODY_BYTES: usize = 64 << 20;

type Answer = Response<Either<Full<Bytes>, TokenBody>>;

/// Answers one request.
pub(super) async fn answer(server: Rc<Server>, request: Request<Incoming>) -> Answer {
    let (api, wanted) = match request.uri().path() {
        "/v1/chat/completions" => (Some(Api::Chat), Method::POST),
        "/v1/completions" => (Some(Api::Completions), Method::POST),
        "/v1/models" | "/health" => (None, Method::GET),
        _ => return refused(Refusal::no_route()),
    };
    if *request.method() != wanted {
        let allow = if wanted == Method::POST { "POST" } else { "GET" };
        return refused(Refusal::wrong_method(allow));
    }
    match api {
        Some(api) => generate(server, api, request.into_body()).await,
        None if request.uri().path() == "/health" => head(200, Bytes::new()),
        None => json(200, models(&server)),
    }
}

async fn generate(server: Rc<Server>, api: Api, body: Incoming) -> Answer {
    let (number, ledger) = server.arrive();
    let mut entry = Entry::new(server.clone(), api, number, ledger);
    match plan(&server, &mut entry, api, body).await {
        Ok(plan) => {
            let created_s = server.unix_seconds();
            let chunks = Chunks::new(&plan.ask, number, created_s, &server.settings().model);
            if plan.ask.is_stream {
                stream(TokenBody::new(entry, plan, chunks))
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

/// Reads the request and has the engine take it.
async fn plan(
    server: &Rc<Server>,
    entry: &mut Entry,
    api: Api,
    body: Incoming,
) -> Result<Plan, Refusal> {
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
    let settings = server.settings();
    let ask = Ask::read(api, &body.to_bytes(), settings)?;
    entry.ledger.prompt_tok = Some(ask.prompt_tok);
    let natural_tok = settings
        .mean_output_tok
        .filter(|_| !ask.ignore_eos)
        .map(|mean_tok| draw::natural_tok(settings.seed, entry.number(), mean_tok))
        .map(|natural_tok| natural_tok.max(ask.min_tok));
    let (output_tok, finish) = match natural_tok {
        Some(natural_tok) if natural_tok < ask.max_tok => (natural_tok, Finish::Stop),
        _ => (ask.max_tok, Finish::Length),
    };
    let plan = Plan { ask, output_tok, finish };
    server.admit(entry, &plan).map_err(Refusal::queue_full)?;
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

fn stream(body: TokenBody) -> Answer {
    let mut answer = Response::new(Either::Right(body));
    let event_stream = HeaderValue::from_static("text/event-stream; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, event_stream);
    named(answer)
}

fn json(status: u16, body: impl Into<Bytes>) -> Answer {
    let mut answer = head(status, body.into());
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

fn refused(refusal: Refusal) -> Answer {
    let allow = refusal.allow;
    let mut answer = json(refusal.status, refusal.body);
    if let Some(allow) = allow {
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    }
    answer
}

fn head(status: u16, body: Bytes) -> Answer {
    let mut answer = Response::new(Either::Left(Full::new(body)));
    *answer.status_mut() = StatusCode::from_u16(status).expect("a status of this file");
    named(answer)
}

fn named(mut answer: Answer) -> Answer {
    answer.headers_mut().insert(SERVER, HeaderValue::from_static("underfire-sim"));
    answer
}
