//! Real runs of the real program, against the simulated server.

use std::io::Write;
use std::process::{Child, ChildStdin, Stdio};

use underfire::record::{Outcome, Row, TokenSource};
use underfire::units::Nanos;

use crate::program::{Place, Said, json, small_trace};

#[test]
fn one_row_per_trace_row_with_the_traces_tokens() {
    let place = Place::new();
    place.write("t.csv", small_trace(60, 10));
    let said = place.run(&["run", "t.csv", "--out", "run", "--seed", "3"]).expect(0);
    assert!(
        said.stderr.contains("built-in simulated server"),
        "no doubt about who answered: {said:?}"
    );
    let rows = place.rows("run");
    assert_eq!(rows.iter().map(|row| row.row).collect::<Vec<_>>(), (0..60).collect::<Vec<_>>());
    for row in &rows {
        assert_eq!(row.outcome, Outcome::Ok, "{row:?}");
        assert_eq!((row.input_tok, row.output_tok, row.chunks), (Some(10), Some(4), Some(4)));
        assert_eq!(row.token_source, Some(TokenSource::Usage));
        assert_eq!(row.scheduled, Some(Nanos::from_millis(row.row * 10)));
        assert!(row.ttft <= row.e2e && row.e2e <= row.close && row.ttft_send <= row.ttft);
        assert_eq!(row.connect.is_some(), row.conn_reused == Some(false));
    }
    let manifest = json(&place.read("run/run.json"));
    assert_eq!(manifest["interrupted"], false);
    assert_eq!(manifest["target"]["kind"], "simulated");
    assert!(place.read("run/summary.csv").starts_with("metric,scope,unit,basis,n,mean"));
    assert_eq!(place.read("run/truth.csv").lines().count(), 61, "the server's own log");
}

#[test]
fn the_closed_loop_keeps_its_number_in_flight() {
    let place = Place::new();
    place.write("t.csv", small_trace(30, 1000));
    place.run(&["run", "t.csv", "--out", "run", "--concurrency", "3"]).expect(0);
    let rows = place.rows("run");
    assert_eq!(rows.len(), 30);
    assert!(rows.iter().all(|row| row.outcome == Outcome::Ok), "{rows:#?}");
    let span = |row: &Row| {
        let due = row.scheduled.expect("a due time");
        (due, due + row.close.expect("an end"))
    };
    let spans: Vec<_> = rows.iter().map(span).collect();
    for (start, _) in &spans {
        let open = spans.iter().filter(|(from, to)| from <= start && start < to).count();
        assert!(open <= 3, "{open} in flight at {start}");
    }
    assert_eq!(spans.iter().filter(|(due, _)| *due == Nanos::ZERO).count(), 3);
}

/// Starts a run with `text` on a stdin that stays open.
fn fed(place: &Place, text: &str) -> (Child, ChildStdin) {
    let mut child = place
        .command(&["run", "-", "--out", "run"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(text.as_bytes()).expect("a reader");
    (child, stdin)
}

/// Runs with `text` on stdin.
fn piped(place: &Place, text: &str) -> Said {
    let (child, stdin) = fed(place, text);
    drop(stdin);
    Said::of(&child.wait_with_output().expect("an end"))
}

#[test]
fn a_trace_can_come_through_a_pipe() {
    let place = Place::new();
    piped(&place, &small_trace(20, 5)).expect(0);
    assert_eq!(place.rows("run").len(), 20);
}

#[test]
fn a_pipe_that_stays_open_is_sent_as_it_comes_and_does_not_hold_an_interrupt() {
    let place = Place::new();
    let (child, stdin) = fed(&place, &small_trace(3, 5));
    wait_for_lines(&place, 4);
    interrupt(&child);
    Said::of(&child.wait_with_output().expect("an end")).expect(130);
    drop(stdin);
    assert_eq!(place.rows("run").len(), 3);
}

/// Until the run has written so many lines of `requests.csv`.
fn wait_for_lines(place: &Place, lines: usize) {
    let requests = place.path("run/requests.csv");
    while std::fs::read_to_string(&requests).map_or(0, |text| text.lines().count()) < lines {
        std::thread::yield_now();
    }
}

fn interrupt(child: &Child) {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("a pid"));
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("it runs");
}

#[test]
fn a_bad_row_on_stdin_ends_the_sending_and_keeps_what_was_sent() {
    let place = Place::new();
    let said = piped(&place, &(small_trace(20, 5) + "oops\n")).expect(2);
    assert!(said.stderr.contains("line 22"), "{said:?}");
    assert_eq!(place.rows("run").len(), 20, "rows in flight are followed");
}

#[test]
fn warmup_rows_are_recorded_and_not_measured() {
    let place = Place::new();
    place.write("t.csv", small_trace(40, 10));
    place.run(&["run", "t.csv", "--out", "run", "--warmup", "200ms"]).expect(0);
    let requests = place.read("run/requests.csv");
    assert_eq!(requests.matches(",warmup,").count(), 20);
    assert_eq!(requests.matches(",measured,").count(), 20);
    let summary = place.read("run/summary.csv");
    let n = |scope: &str| {
        let mut lines = summary.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let line = lines.find(|cells| cells[0] == "ttft_ms" && cells[1] == scope);
        line.expect("a line")[4].to_owned()
    };
    assert_eq!((n("measured"), n("all")), ("20".to_owned(), "40".to_owned()));
}

#[test]
fn an_unreachable_server_is_one_message_and_no_rows() {
    let place = Place::new();
    place.write("t.csv", small_trace(5, 10));
    // A port that was free a moment ago: nobody listens.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr()
        .expect("it")
        .port();
    let url = format!("http://127.0.0.1:{port}");
    let said = place.run(&["run", "t.csv", "--url", &url]).expect(4);
    assert!(said.stderr.contains("cannot connect"), "{said:?}");
    assert!(!place.path("results").exists(), "no rows, no folder");
    // With a model named, nothing is asked beforehand: every row is sent, and recorded.
    place.run(&["run", "t.csv", "--url", &url, "--model", "m", "--out", "run"]).expect(4);
    let rows = place.rows("run");
    assert_eq!(rows.len(), 5);
    for row in rows {
        assert_eq!((row.outcome, row.ttft, row.output_tok), (Outcome::Connect, None, None));
        assert!(row.error.is_some());
    }
    assert!(!place.read("run/summary.csv").to_lowercase().contains("nan"));
}

#[test]
fn an_interrupt_keeps_every_row_once_and_marks_the_run() {
    let place = Place::new();
    // Rows 5 ms apart for 50 s, each with an answer of half a second or more.
    let trace = small_trace(10_000, 5).replace(",10,4", ",10,40");
    place.write("t.csv", trace);
    let child = place
        .command(&["run", "t.csv", "--out", "run"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // Until rows have been written, the run is not under way.
    wait_for_lines(&place, 20);
    interrupt(&child);
    Said::of(&child.wait_with_output().expect("an end")).expect(130);
    let rows = place.rows("run");
    let numbers: Vec<u64> = rows.iter().map(|row| row.row).collect();
    assert_eq!(numbers, (0..rows.len() as u64).collect::<Vec<_>>(), "each due row once, no others");
    assert!(
        rows.iter().any(|row| row.outcome == Outcome::Incomplete),
        "streams in flight were cut"
    );
    assert!(rows.len() < 10_000);
    assert_eq!(json(&place.read("run/run.json"))["interrupted"], true);
}

#[test]
fn a_drain_limit_cuts_streams_as_incomplete() {
    let place = Place::new();
    // 2,000 tokens take many seconds; the run ends right after the last row is due.
    place.write("t.csv", "at_s,input_tok,output_tok\n0,5,2\n0.5,5,2000\n");
    place.run(&["run", "t.csv", "--out", "run", "--drain", "300ms"]).expect(0);
    let rows = place.rows("run");
    assert_eq!(rows[0].outcome, Outcome::Ok);
    assert_eq!(rows[1].outcome, Outcome::Incomplete);
    assert!(rows[1].ttft.is_some(), "what was seen before the cut stands");
}
