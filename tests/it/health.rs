//! What a run says of its own client, and what it must not blame it for.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::program::{Place, json, small_trace};
use crate::reach::server::{Asked, Server, models, stream};

/// Ten events of 64 in a buffer.
const BUFFER_BYTES: usize = 700;
const PAUSE: Duration = Duration::from_millis(120);

/// Passes on what is written a buffer at a time, as a proxy that buffers does.
struct Buffering(TcpStream);

impl Read for Buffering {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(bytes)
    }
}

impl Write for Buffering {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        #[expect(
            clippy::disallowed_methods,
            reason = "this proxy takes its time, and longer pauses are pauses too"
        )]
        std::thread::sleep(PAUSE);
        self.0.write(&bytes[..bytes.len().min(BUFFER_BYTES)])
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// The line of a metric in a scope, as cells.
fn line(place: &Place, start: &str) -> Vec<String> {
    let summary = place.read("run/summary.csv");
    let line = summary.lines().find(|line| line.starts_with(start)).expect("a line");
    line.split(',').map(str::to_owned).collect()
}

#[test]
fn a_proxy_that_buffers_is_named_and_no_fault_of_the_client() {
    fn answer(asked: &Asked) -> String {
        if asked.is_post() { stream(64, "") } else { models(asked) }
    }
    let server = Server::over(answer, |socket| Some(Box::new(Buffering(socket))));
    let place = Place::new();
    place.write("t.csv", small_trace(3, 10));
    let url = server.url();
    let run = ["run", "t.csv", "--out", "run", "--url", &url, "--no-preflight", "--model", "m-1"];
    // Without stamps nothing depends on when this machine lets the client read.
    place.run(&[&run[..], &["--no-rx-time"]].concat()).expect(0);
    assert_eq!(line(&place, "bursty_share,measured,")[2..6], ["share", "exact", "3", "1"]);
    let manifest = json(&place.read("run/run.json"));
    let client = &manifest["verdicts"]["client"];
    assert!(!client["limited"].to_string().contains("burst"), "{client}");
    let notices = manifest["notices"].to_string();
    let named = notices.contains("100% of the answers came in bursts");
    // A client that was late itself does not point at others.
    assert!(named || client["verdict"] == "limited", "{manifest}");
}

#[test]
#[cfg(target_os = "linux")]
fn the_verdict_s_figures_are_lines_of_the_summary_and_made_again_from_the_files() {
    let place = Place::new();
    place.write("t.csv", small_trace(60, 50));
    place.run(&["run", "t.csv", "--out", "run"]).expect(0);
    let figures = json(&place.read("run/run.json"))["verdicts"]["client"]["figures"].clone();
    let mean = |name: &str| line(&place, &format!("{name},all,"))[5].parse::<f64>().ok();
    for name in ["cpu", "cpu_allowed", "thread_cpu_share", "fds", "fds_limit", "ports_limit"] {
        let told = figures[name].as_f64();
        let shown = mean(&format!("client_{name}"));
        // Shown to six decimals.
        assert!(told.zip(shown).is_some_and(|(a, b)| (a - b).abs() < 1e-6), "{name} in {figures}");
    }
    // Three seconds of beats, in each of one worker or more.
    let beats = line(&place, "client_heartbeat_ms,all,ms,histogram,");
    assert!(beats[4].parse::<u64>().expect("a count") >= 200, "{beats:?}");
    assert_eq!(mean("send_backlog").map(f64::fract), Some(0.0));
    assert_eq!(line(&place, "sent_s,measured,")[4], "60");

    let own = place.read("run/summary.csv");
    std::fs::remove_file(place.path("run/summary.csv")).expect("it is there");
    place.run(&["report", "run"]).expect(0);
    assert_eq!(place.read("run/summary.csv"), own);
    // Of a run that did not come to its end, everything but these.
    std::fs::remove_file(place.path("run/run.json")).expect("it is there");
    place.run(&["report", "run"]).expect(0);
    let rest = place.read("run/summary.csv");
    assert!(own.lines().filter(|line| !line.starts_with("client_")).eq(rest.lines()), "{rest}");
}
