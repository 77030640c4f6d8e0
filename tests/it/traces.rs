//! `underfire trace` and what `run` makes of a trace: figures, faults, other files, other rates.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::program::{Place, json};

/// Rows out of order, with sessions, blocks and a failed row.
const TRACE: &str = "{\"timestamp\": 3000, \"input_length\": 700, \"output_length\": 4, \"hash_ids\": [0, 2], \"session_id\": \"b\"}\n\
    {\"timestamp\": 0, \"input_length\": 40, \"output_length\": 3, \"hash_ids\": [0], \"session_id\": \"a\"}\n\
    {\"timestamp\": 10, \"input_length\": 20, \"output_length\": 0, \"hash_ids\": [9], \"session_id\": \"c\"}\n\
    {\"timestamp\": 20.5, \"input_length\": 1000, \"output_length\": 2, \"hash_ids\": [0, 5], \"session_id\": \"a\"}\n";

#[test]
fn inspect_tells_in_words_and_in_json() {
    let place = Place::new();
    place.write("t.jsonl", TRACE);
    let said = place.run(&["trace", "inspect", "t.jsonl"]).expect(0);
    for part in
        ["t (mooncake trace): 3 rows of 4 (1 left out)", "sessions    2 of 3 rows", "█", "prefixes"]
    {
        assert!(said.stdout.contains(part), "no `{part}` in {}", said.stdout);
    }
    assert!(said.stderr.contains("1 of 4 rows are recorded with output 0"), "{}", said.stderr);
    let found = json(&place.run(&["trace", "inspect", "t.jsonl", "--json"]).expect(0).stdout);
    assert_eq!((&found["rows_read"], &found["figures"]["rows"]), (&4.into(), &3.into()));
    assert_eq!(found["figures"]["arrivals"]["span_s"], 3.0);
    assert_eq!(found["figures"]["input_tok"]["sum"], 1740);
    assert_eq!(found["figures"]["reuse"]["distinct_blocks"], 3);
    let said = place.run(&["trace", "inspect", "t.jsonl", "--format", "azure"]).expect(2);
    assert!(said.stderr.contains("`TIMESTAMP` is missing"), "{}", said.stderr);
}

#[test]
fn lint_lists_every_fault_and_exits_2() {
    let place = Place::new();
    place.write("good.jsonl", TRACE);
    let said = place.run(&["trace", "lint", "good.jsonl"]).expect(0);
    assert!(said.stdout.contains("4 rows of a mooncake trace: no faults"), "{}", said.stdout);
    assert!(said.stdout.contains("3 rows are earlier"), "{}", said.stdout);
    place.write(
        "bad.csv",
        "at_s,input_tok,output_tok,session,turn\n0,1,x,,\n1,2,3,s,2\n2,2,3,s,2\n3,4\n4,5,6,s,3\n",
    );
    let said = place.run(&["trace", "lint", "bad.csv"]).expect(2);
    for part in ["line 2, column `output_tok`", "turn 2 of session `s`", "line 5", "3 faults"] {
        assert!(said.stdout.contains(part), "no `{part}` in {}", said.stdout);
    }
    let said = place.run(&["trace", "lint", "bad.csv", "--most", "1", "--json"]).expect(2);
    let found = json(&said.stdout);
    assert_eq!((&found["fault_count"], &found["rows"]), (&3.into(), &3.into()));
    assert_eq!(found["faults"].as_array().map(Vec::len), Some(1));
    place.run(&["trace", "lint", "nowhere.csv"]).expect(2);
}

#[test]
fn convert_writes_what_it_says_or_nothing() {
    let place = Place::new();
    place.write("t.jsonl", TRACE);
    place.run(&["trace", "convert", "t.jsonl", "c.csv"]).expect(0);
    let text = place.read("c.csv");
    let rows: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(rows[0], "1,0.000000000,40,3,a,1,,,0,512");
    assert_eq!(rows[1], "3,0.020500000,1000,2,a,2,,,0 5,512");
    assert_eq!(rows[2], "0,3.000000000,700,4,b,1,,,0 2,512");
    let said = place.run(&["trace", "convert", "t.jsonl", "c.csv"]).expect(2);
    assert!(said.stderr.contains("--force"), "{}", said.stderr);
    let said = place.run(&["trace", "convert", "t.jsonl", "t.jsonl", "--force"]).expect(2);
    assert!(said.stderr.contains("source itself"), "{}", said.stderr);
    let said = place.run(&["trace", "convert", "t.jsonl", "c.parquet"]).expect(2);
    assert!(said.stderr.contains("--to-format"), "{}", said.stderr);
    // A window, another rate, and back to Mooncake's rows, which read as the same.
    let shaped = ["--from", "10ms", "--rate", "100", "--to-format", "mooncake"];
    let said = place.run(&[&["trace", "convert", "t.jsonl", "-"][..], &shaped].concat()).expect(0);
    assert_eq!(said.stdout.lines().count(), 1, "{}", said.stdout);
    place.run(&["trace", "convert", "c.csv", "m.jsonl", "--to-format", "mooncake"]).expect(0);
    let figures = |name: &str| {
        json(&place.run(&["trace", "inspect", name, "--json"]).expect(0).stdout)["figures"].clone()
    };
    assert_eq!(figures("m.jsonl"), figures("t.jsonl"));
    // What CSV cannot hold leaves no file.
    place.write("w.jsonl", "{\"at_s\":0,\"input_tok\":5,\"output_tok\":5,\"prompt\":\"words\"}\n");
    let said = place.run(&["trace", "convert", "w.jsonl", "w.csv"]).expect(2);
    assert!(said.stderr.contains("words of its own"), "{}", said.stderr);
    assert!(!place.path("w.csv").exists() && !place.path("w.csv.part").exists());
}

#[test]
fn anonymised_rows_keep_shapes_and_nothing_else() {
    let place = Place::new();
    let row = |at: u32, session: &str, blocks: &str| {
        format!(
            "{{\"at_s\":{at},\"input_tok\":900,\"output_tok\":5,\"session\":\"{session}\",\"class\":\"tenant\",\
             \"blocks\":[{blocks}],\"prompt\":\"secret words\"}}\n"
        )
    };
    place
        .write("t.jsonl", row(0, "alice", "7,8") + &row(1, "bob", "7,9") + &row(2, "alice", "7,8"));
    place.run(&["trace", "convert", "t.jsonl", "a.jsonl", "--anonymise"]).expect(0);
    let text = place.read("a.jsonl");
    for word in ["alice", "bob", "tenant", "secret"] {
        assert!(!text.contains(word), "{word} in {text}");
    }
    let rows: Vec<_> = text.lines().map(json).collect();
    assert_eq!(rows[0]["session"], rows[2]["session"]);
    assert_ne!(rows[0]["session"], rows[1]["session"]);
    assert_eq!(rows[0]["blocks"], rows[2]["blocks"]);
    assert_eq!(rows[0]["blocks"][0], rows[1]["blocks"][0]);
    assert_ne!(rows[0]["blocks"][1], rows[1]["blocks"][1]);
    assert_ne!(rows[0]["blocks"][0], 7);
    place.run(&["trace", "convert", "t.jsonl", "b.jsonl", "--anonymise"]).expect(0);
    assert_ne!(place.read("b.jsonl"), text, "another key every time");
}

#[test]
fn a_rate_is_reached_by_each_method_and_kept_in_the_manifest() {
    let place = Place::new();
    let rows = (0..400).map(|row| format!("{}.{:03},5,2,s{},c", row / 20, row % 20 * 10, row / 2));
    let rows: Vec<String> = rows.collect();
    place.write("t.csv", format!("at_s,input_tok,output_tok,session,class\n{}\n", rows.join("\n")));
    let plan = |arguments: &[&str]| {
        let all = [&["run", "t.csv", "--dry-run", "--plan", "p.csv"][..], arguments].concat();
        let said = place.run(&all).expect(0);
        assert!(said.stdout.contains("dispersion, 60 s"), "{}", said.stdout);
        place.read("p.csv")
    };
    let last = |text: &str| {
        let due = text.lines().last().and_then(|line| line.split(',').nth(4));
        due.and_then(|due| due.parse::<f64>().ok()).expect("a due time")
    };
    let faster = plan(&["--rate", "200"]);
    assert!((last(&faster) - 2.0).abs() < 1e-6 && faster.lines().count() == 401);
    let half = plan(&["--rate", "10.42", "--scale", "thin"]);
    let kept = half.lines().count() - 1;
    assert!((150..250).contains(&kept) && kept % 2 == 0, "{kept} rows");
    let twice = plan(&["--rate", "41.7", "--scale", "clone"]);
    let count = twice.lines().count() - 1;
    assert!((795..=805).contains(&count), "{count} rows");
    assert!(twice.contains("\n400,s0~1,"), "copies are numbered on");
    plan(&["--rate", "30", "--scale", "per-client"]);
    let said = place.run(&["run", "t.csv", "--dry-run", "--scale", "thin"]).expect(2);
    assert!(said.stderr.contains("--rate"), "{}", said.stderr);
    let said = place.run(&["run", "t.csv", "--dry-run", "--rate", "2", "--speed", "2"]).expect(2);
    assert!(said.stderr.contains("--speed"), "{}", said.stderr);
    place
        .run(&["run", "t.csv", "--rate", "20", "--scale", "thin", "--limit", "20", "--out", "r"])
        .expect(0);
    let manifest = json(&place.read("r/run.json"));
    assert_eq!(manifest["scale"]["method"], "thin");
    let fidelity = &manifest["fidelity"];
    assert_eq!(fidelity["plan"]["asked"]["rows"], 400);
    assert_eq!(fidelity["plan"]["planned"]["rows"], 20);
    assert_eq!(fidelity["sent"]["rows"], 20);
    assert!(fidelity["plan"]["asked"]["arrivals"]["scales"][0]["idc"].is_number());
}

#[test]
fn rows_without_times_need_a_rate_or_slots() {
    let place = Place::new();
    place.write("l.csv", "num_prefill_tokens,num_decode_tokens\n5,2\n6,2\n7,2\n");
    let said = place.run(&["run", "l.csv", "--dry-run"]).expect(2);
    assert!(
        said.stderr.contains("no times") && said.stderr.contains("--rate R"),
        "{}",
        said.stderr
    );
    place.run(&["run", "l.csv", "--dry-run", "--rate", "5"]).expect(0);
    place.run(&["run", "l.csv", "--dry-run", "--concurrency", "2"]).expect(0);
    let said = place.run(&["run", "l.csv", "--rate", "1000", "--out", "r"]).expect(0);
    assert!(said.stderr.contains("fidelity:"), "{}", said.stderr);
}

/// A server that keeps every body, by its prompt's row.
struct Keeper {
    port: u16,
    bodies: Arc<Mutex<Vec<String>>>,
}

impl Keeper {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let bodies = Arc::<Mutex<Vec<String>>>::default();
        let kept = Arc::clone(&bodies);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || answer(stream, &kept));
            }
        });
        Self { port, bodies }
    }

    /// All bodies of a run, sorted.
    fn run(&self, place: &Place, source: &str) -> Vec<String> {
        self.bodies.lock().expect("no panic").clear();
        let url = format!("http://127.0.0.1:{}", self.port);
        let fixed =
            ["--seed", "5", "--salt", "s", "--model", "m", "--no-preflight", "--speed", "50"];
        place.run(&[&["run", source, "--url", &url, "--quiet"][..], &fixed].concat()).expect(0);
        let mut bodies = self.bodies.lock().expect("no panic").clone();
        bodies.sort();
        bodies
    }
}

fn answer(mut stream: TcpStream, kept: &Mutex<Vec<String>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let mut fields = BTreeMap::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                if line.trim().is_empty() {
                    break;
                }
                continue;
            };
            fields.insert(name.to_ascii_lowercase(), value.to_owned());
        }
        let length = fields.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        if length > 0 {
            kept.lock().ok()?.push(String::from_utf8_lossy(&body).into_owned());
        }
        let events = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\n\
            data: [DONE]\n\n";
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: ";
        write!(stream, "{head}{}\r\n\r\n{events}", events.len()).ok()?;
    }
}

#[test]
fn a_converted_trace_sends_the_same_bodies() {
    let place = Place::new();
    place.write("t.jsonl", TRACE);
    let keeper = Keeper::start();
    let bodies = keeper.run(&place, "t.jsonl");
    assert_eq!(bodies.len(), 3);
    for name in ["c.csv", "c.jsonl"] {
        place.run(&["trace", "convert", "t.jsonl", name]).expect(0);
        assert_eq!(keeper.run(&place, name), bodies, "{name}");
    }
    // A part of it sends a part of them.
    place.run(&["trace", "convert", "t.jsonl", "p.csv", "--from", "1s"]).expect(0);
    let part = keeper.run(&place, "p.csv");
    assert!(part.len() == 1 && bodies.contains(&part[0]), "{part:?}");
}

#[test]
fn a_folder_of_clients_is_a_source_like_any_other() {
    let place = Place::new();
    std::fs::create_dir(place.path("clients")).expect("a folder");
    place.write("clients/chunk-1-trace.csv", "0,0.5,1,Gamma,0.5,1\r\n600,0,0,,0,0");
    place.write(
        "clients/chunk-1-dataset.json",
        "{\"0\": {\"input_tokens\": \"{7: 1.0}\", \"output_tokens\": \"{2: 1.0}\"}}",
    );
    let said = place.run(&["run", "clients", "--dry-run"]).expect(0);
    assert!(
        said.stdout.contains("plan: 300 rows of clients (ServeGen clients)"),
        "{}",
        said.stdout
    );
    assert!(said.stdout.contains("2100 prompt tokens, 600 completion tokens"), "{}", said.stdout);
    place.run(&["trace", "convert", "clients", "c.csv"]).expect(0);
    let found = json(&place.run(&["trace", "inspect", "c.csv", "--json"]).expect(0).stdout);
    assert_eq!(found["figures"]["rows"], 300);
    place.write("clients/chunk-1-trace.csv", "0,0.5,1,Gama,0.5,1");
    let said = place.run(&["run", "clients", "--dry-run"]).expect(2);
    for part in ["chunk-1-trace.csv, line 1", "`pattern`", "`Gama`", "Gamma, Weibull"] {
        assert!(said.stderr.contains(part), "no `{part}` in {}", said.stderr);
    }
}

#[test]
fn rounded_times_are_spread_when_that_is_asked_for() {
    let place = Place::new();
    let rows: String = (0..60)
        .map(|row| row / 20 * 3000)
        .map(|ms| format!("{{\"timestamp\": {ms}, \"input_length\": 5, \"output_length\": 2}}"))
        .collect::<Vec<_>>()
        .join("\n");
    place.write("t.jsonl", rows);
    let dues = |how: &str| {
        let plan = ["run", "t.jsonl", "--dry-run", "--plan", "p.csv", "--dequantise", how];
        let said = place.run(&plan).expect(0);
        let text = place.read("p.csv");
        let dues = text.lines().skip(1).filter_map(|line| line.split(',').nth(4)?.parse().ok());
        (said.stderr, dues.collect::<Vec<f64>>())
    };
    let (said, recorded) = dues("none");
    assert!(said.contains("quantised") && said.contains("--dequantise uniform"), "{said}");
    assert!(recorded.iter().all(|due| due % 3.0 == 0.0));
    let (said, spread) = dues("uniform");
    assert!(said.contains("spread over 3 s"), "{said}");
    assert!(spread.is_sorted() && spread.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(spread.iter().zip(&recorded).all(|(due, at)| (*at..at + 3.0).contains(due)));
    let said = place.run(&["run", "t.jsonl", "--dry-run", "--dequantise", "evenly"]).expect(2);
    assert!(said.stderr.contains("none, uniform"), "{}", said.stderr);
}
