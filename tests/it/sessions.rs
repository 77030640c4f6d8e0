//! Sessions: later turns follow the end of the one before, in virtual time and for real; and a workload
//! sends what its generated trace sends.

use std::collections::HashMap;
use std::convert::Infallible;

use underfire::lab::{self, Setup};
use underfire::record::{Outcome, Row};
use underfire::replay::Mode;
use underfire::schedule::{self, Shape};
use underfire::sim;
use underfire::trace::Request;
use underfire::units::Nanos;

use crate::faults::fixed;
use crate::program::{Place, json};
use crate::prompts::{CountingServer, Counts};

/// Rows `(at_ms, session, turn, think_ms)` of 20 prompt and 5 completion tokens, as a plan.
fn plan(rows: &[(u64, &str, u32, u64)], closed_loop: bool) -> Vec<schedule::Planned> {
    let row = |(row, (at, session, turn, think)): (usize, &(u64, &str, u32, u64))| {
        Ok::<_, Infallible>(Request {
            row: row as u64,
            at: Nanos::from_millis(*at),
            input_tok: 20 * turn,
            output_tok: Some(5),
            session: Some((*session).into()),
            turn: Some(*turn),
            think: (*think > 0).then(|| Nanos::from_millis(*think)),
            ..Request::default()
        })
    };
    let shape = Shape { closed_loop, ..Shape::default() };
    schedule::plan(rows.iter().enumerate().map(row), &shape).map(Result::unwrap).collect()
}

/// When each row was due, in milliseconds, by row.
fn due_ms(rows: &[Row]) -> Vec<Option<u64>> {
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by_key(|row| row.row);
    rows.iter().map(|row| row.scheduled.map(|due| due.0 / 1_000_000)).collect()
}

#[test]
fn a_turn_is_due_when_the_one_before_has_ended_and_been_read() {
    // b starts beside a; a's third turn was recorded far earlier than it can be.
    let rows = [
        (0, "a", 1, 0),
        (100, "b", 1, 0),
        (300, "a", 2, 1_000),
        (301, "a", 3, 250),
        (9_000, "b", 2, 50),
    ];
    let run =
        || lab::replay(plan(&rows, false).into_iter(), &Setup::chat(fixed(&[]))).expect("a run");
    let outcome = run();
    let due = due_ms(&outcome.rows);
    assert_eq!(due, [Some(0), Some(100), Some(1_400), Some(2_050), Some(550)]);
    assert!(
        outcome.rows.iter().all(|row| row.outcome == Outcome::Ok && row.lag == Some(Nanos::ZERO))
    );
    assert_eq!(outcome.rows, run().rows, "the same every time");
    let asked: HashMap<u64, Option<u32>> =
        outcome.rows.iter().map(|row| (row.row, row.input_tok_asked)).collect();
    assert_eq!((asked[&0], asked[&2], asked[&3]), (Some(20), Some(40), Some(60)));
    assert!(outcome.rows.iter().all(|row| row.input_tok == row.input_tok_asked.map(u64::from)));
}

#[test]
fn what_follows_a_failed_turn_is_skipped() {
    // One stream at a time and no queue: b is refused while a is answered.
    let sim = sim::Settings { max_running: 1, max_queued: 0, ..fixed(&[]) };
    let rows = [
        (0, "a", 1, 0),
        (100, "b", 1, 0),
        (300, "a", 2, 1_000),
        (400, "b", 2, 10),
        (500, "b", 3, 10),
    ];
    let outcome = lab::replay(plan(&rows, false).into_iter(), &Setup::chat(sim)).expect("a run");
    let mut seen: Vec<_> = outcome.rows.iter().map(|row| (row.row, row.outcome)).collect();
    seen.sort_unstable();
    let skipped = Outcome::Skipped;
    let refused = (1, Outcome::Http(503));
    assert_eq!(seen, [(0, Outcome::Ok), refused, (2, Outcome::Ok), (3, skipped), (4, skipped)]);
    assert_eq!(due_ms(&outcome.rows)[3..], [None, None], "they never fell due");
}

#[test]
fn a_thinking_session_holds_no_slot() {
    let rows =
        [(0, "a", 1, 0), (0, "a", 2, 1_000), (0, "b", 1, 0), (0, "b", 2, 1_000), (0, "c", 1, 0)];
    let setup = Setup {
        mode: Mode::Closed { slots: 1, ramp: Nanos::ZERO, until: Nanos::MAX },
        ..Setup::chat(fixed(&[]))
    };
    let outcome = lab::replay(plan(&rows, true).into_iter(), &setup).expect("a run");
    // a, b and c go one after the other while a thinks; a is due 1,000 ms after 400.
    let due = due_ms(&outcome.rows);
    assert_eq!(due, [Some(0), Some(1_400), Some(400), Some(1_800), Some(800)]);
}

const SESSIONS: &str = "at_s,input_tok,output_tok,session,turn,think_s\n\
    0,10,3,a,1,\n0,10,3,b,1,\n0.05,25,3,a,2,0.05\n0.10,40,3,a,3,0.05\n0.06,30,3,b,2,0.06\n";

#[test]
fn turns_follow_one_another_in_a_real_run() {
    let place = Place::new();
    place.write("t.csv", SESSIONS);
    let said = place
        .run(&["run", "t.csv", "--out", "run", "--plan", "plan.csv", "--workers", "3"])
        .expect(0);
    assert!(said.stderr.contains("3 later turns, each due a pause after the end"), "{said:?}");
    let due = |line: &str| line.split(',').nth(4).map(ToOwned::to_owned);
    let empty = place
        .read("plan.csv")
        .lines()
        .skip(1)
        .filter(|line| due(line) == Some(String::new()))
        .count();
    assert_eq!(empty, 3, "turns have no due time in a plan");
    let mut sessions: HashMap<String, Vec<Row>> = HashMap::new();
    for row in place.rows("run") {
        assert_eq!(row.outcome, Outcome::Ok);
        sessions
            .entry(row.session.as_deref().expect("a session").to_owned())
            .or_default()
            .push(row);
    }
    for rows in sessions.values_mut() {
        rows.sort_by_key(|row| row.turn);
        for pair in rows.windows(2) {
            let end = pair[0].scheduled.expect("due") + pair[0].close.expect("an end");
            let think =
                Nanos::from_millis(if pair[0].session.as_deref() == Some("a") { 50 } else { 60 });
            assert_eq!(pair[1].scheduled, Some(end + think));
        }
    }
    assert_eq!((sessions["a"].len(), sessions["b"].len()), (3, 2));
}

const WORKLOAD: &str = r#"
rows = 24
[arrival]
process = "gamma"
rate = 200
cv = 2
[output]
distribution = "fixed"
tokens = 3
[request]
temperature = 0.5
top_p = 0.9
[[class]]
name = "talk"
model = "lora-a"
weight = 2
slo = ["ttft_ms.p99<=500"]
[class.request]
top_p = 0.1
[class.input]
distribution = "uniform"
min = 20
max = 40
[class.sessions]
turns = { distribution = "geometric", mean = 3 }
new = { distribution = "fixed", tokens = 7 }
[[class.sessions.think]]
distribution = "fixed"
seconds = 0.01
[[class.prefix.shared]]
tokens = 16
[[class]]
name = "tree"
tenant = "t"
[class.input]
distribution = "lognormal"
mu = 4
sigma = 1
[class.prefix]
reuse = 0.5
age = { distribution = "fixed", requests = 1 }
[class.arrival]
process = "poisson"
rate = 100
[[class]]
name = "words"
[class.input]
distribution = "literal"
text = "Why is the sky blue?"
tokens = 6
"#;

#[test]
fn a_workload_sends_what_its_generated_trace_sends() {
    let place = Place::new();
    place.write("w.toml", WORKLOAD);
    place.run(&["trace", "generate", "w.toml", "t.jsonl", "--seed", "5"]).expect(0);
    place.run(&["trace", "convert", "t.jsonl", "again.jsonl"]).expect(0);
    let bodies = |source: &str, seed: &str, more: &[&str]| {
        let server = CountingServer::start(Counts::plain());
        let url = format!("http://127.0.0.1:{}", server.port());
        let target = ["run", source, "--url", &url, "--model", "m", "--no-preflight"];
        let drawn = ["--seed", seed, "--salt", "s", "--out", "run"];
        place.run(&[&target[..], &drawn, more].concat()).expect(0);
        if source == "w.toml" {
            let manifest = json(&place.read("run/run.json"));
            assert_eq!(manifest["source"]["source"]["slo"]["talk"][0], "ttft_ms.p99<=500");
        }
        std::fs::remove_dir_all(place.path("run")).expect("a run");
        server.sorted_bytes()
    };
    let own = bodies("w.toml", "5", &[]);
    assert_eq!(own.len(), 24);
    assert!(own.iter().any(|body| body.contains("lora-a") && body.contains("\"top_p\":0.1")));
    assert!(own.iter().any(|body| body.contains("sky blue") && body.contains("\"top_p\":0.9")));
    assert_eq!(own, bodies("t.jsonl", "5", &[]));
    assert_eq!(own, bodies("again.jsonl", "5", &["--workers", "3", "--speed", "2"]));
    assert_ne!(own, bodies("w.toml", "6", &[]));
}
