//! The whole server over in-memory pipes in virtual time: every time is exact.

mod client;
mod concurrent;
mod load;
mod metrics;
mod port;

use std::cell::RefCell;
use std::future::Future;
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;

use client::{Client, Reply};

use super::server::Server;
use super::settings::Settings;
use super::truth::{self, Ended, TruthRow};
use crate::clock::{Clock, VirtualTime};
use crate::units::Nanos;

const CHAT: &str = "/v1/chat/completions";
const COMPLETIONS: &str = "/v1/completions";

/// No jitter, 200 ms to the first token, 50 ms between tokens, whatever the load.
fn exact() -> Settings {
    Settings {
        prefill_base: ms(200),
        prefill_per_tok: Nanos::ZERO,
        step_base: ms(50),
        step_per_stream: Nanos::ZERO,
        jitter: 0.0,
        ..Settings::default()
    }
}

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

/// A truth log in memory.
#[derive(Clone, Default)]
pub(super) struct Log(pub(super) Rc<RefCell<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A server in virtual time.
#[derive(Clone)]
struct World {
    server: Rc<Server>,
    clock: Clock,
    log: Log,
}

impl World {
    fn connect(&self) -> Client {
        let (near, far) = tokio::io::duplex(64 << 10);
        tokio::task::spawn_local(self.server.clone().serve_connection(far));
        Client::new(near, self.clock.clone())
    }

    async fn sleep_until(&self, at: Nanos) {
        self.clock.sleep_until(at).await;
    }

    fn truth(&self) -> Vec<TruthRow> {
        self.server.finish().expect("memory does not fail");
        truth::read(self.log.0.borrow().as_slice()).expect("its own log")
    }
}

/// Runs `test` against a server of these settings, at virtual time zero.
fn with<T, F: Future<Output = T>>(settings: Settings, test: impl FnOnce(World) -> F) -> T {
    settings.check().expect("possible settings");
    let time = Arc::new(VirtualTime::default());
    let start = || {
        let (clock, log) = (Clock::of_virtual(&time), Log::default());
        let truth: Box<dyn Write> = Box::new(log.clone());
        let server = Server::new(settings, clock.clone(), Some(truth));
        test(World { server, clock, log })
    };
    time.run(start).expect("a runtime").expect("nothing stalls")
}

/// A chat request of three words for this many tokens.
fn chat(max_tokens: u64, rest: &str) -> String {
    format!(
        r#"{{"model":"sim","messages":[{{"role":"user","content":"one two three"}}],"max_tokens":{max_tokens}{rest}}}"#
    )
}

fn streamed(max_tokens: u64) -> String {
    chat(max_tokens, r#","stream":true"#)
}

#[test]
fn the_first_token_takes_200_ms_and_the_others_50() {
    let (reply, truth) = with(exact(), |world| async move {
        world.sleep_until(ms(1_000)).await;
        let reply = world.connect().post(CHAT, &streamed(4)).await;
        (reply, world.truth())
    });
    assert_eq!(reply.status, 200);
    assert!(reply.head.contains("content-type: text/event-stream; charset=utf-8"));
    assert_eq!(reply.head_at, ms(1_000), "the head does not wait for the first token");
    assert_eq!(reply.token_times(), [1_200, 1_250, 1_300, 1_350].map(ms));
    let chunks = reply.chunks();
    assert_eq!(chunks[0].1["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(chunks[0].0, ms(1_200), "the role comes with the first token");
    assert_eq!(chunks.len(), 5, "no usage unless asked for");
    assert_eq!(chunks[4].1["choices"][0]["finish_reason"], "length");
    assert_eq!(reply.events()[5].0, ms(1_350), "[DONE] comes with the last token");
    let expected = TruthRow {
        request_id: "chatcmpl-sim-0".to_owned(),
        arrival: ms(1_000),
        first: Some(ms(1_200)),
        last: Some(ms(1_350)),
        output_tok: 4,
        prompt_tok: Some(3),
        gap_p50: Some(ms(50)),
        gap_p99: Some(ms(50)),
        gap_max: Some(ms(50)),
        queued: Some(Nanos::ZERO),
        ended: Ended::Done,
        fault: String::new(),
    };
    assert_eq!(truth, [expected]);
}

#[test]
fn usage_comes_at_the_end_or_all_along() {
    with(exact(), |world| async move {
        let mut client = world.connect();
        let asked = r#","stream":true,"stream_options":{"include_usage":true}"#;
        let chunks = client.post(CHAT, &chat(2, asked)).await.chunks();
        assert_eq!(chunks.len(), 4);
        assert_eq!(chunks[3].1["choices"], serde_json::json!([]));
        assert_eq!(chunks[3].1["usage"]["prompt_tokens"], 3);
        assert_eq!(chunks[3].1["usage"]["completion_tokens"], 2);
        assert_eq!(chunks[3].1["usage"]["total_tokens"], 5);
        assert!(chunks[1].1.get("usage").is_none());

        let asked = r#"{"prompt":[7,8,9,10],"max_tokens":3,"stream":true,"stream_options":
            {"include_usage":true,"continuous_usage_stats":true}}"#;
        let chunks = client.post(COMPLETIONS, asked).await.chunks();
        let counts = |key: &str| -> Vec<u64> {
            chunks.iter().filter_map(|(_, chunk)| chunk["usage"][key].as_u64()).collect()
        };
        assert_eq!(counts("completion_tokens"), [1, 2, 3, 3]);
        assert_eq!(counts("prompt_tokens"), [4, 4, 4, 4]);
    });
}

#[test]
fn an_answer_that_is_not_streamed_comes_whole() {
    let (replies, truth) = with(exact(), |world| async move {
        let mut client = world.connect();
        let replies = [
            client.post(CHAT, &chat(3, "")).await,
            client.post(COMPLETIONS, r#"{"prompt":["a b"]}"#).await,
        ];
        (replies, world.truth())
    });
    let answer = replies[0].json();
    assert_eq!(answer["object"], "chat.completion");
    let text = answer["choices"][0]["message"]["content"].as_str().expect("text");
    assert_eq!(text.split_whitespace().count(), 3, "a word is a token");
    assert_eq!(answer["usage"]["completion_tokens"], 3);
    let answer = replies[1].json();
    assert_eq!(answer["object"], "text_completion");
    assert_eq!(answer["usage"]["completion_tokens"], 16, "the default of completions");
    assert_eq!(answer["usage"]["prompt_tokens"], 2);
    assert_eq!((truth[0].first, truth[0].last), (Some(ms(300)), Some(ms(300))));
    assert_eq!((truth[0].output_tok, truth[0].gap_max), (3, None));
    assert_eq!(truth[1].arrival, ms(300));
    assert_eq!(truth[1].last, Some(ms(300 + 200 + 15 * 50)));
}

#[test]
fn a_natural_end_can_be_ignored_or_put_off() {
    let settings = Settings { mean_output_tok: Some(2.0), ..exact() };
    let lengths = with(settings, |world| async move {
        let mut client = world.connect();
        let mut lengths = Vec::new();
        for rest in ["", r#","ignore_eos":true"#, r#","min_tokens":60"#] {
            let reply = client.post(CHAT, &chat(64, rest)).await.json();
            let finish = reply["choices"][0]["finish_reason"].as_str().expect("one").to_owned();
            lengths.push((reply["usage"]["completion_tokens"].as_u64().expect("a count"), finish));
        }
        lengths
    });
    assert!(lengths[0].0 < 20 && lengths[0].1 == "stop", "{lengths:?}");
    assert_eq!(lengths[1], (64, "length".to_owned()));
    assert_eq!(lengths[2], (60, "stop".to_owned()));
}

/// A chat that names no longest answer gets one of a length of its own, the same under the same seed.
#[test]
fn a_chat_without_a_limit_ends_by_itself() {
    let answers = |seed: u64| {
        let settings = Settings { max_model_len_tok: 20_000, seed, ..exact() };
        with(settings, |world| async move {
            let mut client = world.connect();
            let mut answers = Vec::new();
            for rest in ["", "", r#","ignore_eos":true"#] {
                let asked = format!(r#"{{"messages":[{{"content":"one two three"}}]{rest}}}"#);
                let reply = client.post(CHAT, &asked).await.json();
                let finish = reply["choices"][0]["finish_reason"].as_str().expect("one");
                let tok = reply["usage"]["completion_tokens"].as_u64().expect("a count");
                answers.push((tok, finish.to_owned()));
            }
            answers
        })
    };
    let own = answers(3);
    assert!(own[..2].iter().all(|(tok, finish)| *tok < 5_000 && finish == "stop"), "{own:?}");
    assert_ne!(own[0].0, own[1].0);
    assert_eq!(own[2], (19_997, "length".to_owned()));
    assert_eq!(answers(3), own);
    assert_ne!(answers(4)[0].0, own[0].0);
}

#[test]
fn what_is_no_generation_is_answered_too() {
    let check = |reply: &Reply, status: u16, part: &str| {
        assert_eq!(reply.status, status, "{reply:?}");
        assert!(reply.body.contains(part), "{reply:?}");
    };
    let truth = with(exact(), |world| async move {
        let mut client = world.connect();
        let models = client.get("/v1/models").await.json();
        assert_eq!(models["data"][0]["id"], "sim");
        assert_eq!(models["data"][0]["max_model_len"], 262_144);
        check(&client.get("/health").await, 200, "");
        check(&client.get("/v1/nope").await, 404, r#"{"detail":"Not Found"}"#);
        let reply = client.get(CHAT).await;
        check(&reply, 405, r#"{"detail":"Method Not Allowed"}"#);
        assert!(reply.head.contains("allow: POST"));
        check(&client.post("/health", "{}").await, 405, "Method Not Allowed");
        check(&client.post(CHAT, "{\"messages\":[{").await, 400, r#""code":400"#);
        let other = r#"{"model":"other","prompt":"a"}"#;
        check(&client.post(COMPLETIONS, other).await, 404, "The model `other` does not exist.");
        let long = format!(r#"{{"prompt":[{}1]}}"#, "1,".repeat(262_144));
        check(&client.post(COMPLETIONS, &long).await, 400, "maximum context length is 262144");
        assert_eq!(world.clock.now(), Nanos::ZERO, "none of it takes time");
        world.truth()
    });
    assert_eq!(truth.len(), 3);
    assert!(truth.iter().all(|row| row.ended == Ended::Refused && row.output_tok == 0));
    assert_eq!(truth[2].prompt_tok, None);
}

#[test]
fn a_body_beyond_the_limit_is_refused_unread() {
    with(exact(), |world| async move {
        let mut client = world.connect();
        let length = (64 << 20) + 1;
        client
            .write(&format!(
                "POST {CHAT} HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n{{"
            ))
            .await;
        let reply = client.reply().await;
        assert_eq!(reply.status, 413);
        assert!(reply.body.contains("67108864 bytes"), "{}", reply.body);
    });
}

#[test]
fn the_truth_log_is_flushed_a_second_after_a_row() {
    with(exact(), |world| async move {
        world.connect().post(CHAT, &streamed(1)).await;
        let rows = || truth::read(world.log.0.borrow().as_slice()).expect("whole lines").len();
        world.sleep_until(ms(1_199)).await;
        assert_eq!(rows(), 0, "{:?}", world.log.0);
        world.sleep_until(ms(1_201)).await;
        assert_eq!(rows(), 1);
    });
}
