//! Faults that need real sockets, and our own shortages: the real program against `underfire sim`.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use underfire::record::{Outcome, Row};
use underfire::sim::truth::{self, TruthRow};

use crate::program::{Place, small_trace};

/// A simulated server in a process of its own.
pub(crate) struct Sim {
    child: Child,
    pub(crate) url: String,
}

impl Sim {
    /// Its log goes into `truth.csv` of the place.
    pub(crate) fn start(place: &Place, arguments: &[&str]) -> Self {
        let all = [&["sim", "--port", "0", "--truth", "truth.csv"], arguments].concat();
        let mut child = place
            .command(&all)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let url = line.trim().strip_prefix("listening on ").expect("an address").to_owned();
        Self { child, url }
    }

    /// Ends it; what it really did.
    pub(crate) fn end(mut self, place: &Place) -> Vec<TruthRow> {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a pid"));
        kill(pid, Signal::SIGTERM).expect("it runs");
        self.child.wait().expect("an end");
        truth::read(place.read("truth.csv").as_bytes()).expect("whole lines")
    }
}

/// A test that fails, or forgets it, leaves no server behind.
impl Drop for Sim {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends `t.csv` to a server with these faults: the rows, and the server's log.
fn sent(place: &Place, faults: &[&str], arguments: &[&str]) -> (Vec<Row>, Vec<TruthRow>) {
    let faults: Vec<&str> = faults.iter().flat_map(|fault| ["--fault", *fault]).collect();
    let sim = Sim::start(place, &faults);
    let run =
        ["run", "t.csv", "--url", &sim.url, "--out", "run", "--salt", "none", "--no-preflight"];
    let said = place.run(&[&run, arguments].concat());
    assert!(matches!(said.code, Some(0 | 4)), "{said:?}");
    (place.rows("run"), sim.end(place))
}

#[test]
fn connections_that_break_are_told_by_how_far_they_got() {
    let place = Place::new();
    place.write("t.csv", small_trace(8, 150));
    let faults = [
        "hangup=reset@rows=0",
        "hangup=close@rows=1",
        "cut=reset,2@rows=2",
        "cut=close,2@rows=3",
        "cut=end,2@rows=4",
        "utf8@rows=5",
        "bytes@rows=6",
        "open=bare@rows=7",
    ];
    let (rows, truth) = sent(&place, &faults, &[]);
    assert_eq!((rows.len(), truth.len()), (8, 8), "one POST a row");
    let said = |row: &Row| (row.outcome.to_string(), row.chunks, row.http_status);
    let expect = |outcome: &str, chunks, status| (outcome.to_owned(), chunks, status);
    assert_eq!(said(&rows[0]), expect("connect", None, None), "{rows:#?}");
    assert_eq!(said(&rows[1]), expect("connect", None, None));
    for row in &rows[2..5] {
        assert_eq!(said(row), expect("truncated", Some(2), Some(200)), "{row:?}");
    }
    for row in &rows[5..] {
        assert_eq!(said(row), expect("ok", Some(4), Some(200)), "{row:?}");
    }
    let error = |row: usize| rows[row].error.as_deref().unwrap_or("");
    for row in [0, 2] {
        let told = error(row).matches("reset by peer").count();
        assert_eq!(told, 1, "the cause, once: {}", error(row));
    }
    assert!(error(1).contains("closed before a response"), "{}", error(1));
    assert!(error(3).contains("connection broke"), "{}", error(3));
    assert!(error(4).contains("neither a finish_reason nor [DONE]"), "{}", error(4));
}

#[test]
fn a_refused_connection_is_one_row_and_no_second_try() {
    let place = Place::new();
    // At once, so that each has a connection of its own.
    place.write("t.csv", small_trace(10, 0));
    let (rows, truth) = sent(&place, &["refuse@rows=3,7"], &["--model", "sim"]);
    let refused = rows.iter().filter(|row| row.outcome == Outcome::Connect).count();
    let ok = rows.iter().filter(|row| row.outcome == Outcome::Ok).count();
    assert_eq!((refused, ok), (2, 8), "{rows:#?}");
    let at_the_door = truth.iter().filter(|row| row.fault == "refuse").count();
    assert_eq!((at_the_door, truth.len()), (2, 10));
}

/// A row whose connection is closed as it is sent is lost, and those that were on their way with it; from
/// then on it is known, however late a busy server closes.
#[test]
fn idle_connections_closed_by_the_server_cost_next_to_nothing() {
    for idle in ["idle=20ms", "idle=100ms", "idle=5s"] {
        let place = Place::new();
        place.write("t.csv", small_trace(40, 100));
        let (rows, truth) = sent(&place, &[idle], &[]);
        let failed: Vec<_> = rows.iter().filter(|row| row.outcome != Outcome::Ok).collect();
        assert_eq!(rows.len(), 40);
        assert!(truth.len() >= 40 - failed.len(), "under {idle}: what was answered arrived");
        assert!(failed.len() <= 8, "under {idle}: {failed:#?}");
        for row in failed {
            let error = row.error.as_deref().unwrap_or("");
            assert!(error.contains("closed the idle connection"), "{row:?}");
        }
    }
}

#[test]
fn a_server_that_closes_after_every_answer_costs_only_what_was_in_flight_before_that_is_known() {
    // It says nothing of closing, and the closed loop asks again at once.
    let place = Place::new();
    place.write("t.csv", small_trace(400, 0));
    let closed = ["--concurrency", "4", "--workers", "1"];
    let (rows, truth) = sent(&place, &["idle=0s"], &closed);
    let failed: Vec<_> = rows.iter().filter(|row| row.outcome != Outcome::Ok).collect();
    assert_eq!(rows.len(), 400);
    assert!(failed.len() <= 4, "{failed:#?}");
    assert!(truth.len() >= 400 - failed.len(), "what was answered arrived");
}

#[test]
fn three_hundred_streams_are_open_at_once() {
    let place = Place::new();
    place.write("t.csv", small_trace(300, 0));
    let (rows, truth) = sent(&place, &["headers=3s"], &[]);
    assert_eq!((rows.len(), truth.len()), (300, 300));
    let last_arrival = truth.iter().map(|row| row.arrival).max().expect("rows");
    let first_token = truth.iter().filter_map(|row| row.first).min().expect("tokens");
    assert!(last_arrival < first_token, "all were there before anything came back");
    assert!(rows.iter().all(|row| row.outcome == Outcome::Ok && row.ttft >= row.ttft_send));
}

#[test]
fn our_own_shortage_of_descriptors_is_not_the_servers_fault() {
    let place = Place::new();
    place.write("t.csv", small_trace(100, 0));
    let sim = Sim::start(&place, &["--fault", "headers=1s"]);
    // The limit is the shell's to lower; the program raises it as far as it may.
    let run = format!(
        "ulimit -n 60 && exec '{}' run t.csv --url {} --out run --no-preflight",
        env!("CARGO_BIN_EXE_underfire"),
        sim.url
    );
    let output = std::process::Command::new("sh")
        .args(["-c", &run])
        .current_dir(place.path("."))
        .output()
        .expect("a shell");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("60 file descriptors"), "warned beforehand: {stderr}");
    let rows = place.rows("run");
    let count = |outcome| rows.iter().filter(|row| row.outcome == outcome).count();
    let (ours, ok) = (count(Outcome::Client), count(Outcome::Ok));
    assert_eq!((rows.len(), ours + ok), (100, 100), "{rows:#?}");
    assert!(ours >= 40 && ok >= 20, "{ours} of ours, {ok} answered");
    assert_eq!(sim.end(&place).len(), ok, "those of ours never reached the server");
}

#[test]
fn a_server_that_accepts_nothing_is_a_timeout_with_its_own_words() {
    use socket2::{Domain, Socket, Type};
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let any: std::net::SocketAddr = ([127, 0, 0, 1], 0).into();
    listener.bind(&any.into()).expect("a port");
    listener.listen(0).expect("a listener");
    let address = listener.local_addr().expect("it").as_socket().expect("an address");
    // Its queue is filled, and nobody takes anything out of it.
    let brief = std::time::Duration::from_millis(300);
    let mut filled = Vec::new();
    while let Ok(stream) = std::net::TcpStream::connect_timeout(&address, brief) {
        filled.push(stream);
        assert!(filled.len() < 100, "a queue of none");
    }
    let place = Place::new();
    place.write("t.csv", small_trace(3, 10));
    let url = format!("http://{address}");
    let run = ["run", "t.csv", "--url", &url, "--model", "m", "--out", "run"];
    place.run(&[&run[..], &["--connect-timeout", "250ms"]].concat()).expect(4);
    for row in place.rows("run") {
        assert_eq!((row.outcome, row.http_status), (Outcome::Timeout, None));
        let error = row.error.expect("words");
        assert!(error.contains("no connection within 0.25 s (--connect-timeout)"), "{error}");
    }
}
