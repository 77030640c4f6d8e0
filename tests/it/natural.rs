//! Answers that end by themselves: no length is asked for, from the workload to the last report.

use serde_json::Value;

use crate::program::{Place, json};
use crate::prompts::{CountingServer, Counts};

const WORKLOAD: &str = "rows = 6\n[arrival]\nprocess = \"constant\"\nrate = 50\n\
    [input]\ndistribution = \"fixed\"\ntokens = 12\n[output]\ndistribution = \"natural\"\n";

fn column(text: &str, name: &str) -> Vec<String> {
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().expect("a header");
    let at = head.iter().position(|own| *own == name).expect("the column");
    lines.map(|cells| cells[at].to_owned()).collect()
}

#[test]
fn plan_trace_and_conversion_keep_that_no_length_is_asked_for() {
    let place = Place::new();
    place.write("w.toml", WORKLOAD);
    let said = place.run(&["run", "w.toml", "--dry-run", "--plan", "p.csv"]).expect(0);
    assert!(said.stdout.contains("72 prompt tokens, completion tokens unknown"), "{said:?}");
    assert_eq!(column(&place.read("p.csv"), "output_tok"), [""; 6]);
    place.run(&["trace", "generate", "w.toml", "t.csv"]).expect(0);
    assert_eq!(column(&place.read("t.csv"), "output_tok"), [""; 6]);
    place.run(&["trace", "convert", "t.csv", "t.jsonl"]).expect(0);
    let rows: Vec<Value> = place.read("t.jsonl").lines().map(json).collect();
    assert!(rows.len() == 6 && rows.iter().all(|row| row["output_tok"].is_null()), "{rows:?}");
    place.run(&["trace", "convert", "t.jsonl", "back.csv"]).expect(0);
    assert_eq!(place.read("back.csv"), place.read("t.csv"));
    let said = place.run(&["trace", "convert", "t.csv", "m", "--to-format", "mooncake"]).expect(2);
    assert!(said.stderr.contains("no completion length"), "{said:?}");
    let figures = json(&place.run(&["trace", "inspect", "t.csv", "--json"]).expect(0).stdout);
    assert_eq!(figures["figures"]["natural_rows"], 6);
    assert_eq!(figures["figures"]["output_tok"], Value::Null);
    // A limit of the user's is a limit.
    place.run(&["run", "t.csv", "--dry-run", "--plan", "q.csv", "--max-output-tok", "9"]).expect(0);
    assert_eq!(column(&place.read("q.csv"), "output_tok"), ["9"; 6]);
    let said = place.run(&["run", "t.csv", "--dry-run", "--api", "completions"]).expect(0);
    assert!(said.stderr.contains("warning: 6 rows ask for no completion length"), "{said:?}");
}

#[test]
fn requests_name_no_limit_and_are_never_too_short() {
    let place = Place::new();
    let server = CountingServer::start(Counts::plain());
    let url = format!("http://127.0.0.1:{}", server.port());
    place.write("t.csv", "at_s,input_tok,output_tok\n0,12,\n0,12,\n0,12,\n0,12,1\n");
    let fixed = ["run", "t.csv", "--url", &url, "--model", "m", "--out", "run", "--no-preflight"];
    let said = place.run(&[&fixed[..], &["--engine", "vllm", "--ignore-eos"]].concat()).expect(0);
    assert!(said.stderr.contains("3 of 4 rows have no `output_tok`"), "{said:?}");
    assert!(said.stdout.contains("output 4 got"), "no sum of what was not asked for: {said:?}");
    let bodies = server.sorted_bytes();
    let (limited, natural): (Vec<_>, Vec<_>) =
        bodies.iter().partition(|body| body.contains("max_tokens"));
    assert_eq!((limited.len(), natural.len()), (1, 3), "{bodies:#?}");
    assert!(limited[0].contains("\"max_tokens\":1,") && limited[0].contains("\"ignore_eos\":true"));
    assert!(natural.iter().all(|body| !body.contains("ignore_eos")), "{natural:#?}");
    let asked: Vec<_> = place.rows("run").iter().map(|row| row.output_tok_asked).collect();
    assert_eq!(asked, [None, None, None, Some(1)]);
    assert_eq!(column(&place.read("run/requests.csv"), "outcome"), ["ok"; 4]);
    let manifest = json(&place.read("run/run.json"));
    assert_eq!(manifest["source"]["plan"]["output_tok"], Value::Null);
    assert_eq!(manifest["source"]["plan"]["natural_rows"], 3);
    let summary = place.read("run/summary.csv");
    place.run(&["report", "run"]).expect(0);
    assert_eq!(place.read("run/summary.csv"), summary);
}

/// One at a time, so that the server numbers the requests as the rows are.
#[test]
fn the_simulated_server_draws_lengths_that_follow_from_its_seed() {
    let place = Place::new();
    place.write("w.toml", WORKLOAD.replace("rows = 6", "rows = 4"));
    let lengths = |out: &str| -> Vec<_> {
        place.run(&["run", "w.toml", "--concurrency", "1", "--out", out]).expect(0);
        let rows = place.rows(out);
        assert!(rows.iter().all(|row| row.finish_reason.as_deref() == Some("stop")), "{rows:#?}");
        rows.iter().map(|row| row.output_tok.expect("a count")).collect()
    };
    let first = lengths("a");
    assert!(first.iter().any(|tok| *tok != first[0]), "{first:?}");
    assert_eq!(lengths("b"), first);
}
