//! The client's own error, measured: what is counted, said and left behind. How large it is depends on
//! the machine and is nobody's assertion.

use std::io::Read;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::program::{Place, Said, json, small_trace};

/// The program with a folder of its own for what it leaves behind.
fn command(place: &Place, arguments: &[&str]) -> Command {
    let scratch = place.path("scratch");
    std::fs::create_dir_all(&scratch).expect("a writable folder");
    let mut command = place.command(arguments);
    command.env("TMPDIR", scratch);
    command
}

fn said(place: &Place, arguments: &[&str]) -> Said {
    Said::of(&command(place, arguments).output().expect("the program starts"))
}

/// Files that were left behind.
fn left(place: &Place) -> usize {
    std::fs::read_dir(place.path("scratch")).expect("the folder").count()
}

#[test]
fn every_request_of_the_load_is_held_against_the_truth() {
    let place = Place::new();
    let load =
        ["calibrate", "--rate", "100", "--streams", "50", "--gap", "20ms", "--duration", "1s"];
    let result =
        json(&said(&place, &[&load[..], &["--workers", "2", "--json"]].concat()).expect(0).stdout);
    // 50 to open the streams, 100 that arrive.
    let count = |key: &str| result[key].as_u64().expect(key);
    assert_eq!([count("requests"), count("ok")], [150, 150]);
    assert_eq!([count("missing"), count("miscounted")], [0, 0]);
    assert_eq!(result["load"]["workers"], 2);
    for key in ["arrival_ms", "ttft_ms", "e2e_ms"] {
        let error = &result["error"][key];
        assert_eq!(error["n"], 100, "{key}");
        assert!(error["p50"].as_f64() <= error["max"].as_f64(), "{key}: {error}");
        assert_eq!(error["p99"], Value::Null, "100 values bound no p99");
    }
    for key in ["gap_p50_ms", "gap_p99_ms", "gap_max_ms", "decode_tok_s_percent"] {
        assert!(result["error"][key]["n"].as_u64() > Some(50), "{key}");
    }
    for key in ["cpu_us_per_event", "client_cpu", "server_cpu", "client_rss_max_mb", "event_s"] {
        assert!(result[key].as_f64() > Some(0.0), "{key}");
    }
    assert!(result["meaning"].as_str().expect("words").contains("a reported TTFT is within"));
    assert_eq!(left(&place), 0);
}

#[test]
fn the_page_tells_of_every_error_and_what_it_means() {
    let place = Place::new();
    let page =
        said(&place, &["calibrate", "--streams", "20", "--duration", "500ms", "--out", "kept"]);
    let page = page.expect(0).stdout;
    for words in [
        "40 arrivals/s, 20 streams with a token every 50 ms for 0.5 s",
        "40 · 40 ok · 0 not in the server's log · 0 miscounted",
        "\narrival − due",
        "\nTTFT",
        "\nE2E",
        "\nchunk gap, p99",
        "\ndecode tok/s, %",
        "\nlag, as reported",
        "µs of CPU per token event",
        "On this machine, at this load",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert_eq!(place.rows("kept").len(), 40);
    assert_eq!(place.read("kept/truth.csv").lines().count(), 41);
    assert_eq!(json(&place.read("kept/calibration.json"))["ok"], 40);
    // The streams' memory can be read second by second.
    let timeline = place.read("kept/timeline.csv");
    let header: Vec<&str> = timeline.lines().next().expect("a header").split(',').collect();
    let column = header.iter().position(|name| *name == "client_rss_mb").expect("the column");
    let first = timeline.lines().nth(1).expect("a second").split(',').nth(column);
    assert!(first.and_then(|mb| mb.parse::<f64>().ok()).is_some_and(|mb| mb > 0.0), "{timeline}");
    // Nobody overwrites what was kept.
    let again = said(&place, &["calibrate", "--streams", "20", "--out", "kept"]).expect(2);
    assert!(again.stderr.contains("already holds a run"), "{again:?}");
}

#[test]
fn the_most_that_is_held_is_looked_for_in_steps() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("scratch")).expect("a writable folder");
    // Room for 250 streams, and not for the 500 of the next step.
    let line = format!(
        "ulimit -n 400 && exec '{}' calibrate --duration 500ms --json",
        env!("CARGO_BIN_EXE_underfire")
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).env("TMPDIR", place.path("scratch")).stdin(Stdio::null());
    let said = Said::of(&shell.output().expect("a shell")).expect(0);
    let steps: Vec<&str> =
        said.stderr.lines().filter(|line| line.contains("errors up to")).collect();
    assert!((1..=2).contains(&steps.len()), "one step, tried twice at the most: {said:?}");
    assert!(steps[0].starts_with("125 arrivals/s, 250 streams"), "{steps:?}");
    let result = json(&said.stdout);
    assert_eq!((&result["load"]["streams"], &result["ok"]), (&250.into(), &result["requests"]));
    assert_eq!(left(&place), 0);
}

#[test]
fn an_interrupted_calibration_says_so_and_cleans_up() {
    let place = Place::new();
    let mut child = command(&place, &["calibrate", "--streams", "10", "--duration", "1h"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let started = || std::fs::read_dir(place.path("scratch")).expect("the folder").flatten();
    let rows = |path: std::path::PathBuf| std::fs::read_to_string(path.join("requests.csv"));
    while !started().any(|entry| rows(entry.path()).is_ok_and(|text| text.lines().count() > 5)) {
        std::thread::yield_now();
    }
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid"));
    kill(pid, Signal::SIGINT).expect("it runs");
    let mut page = String::new();
    child.stdout.take().expect("piped").read_to_string(&mut page).expect("text");
    assert_eq!(child.wait().expect("an end").code(), Some(130));
    assert!(page.contains("interrupted: these figures are of a part of the load"), "{page}");
    assert_eq!(left(&place), 0);
}

#[test]
fn loads_that_cannot_be_are_refused_before_anything_is_sent() {
    let place = Place::new();
    for (arguments, words) in [
        (&["--rate", "0"][..], "arrivals a second"),
        (&["--gap", "0s"], "above zero"),
        (&["--streams", "0"], "0 is not in"),
        (&["--rate", "0.1", "--duration", "5s"], "no request would arrive"),
        (&["--streams", "1000000", "--gap", "1us", "--duration", "1h"], "an answer would have"),
    ] {
        let said = said(&place, &[&["calibrate"], arguments].concat()).expect(2);
        assert!(said.stderr.contains(words), "{said:?}");
        assert!(said.stdout.is_empty(), "{said:?}");
    }
}

#[test]
fn a_calibrated_run_shows_its_own_error_beside_its_figures() {
    let place = Place::new();
    place.write("t.csv", small_trace(40, 10));
    let shown = said(&place, &["run", "t.csv", "--calibrate", "--out", "run"]).expect(0).stdout;
    let head = shown.lines().find(|line| line.starts_with("latency, ms")).expect("a table");
    assert!(head.ends_with('±'), "{head}");
    assert!(shown.contains("note: ± is the client's own error on this machine"), "{shown}");
    assert_eq!(place.rows("run").len(), 40, "its requests are in no result");
    let calibration = &json(&place.read("run/run.json"))["calibration"];
    assert!(calibration["ttft_ms"].as_f64() > Some(0.0), "{calibration}");
    let details = &calibration["details"];
    assert_eq!(details["requests"], details["ok"]);
    // And again from the files.
    let again = said(&place, &["report", "run"]).expect(0).stdout;
    let table = |text: &str| -> Vec<String> {
        let lines = text.lines().skip_while(|line| !line.starts_with("latency, ms"));
        lines.take_while(|line| !line.starts_with("lag")).map(str::to_owned).collect()
    };
    assert_eq!(table(&again), table(&shown));
    assert_eq!(left(&place), 0);
}

#[test]
fn a_closed_loop_is_calibrated_and_a_stream_says_why_not() {
    let place = Place::new();
    place.write("t.csv", small_trace(12, 0));
    let closed = ["run", "t.csv", "--concurrency", "3", "--calibrate", "--json", "--out", "closed"];
    let result = json(&said(&place, &closed).expect(0).stdout);
    assert_eq!(result["calibration"]["details"]["load"]["streams"], 3);

    let stdin = std::fs::File::open(place.path("t.csv")).expect("the trace");
    let output =
        command(&place, &["run", "-", "--calibrate", "--out", "stream"]).stdin(stdin).output();
    let said = Said::of(&output.expect("the program starts")).expect(0);
    assert!(said.stderr.contains("not calibrated: a stream's rate is not known ahead"), "{said:?}");
    assert_eq!(json(&place.read("stream/run.json"))["calibration"], Value::Null);
}
