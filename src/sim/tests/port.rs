//! The real server on a real port: that it starts, stops and says why not. No time is asserted here.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::thread::JoinHandle;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use tokio::sync::oneshot;

use super::super::run::run_blocking;
use super::super::settings::Settings;
use super::super::truth::{self, Ended, TruthRow};
use super::COMPLETIONS;

/// A server on a thread of its own, which ends with the CPU seconds it took.
pub(super) struct Running {
    pub(super) address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<f64>,
    folder: tempfile::TempDir,
}

impl Running {
    pub(super) fn start(settings: Settings) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("truth.csv");
        let (ready, address) = std::sync::mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let any: SocketAddr = ([127, 0, 0, 1], 0).into();
            let on_ready = |address| ready.send(address).expect("the test waits");
            let until = async {
                let _ = stopped.await;
            };
            run_blocking(settings, any, Some(path), on_ready, until).expect("a server");
            let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("this thread");
            let (user, system) = (usage.user_time(), usage.system_time());
            (user.num_microseconds() + system.num_microseconds()) as f64 / 1e6
        });
        Self { address: address.recv().expect("a port"), stop, thread, folder }
    }

    /// The CPU seconds it took, and its truth log.
    pub(super) fn stop(self) -> (f64, Vec<TruthRow>) {
        self.stop.send(()).expect("the server waits");
        let cpu_s = self.thread.join().expect("no panic");
        let log = std::fs::File::open(self.folder.path().join("truth.csv")).expect("a log");
        (cpu_s, truth::read(log).expect("whole lines"))
    }
}

/// A streamed request of one prompt token, on a connection of its own.
pub(super) fn request(output_tok: u64) -> String {
    let body =
        format!(r#"{{"prompt":"a","max_tokens":{output_tok},"stream":true,"ignore_eos":true}}"#);
    let length = body.len();
    format!(
        "POST {COMPLETIONS} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
}

/// Sends `text` and reads until `mark` or the end.
fn exchange(address: SocketAddr, text: &str, mark: &str) -> (TcpStream, String) {
    let mut socket = TcpStream::connect(address).expect("a connection");
    socket.write_all(text.as_bytes()).expect("sent");
    let mut seen = String::new();
    let mut byte = [0];
    while !seen.ends_with(mark) && socket.read(&mut byte).expect("a stream") > 0 {
        seen.push(char::from(byte[0]));
    }
    (socket, seen)
}

#[test]
fn a_stopped_server_leaves_a_whole_log() {
    let server = Running::start(Settings::default());
    let health = "GET /health HTTP/1.1\r\nhost: a\r\n\r\n";
    let (_, head) = exchange(server.address, health, "\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    assert!(head.contains("date: "), "as real servers send: {head}");
    let (_, answer) = exchange(server.address, &request(3), "\r\n0\r\n\r\n");
    assert_eq!(answer.matches("data: ").count(), 4, "{answer}");
    // One that would go on for long: stopping cuts it, and the log says so.
    let (_open, answer) = exchange(server.address, &request(100_000), "data: ");
    assert!(answer.ends_with("data: "), "{answer}");
    let (_, truth) = server.stop();
    let ended: Vec<Ended> = truth.iter().map(|row| row.ended).collect();
    assert_eq!(ended, [Ended::Done, Ended::Cancelled]);
    assert!(truth[0].arrival < truth[1].arrival && truth[1].output_tok > 0);
}

#[test]
fn what_cannot_start_says_why() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its own");
    let check = |settings: Settings, truth: Option<PathBuf>, part: &str| {
        let ready = |_| panic!("it must not start");
        let ran = run_blocking(settings, address, truth, ready, std::future::pending());
        let message = ran.expect_err(part).to_string();
        assert!(message.contains(part), "{message}");
    };
    check(Settings::default(), None, &format!("failed to listen on {address}"));
    let nowhere = Some("/nowhere/truth.csv".into());
    check(Settings::default(), nowhere, "failed to create /nowhere/truth.csv");
    check(Settings { max_running: 0, ..Settings::default() }, None, "max_running");
}
