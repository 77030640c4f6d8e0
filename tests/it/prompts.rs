//! What requests say: lengths by the server's own count, prompts from files, keys from everywhere. The
//! server here counts as it is told to and keeps every body.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use underfire::prompt::CANDIDATES;
use underfire::record::Row;

use crate::program::{Place, Said};
use crate::tokenizer::file_with;

/// How the server counts.
#[derive(Clone, Copy)]
pub(crate) struct Counts {
    /// Tokens that its chat template adds.
    template_tok: usize,
    /// Longest word that is one token; longer ones are two.
    word_bytes: usize,
    /// Has `/tokenize`.
    tokenizes: bool,
    /// Takes token ids.
    takes_ids: bool,
}

pub(crate) struct CountingServer {
    port: u16,
    bodies: Arc<Mutex<Vec<(String, Value)>>>,
    /// The same to the byte.
    raw: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Counts {
    /// A word is a token, and that is all.
    pub(crate) fn plain() -> Self {
        Self { template_tok: 0, word_bytes: usize::MAX, tokenizes: false, takes_ids: false }
    }
}

impl CountingServer {
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn start(counts: Counts) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let bodies = Arc::<Mutex<Vec<(String, Value)>>>::default();
        let raw = Arc::<Mutex<Vec<Vec<u8>>>>::default();
        let (kept, kept_raw) = (bodies.clone(), raw.clone());
        // Ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, raw) = (kept.clone(), kept_raw.clone());
                std::thread::spawn(move || serve(stream, counts, &kept, &raw));
            }
        });
        Self { port, bodies, raw }
    }

    /// All bodies that came, to the byte, in order of their bytes.
    pub(crate) fn sorted_bytes(&self) -> Vec<String> {
        let mut raw = self.raw.lock().expect("no panic").clone();
        raw.retain(|body| !body.is_empty());
        raw.sort_unstable();
        raw.iter().map(|body| String::from_utf8_lossy(body).into_owned()).collect()
    }

    fn run(&self, place: &Place, more: &[&str]) -> Said {
        let url = format!("http://127.0.0.1:{}", self.port);
        let fixed = ["run", "t.csv", "--url", &url, "--model", "m", "--out", "run"];
        place.run(&[&fixed, more].concat())
    }

    /// Bodies of requests for a completion, in order of arrival, but for the preflight's, which alone
    /// asks for 32 tokens.
    fn asked(&self) -> Vec<Value> {
        let bodies = self.bodies.lock().expect("no panic");
        let asked = bodies.iter().filter(|(path, _)| path.ends_with("completions"));
        let asked = asked.filter(|(_, body)| body["max_tokens"] != json!(32));
        asked.map(|(_, body)| body.clone()).collect()
    }
}

fn serve(
    mut stream: TcpStream,
    counts: Counts,
    kept: &Mutex<Vec<(String, Value)>>,
    raw: &Mutex<Vec<Vec<u8>>>,
) {
    let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
    let (mut head, mut length) = (String::new(), 0);
    while reader.read_line(&mut head).is_ok_and(|n| n > 2) {
        let line = head.lines().last().unwrap_or_default().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
    }
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    raw.lock().expect("no panic").push(body.clone());
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (status, kind, answer) = answer(&path, &body, counts);
    kept.lock().expect("no panic").push((path, body));
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        answer.len()
    );
    let _ = stream.write_all((head + &answer).as_bytes());
}

fn answer(path: &str, body: &Value, counts: Counts) -> (u16, &'static str, String) {
    let refused = |status| (status, "application/json", "{\"error\":\"no\"}".to_owned());
    let input_tok = match path {
        "/tokenize" if counts.tokenizes => {
            let ids = cut(body["prompt"].as_str().expect("text"), counts.word_bytes);
            return (200, "application/json", json!({ "tokens": ids }).to_string());
        }
        "/v1/chat/completions" => {
            let messages = body["messages"].as_array().expect("messages").iter();
            let text = |message: &Value| message["content"].as_str().expect("text").to_owned();
            let own: usize = messages.map(|m| cut(&text(m), counts.word_bytes).len()).sum();
            own + counts.template_tok
        }
        "/v1/completions" => match &body["prompt"] {
            Value::String(text) => cut(text, counts.word_bytes).len(),
            Value::Array(ids) if counts.takes_ids => ids.len(),
            _ => return refused(400),
        },
        _ => return refused(404),
    };
    let chunk = if path.contains("chat") {
        json!({ "choices": [{ "delta": { "content": "a" }, "finish_reason": "length" }] })
    } else {
        json!({ "choices": [{ "text": "a", "finish_reason": "length" }] })
    };
    let usage =
        json!({ "choices": [], "usage": { "prompt_tokens": input_tok, "completion_tokens": 1 } });
    (200, "text/event-stream", format!("data: {chunk}\n\ndata: {usage}\n\ndata: [DONE]\n\n"))
}

/// Token ids: a word has one or two, with the line break in front of it one more. A first word that
/// has no space before it is another token than the same word later, and of more than three bytes two.
fn cut(text: &str, word_bytes: usize) -> Vec<u32> {
    let mut ids = Vec::new();
    for (at, word) in text.split(' ').filter(|word| !word.is_empty()).enumerate() {
        let (broken, bare) = word.rsplit_once('\n').map_or((false, word), |(the, bare)| {
            ids.push(id(the));
            (true, bare)
        });
        if broken {
            ids.push(1);
        }
        let starts = broken || (at == 0 && !text.starts_with(' '));
        let limit = if starts { 3 } else { word_bytes };
        ids.push(id(bare));
        if bare.len() > limit {
            ids.push(2);
        }
    }
    ids
}

fn id(word: &str) -> u32 {
    10 + word.bytes().fold(0, |sum, byte| (sum * 31 + u32::from(byte)) % 50_000)
}

/// Rows of 15, 40 and 300 tokens, half of them with shared blocks.
fn place() -> Place {
    use std::fmt::Write as _;
    let place = Place::new();
    let mut text = "at_s,input_tok,output_tok,blocks,block_tok\n".to_owned();
    for row in 0..12 {
        let (tok, blocks) = ([15, 40, 300][row % 3], if row % 2 == 0 { "5 6" } else { "" });
        let blocks = if tok > 15 { blocks } else { "" };
        writeln!(text, "0.{row:02},{tok},1,{blocks},8").expect("memory");
    }
    place.write("t.csv", text);
    place
}

fn lengths(place: &Place) -> Vec<(Option<u32>, Option<u64>)> {
    place.rows("run").iter().map(|row: &Row| (row.input_tok_asked, row.input_tok)).collect()
}

#[track_caller]
fn assert_all_exact(place: &Place) {
    let lengths = lengths(place);
    assert_eq!(lengths.len(), 12, "probes are no rows");
    let exact = |(asked, got): &(Option<u32>, Option<u64>)| asked.map(u64::from) == *got;
    assert!(lengths.iter().all(exact), "{lengths:?}");
}

const SERVER: Counts =
    Counts { template_tok: 11, word_bytes: 99, tokenizes: true, takes_ids: true };

/// vllm#17408, sglang#15732: the server counts what was asked for, whatever its template adds and
/// however few words are one token there.
#[test]
fn every_prompt_is_as_long_as_asked_by_the_servers_count() {
    for (counts, probes) in [
        (SERVER, 3),
        (Counts { word_bytes: 5, ..SERVER }, 3),
        (Counts { tokenizes: false, ..SERVER }, 3),
    ] {
        let (place, server) = (place(), CountingServer::start(counts));
        let said = server.run(&place, &[]).expect(0);
        assert_all_exact(&place);
        assert_eq!(server.asked().len(), 12 + probes);
        let words = format!("{probes} requests");
        assert!(said.stderr.contains(&words) && said.stderr.contains("before t0"), "{said:?}");
        assert!(place.read("run/run.json").contains("before t0"));
    }
}

#[test]
fn without_a_tokenizer_words_that_hold_are_found_in_groups() {
    let (place, server) =
        (place(), CountingServer::start(Counts { word_bytes: 8, tokenizes: false, ..SERVER }));
    server.run(&place, &[]).expect(0);
    assert_all_exact(&place);
}

/// A server that cannot be asked, and whose words of one token are in no group together.
#[test]
fn words_are_checked_by_the_model_s_own_file() {
    let counts = Counts { word_bytes: 4, tokenizes: false, ..SERVER };
    let short: Vec<&str> =
        CANDIDATES.into_iter().chain(["the"]).filter(|word| word.len() <= 4).collect();
    let run = |words: &[&str], more: &[&str]| {
        let (place, server) = (place(), CountingServer::start(counts));
        place.write("tokenizer.json", file_with(words));
        let said = server.run(&place, &[&["--tokenizer", "tokenizer.json"], more].concat());
        let posts = server.asked().len() - 12;
        (place, posts, said.expect(0))
    };
    let (exact, posts, said) = run(&short, &[]);
    assert_all_exact(&exact);
    assert_eq!(posts, 3, "{said:?}");
    assert!(said.stderr.contains("words by tokenizer.json"), "{said:?}");
    // Not to be probed: the words are right, and what the template adds is not known; nor is it what a
    // first word without a space is, which here is one token more.
    let (apart, posts, said) = run(&short, &["--engine", "openai"]);
    assert_eq!(posts, 0, "{said:?}");
    let more = |(asked, got): &(Option<u32>, Option<u64>)| {
        got.unwrap_or(0) - u64::from(asked.unwrap_or(0)) == SERVER.template_tok as u64 + 1
    };
    assert!(lengths(&apart).iter().all(more), "{:?}", lengths(&apart));
    // Another model's file.
    let (_, _, said) = run(&[&CANDIDATES[..], &["the"]].concat(), &[]);
    assert!(said.stderr.contains("is it this model's?"), "{said:?}");
}

#[test]
fn completions_get_token_ids_where_they_are_taken() {
    for (counts, ids) in [
        (SERVER, true),
        (Counts { tokenizes: false, ..SERVER }, true),
        (Counts { takes_ids: false, ..SERVER }, false),
        (Counts { takes_ids: false, tokenizes: false, ..SERVER }, false),
    ] {
        let (place, server) = (place(), CountingServer::start(counts));
        server.run(&place, &["--api", "completions"]).expect(0);
        assert_all_exact(&place);
        let rows = &server.asked()[..];
        let last = &rows[rows.len() - 1]["prompt"];
        assert_eq!(last.is_array(), ids, "{last}");
    }
}

#[test]
fn rows_below_the_least_are_counted() {
    let (place, server) = (place(), CountingServer::start(Counts { template_tok: 20, ..SERVER }));
    let said = server.run(&place, &[]).expect(0);
    let short = lengths(&place).iter().filter(|(_, got)| *got == Some(21)).count();
    assert_eq!(short, 4);
    assert!(said.stdout.contains("4 rows asked for fewer prompt tokens"), "{said:?}");
}

/// aiperf#339: what is asked for reaches the server, with its type, and the nearest word wins.
#[test]
fn keys_come_from_the_workload_and_extra_and_the_file() {
    let (place, server) = (Place::new(), CountingServer::start(SERVER));
    place.write(
        "w.toml",
        "rows = 3\n[request]\ntemperature = 0.5\ntop_p = 1.0\nseed = 7\nstop = [\"a\"]\n\
         [request.nested]\nx = 1\ny = true\n[arrival]\nprocess = \"constant\"\nrate = 100\n\
         [input]\ndistribution = \"fixed\"\ntokens = 30\n[output]\ndistribution = \"fixed\"\ntokens = 2\n",
    );
    place.write(
        "p.jsonl",
        "{\"prompt\":\"apricot\"}\n{\"prompt\":\"second\",\"body\":{\"seed\":null}}\n",
    );
    let url = format!("http://127.0.0.1:{}", server.port);
    let extra = r#"{"top_p":0.9,"nested":{"y":false,"z":"é"}}"#;
    let run = ["run", "w.toml", "--url", &url, "--model", "m", "--out", "run"];
    place.run(&[&run[..], &["--prompts", "p.jsonl", "--extra", extra]].concat()).expect(0);
    let mut bodies = server.asked();
    assert_eq!(bodies.len(), 3, "prompts of a file need no calibration");
    let content = |body: &Value| body["messages"][0]["content"].as_str().expect("text").to_owned();
    bodies.sort_by_key(content);
    assert_eq!(bodies.iter().map(content).collect::<Vec<_>>(), ["apricot", "apricot", "second"]);
    for body in &bodies {
        assert_eq!((&body["temperature"], &body["top_p"]), (&json!(0.5), &json!(0.9)));
        assert_eq!(body["nested"], json!({ "x": 1, "y": false, "z": "é" }));
        assert_eq!((&body["stop"], &body["max_tokens"]), (&json!(["a"]), &json!(2)));
    }
    assert_eq!((&bodies[0]["seed"], &bodies[2]["seed"]), (&json!(7), &Value::Null));
    assert!(place.rows("run").iter().all(|row| row.input_tok_asked.is_none()));
    let manifest = place.read("run/run.json");
    assert!(!manifest.contains("apricot") && !manifest.contains('é'), "no prompt: {manifest}");
}

#[test]
fn bad_content_is_told_before_anything_is_sent() {
    let (place, server) = (place(), CountingServer::start(SERVER));
    place.write("p.jsonl", "{\"prompt\":\"a\"}\n{\"prompt\":7}\n");
    place.write("m.jsonl", "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}\n");
    for (options, part) in [
        (&["--prompts", "p.jsonl"][..], "p.jsonl, line 2, key `prompt`"),
        (&["--prompts", "none.jsonl"], "none.jsonl"),
        (&["--prompts", "m.jsonl", "--api", "completions"], "--api chat"),
        (&["--prompt", ""], "--prompt"),
        (&["--prompt", "a", "--prompts", "p.jsonl"], "cannot be used with"),
        (&["--extra", "[1]"], "--extra is no JSON object"),
    ] {
        let said = server.run(&place, options).expect(2);
        assert!(said.stderr.contains(part), "{said:?}");
        assert!(!place.path("run").exists(), "no run, no folder: {options:?}");
    }
    assert!(server.asked().is_empty());
}

#[test]
fn texts_are_saved_and_priming_is_in_no_result() {
    let (place, server) = (place(), CountingServer::start(SERVER));
    let options = ["--save-text", "texts.jsonl", "--prime", "5"];
    let said = server.run(&place, &options).expect(0);
    assert_eq!(place.rows("run").len(), 12);
    assert_eq!(server.asked().len(), 12 + 3 + 5);
    let priming: Vec<Value> =
        server.asked().into_iter().filter(|body| body["max_tokens"] == json!(16)).collect();
    assert_eq!(priming.len(), 5);
    assert!(priming.windows(2).all(|two| two[0]["messages"] != two[1]["messages"]), "all differ");
    assert!(said.stderr.contains("5 requests to prime the server, 5 ok"), "{said:?}");
    let mut rows: Vec<u64> = place
        .read("texts.jsonl")
        .lines()
        .map(|line| {
            let line: Value = serde_json::from_str(line).expect("JSON");
            assert_eq!((&line["text"], &line["reasoning"]), (&json!("a"), &json!("")));
            assert_eq!(line["outcome"], json!("ok"));
            line["row"].as_u64().expect("a row")
        })
        .collect();
    rows.sort_unstable();
    assert_eq!(rows, (0..12).collect::<Vec<_>>());
    let asked = server.asked().len();
    let again = server.run(&place, &options).expect(2);
    assert!(again.stderr.contains("texts.jsonl exists already"), "it is kept: {again:?}");
    assert_eq!(server.asked().len(), asked, "nothing was sent");
}

/// vllm#52884, vllm#9080: the same seed and salt give the same bytes; another salt others from the start.
#[test]
fn a_row_is_the_same_bytes_for_the_same_seed_and_salt() {
    let (place, server) = (place(), CountingServer::start(SERVER));
    let bodies = |salt: &str, concurrency: &str, out: &str| {
        let before = server.asked().len();
        let url = format!("http://127.0.0.1:{}", server.port);
        let run = ["run", "t.csv", "--url", &url, "--model", "m", "--salt", salt, "--out", out];
        place.run(&[&run[..], &["--concurrency", concurrency]].concat()).expect(0);
        let mut bodies: Vec<String> =
            server.asked()[before + 3..].iter().map(Value::to_string).collect();
        bodies.sort_unstable();
        bodies
    };
    let first = bodies("x", "1", "a");
    assert_eq!(first, bodies("x", "7", "b"), "whatever the concurrency");
    let other = bodies("y", "1", "c");
    assert!(first.iter().all(|body| !other.contains(body)));
}
