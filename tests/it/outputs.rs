//! What a run writes and prints besides its rows, and when it stops by itself.

use std::fmt::Write;

use underfire::record::Outcome;

use crate::program::{Place, json, small_trace};
use crate::sockets::Sim;

/// A port that nobody listens on: it was free a moment ago.
fn dead_url() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    format!("http://127.0.0.1:{}", listener.local_addr().expect("it").port())
}

/// Lines of a file as cells.
fn cells(text: &str) -> Vec<Vec<&str>> {
    text.lines().skip(1).map(|line| line.split(',').collect()).collect()
}

#[test]
fn report_makes_the_summary_again_to_the_last_byte() {
    let place = Place::new();
    // Two classes, a warm-up that ends in mid-stream, and a drain that cuts.
    let mut trace = "at_s,input_tok,output_tok,class\n".to_owned();
    for row in 0..60 {
        let class = ["chat", "code"][row % 2];
        let (at_s, ms, tok) = (row / 20, row % 20 * 50, 5 + row % 7 * 20);
        writeln!(trace, "{at_s}.{ms:03},10,{tok},{class}").expect("memory");
    }
    place.write("t.csv", trace);
    let run = ["run", "t.csv", "--out", "run", "--warmup", "777ms", "--drain", "300ms"];
    place.run(&run).expect(0);
    let own = place.read("run/summary.csv");
    std::fs::remove_file(place.path("run/summary.csv")).expect("it is there");
    let said = place.run(&["report", "run", "nowhere"]).expect(2);
    assert!(said.stdout.contains("TTFT from due"), "{said:?}");
    assert!(said.stderr.contains("nowhere holds no run"), "{said:?}");
    assert_eq!(place.read("run/summary.csv"), own);
    assert!(own.contains("\noutput_tok_s,class:chat,"));
    assert!(own.contains("\nclient_cpu,all,cores,exact,,0."), "{own}");
}

#[test]
fn the_timeline_adds_up_to_the_rows() {
    let place = Place::new();
    place.write("t.csv", small_trace(60, 50));
    place.run(&["run", "t.csv", "--out", "run", "--chunks"]).expect(0);
    let text = place.read("run/timeline.csv");
    assert!(
        text.starts_with("t_s,utc,due,sent,done,failed,in_flight,output_tok,chunks,ttft_p50_ms,")
    );
    let seconds = cells(&text);
    let sum = |column: usize| -> u64 {
        seconds.iter().map(|second| second[column].parse::<u64>().expect("a count")).sum()
    };
    assert_eq!([2, 3, 4, 5].map(sum), [60, 60, 60, 0]);
    assert_eq!([7, 8].map(sum), [240, 240]);
    assert_eq!(seconds.last().expect("a second")[6], "0", "nothing is left in flight");
    for (t_s, second) in seconds.iter().enumerate() {
        assert_eq!(second[0], t_s.to_string());
        assert!(second[1].ends_with('Z') && second[13].parse::<f64>().expect("a share") >= 0.0);
    }
    assert_eq!(seconds[1][2], "20");

    let chunks = place.read("run/chunks.csv");
    assert_eq!(cells(&chunks).len(), 240);
    assert!(cells(&chunks).iter().all(|cell| cell[3..] == ["1", "content"]));
    let rows = place.rows("run");
    let first = cells(&chunks).iter().find(|cell| cell[0] == "7").expect("row 7")[1].to_owned();
    let due = rows[7].scheduled.expect("a due time");
    assert_eq!(first, format!("{:.6}", (due + rows[7].ttft.expect("a token")).as_millis_f64()));
    let files = json(&place.read("run/run.json"))["files"].to_string();
    for name in ["requests.csv", "intervals.csv", "timeline.csv", "chunks.csv", "summary.csv"] {
        assert!(files.contains(name), "{files}");
    }
}

#[test]
fn all_rows_failed_is_twenty_rows_a_summary_with_empty_cells_and_exit_4() {
    let place = Place::new();
    place.write("t.csv", small_trace(20, 10));
    place.run(&["run", "t.csv", "--url", &dead_url(), "--model", "m", "--out", "run"]).expect(4);
    let rows = place.rows("run");
    assert_eq!(rows.len(), 20);
    assert!(rows.iter().all(|row| row.outcome == Outcome::Connect && row.ttft.is_none()));
    let summary = place.read("run/summary.csv");
    assert!(summary.contains("\nttft_ms,measured,ms,exact,0,,,,,,,,,,,,,,,,,0\n"), "{summary}");
    assert!(summary.contains("\nerror_rate,measured,share,exact,20,1,"), "{summary}");
    assert!(!summary.to_lowercase().contains("nan") && !summary.contains("inf"));
    let own = place.read("run/summary.csv");
    place.run(&["report", "run"]).expect(0);
    assert_eq!(place.read("run/summary.csv"), own);
}

#[test]
fn refused_connections_in_a_row_stop_the_sending() {
    let place = Place::new();
    place.write("t.csv", small_trace(2_000, 2));
    let url = dead_url();
    let run =
        ["run", "t.csv", "--url", &url, "--model", "m", "--max-refused", "10", "--out", "run"];
    let said = place.run(&run).expect(4);
    assert!(said.stderr.contains("stopping early: --max-refused 10"), "{said:?}");
    assert!(said.stdout.contains("stopped early: --max-refused 10"), "{said:?}");
    let rows = place.rows("run").len();
    assert!((10..2_000).contains(&rows), "rows not yet due are not written: {rows}");
    let manifest = json(&place.read("run/run.json"));
    assert!(manifest["stopped"].as_str().expect("said").contains("--max-refused 10"));
    assert_eq!(manifest["interrupted"], false);
}

#[test]
fn too_many_errors_stop_the_sending_and_streams_in_flight_are_followed() {
    let place = Place::new();
    place.write("t.csv", small_trace(2_000, 5).replace(",10,4", ",10,40"));
    // From the first second on, every other request is refused.
    let sim = Sim::start(&place, &["--fault", "status=503@rate=50%@time=1s-1000s"]);
    let run = ["run", "t.csv", "--url", &sim.url, "--no-preflight", "--out", "run"];
    let said = place.run(&[&run[..], &["--abort-on", "error_rate>20%/500ms"]].concat()).expect(1);
    sim.end(&place);
    assert!(said.stderr.contains("stopping early: --abort-on 'error_rate>20%/500ms'"), "{said:?}");
    let rows = place.rows("run");
    assert!(!rows.is_empty() && rows.len() < 2_000, "{}", rows.len());
    let fine = |outcome| matches!(outcome, Outcome::Ok | Outcome::Http(_) | Outcome::Unsent);
    assert!(rows.iter().all(|row| fine(row.outcome)), "none was cut");
    let stopped = json(&place.read("run/run.json"))["stopped"].clone();
    assert!(stopped.as_str().expect("said").contains("of the"), "{stopped}");
    let said = place.run(&["run", "t.csv", "--abort-on", "error_rate>5"]).expect(2);
    assert!(said.stderr.contains("error_rate>5%/30s"), "{said:?}");
}

#[test]
fn data_goes_to_stdout_and_quiet_says_nothing() {
    let place = Place::new();
    place.write("t.csv", small_trace(20, 5));
    let labels = ["--label", "gpu=h100", "--label", "note=a=b"];
    let run = [&["run", "t.csv", "--out", "one", "--json"][..], &labels].concat();
    let said = place.run(&run).expect(0);
    let summary = json(&said.stdout);
    assert_eq!(summary["outcomes"]["ok"], 20);
    let lines = summary["summary"].as_array().expect("lines");
    let ttft = lines.iter().find(|line| line["metric"] == "ttft_ms").expect("a line");
    assert!(ttft["p50"].as_f64().is_some() && ttft["p99"].is_null());
    assert!(said.stderr.contains("TTFT from due"), "{said:?}");
    let manifest = json(&place.read("one/run.json"));
    assert_eq!(manifest["labels"], serde_json::json!({ "gpu": "h100", "note": "a=b" }));
    let said = place.run(&["run", "t.csv", "--out", "two", "--quiet"]).expect(0);
    assert_eq!((said.stdout.as_str(), said.stderr.as_str()), ("", ""));
    place.run(&["run", "t.csv", "--label", "nonsense"]).expect(2);
}

#[test]
fn the_kernel_tells_how_long_arrivals_lay_unless_it_is_not_asked() {
    let place = Place::new();
    place.write("t.csv", small_trace(20, 5));
    place.run(&["run", "t.csv", "--out", "run", "--chunks"]).expect(0);
    place.run(&["run", "t.csv", "--out", "own", "--chunks", "--no-rx-time"]).expect(0);
    let stamped = |run: &str| place.rows(run).iter().filter(|row| row.rx_delay.is_some()).count();
    let expected = if cfg!(target_os = "linux") { 20 } else { 0 };
    assert_eq!((stamped("run"), stamped("own")), (expected, 0));
    let chunks = |run: &str| {
        let text = place.read(&format!("{run}/chunks.csv"));
        text.lines().skip(1).filter(|line| line.split(',').nth(2) != Some("")).count()
    };
    assert_eq!((chunks("run"), chunks("own")), (4 * expected, 0));
    let n = |run: &str| {
        let summary = place.read(&format!("{run}/summary.csv"));
        let line = summary.lines().find(|line| line.starts_with("rx_delay_ms,all,"));
        line.and_then(|line| line.split(',').nth(4)?.parse::<usize>().ok())
    };
    assert_eq!((n("run"), n("own")), (Some(expected), Some(0)));
    assert!(place.read("run/summary.csv").contains("shared_read_share,all,"));
}
