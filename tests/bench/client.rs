//! The whole client over loopback: HTTP, server-sent events, JSON, record, row, metrics, on one core, against
//! a server on another that sends ready bytes. Limit: a bare client that reads the same sockets and only
//! counts bytes. CPU per token event of the client's thread:
//!
//! - *coalesced*: 200 streams in a closed loop, each answer of 256 tokens written in one go. Budget: 4
//!   times the limit, about 0.25 µs.
//! - *one write per event*: 500 streams, one event each in every round of 10 ms. The kernel rules here;
//!   budget: 2 times the limit, about 5 µs.
//!
//! `cargo bench --bench client`

mod loopback;
mod ratio;

use std::cell::RefCell;
use std::future::Future;
use std::process::ExitCode;
use std::rc::Rc;

use bytes::Bytes;
use loopback::{Answers, Server};
use ratio::{Budgets, cpu_of, in_turn, pin};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::LocalSet;
use underfire::client::dialect::Api;
use underfire::client::{AttemptControl, Client, Dial, Headers, RequestHead, Route, Settings};
use underfire::clock::Clock;
use underfire::lab::Setup;
use underfire::metrics::{Metrics, Window};
use underfire::record::csv::RowWriter;
use underfire::record::{Outcome, Row, StreamRecord};
use underfire::sim;
use underfire::units::Nanos;

fn main() -> ExitCode {
    pin(0);
    let budgets = Budgets::default();
    for (what, answers, streams, turns, budget) in [
        ("coalesced", Answers::Whole, 200, 10, 4.0),
        ("one write per event", Answers::EventByEvent, 500, 1, 2.0),
    ] {
        let server = Server::start(answers);
        let events = (streams * turns * answers.tokens()) as f64;
        let figures = in_turn(
            || on_this_thread(|| whole(server.port(), answers, streams, turns)) / events,
            || on_this_thread(|| bare(server.port(), answers, streams, turns)) / events,
        );
        budgets.tell(what, "ns of CPU an event", figures, budget);
    }
    budgets.end()
}

/// CPU of a load on a runtime of its own, in nanoseconds.
fn on_this_thread<F: Future<Output = ()>>(load: impl FnOnce() -> F) -> f64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    let runtime = runtime.expect("a runtime");
    cpu_of(|| LocalSet::new().block_on(&runtime, load()))
}

/// The body of every request, and the plan of a client that sends it.
fn setup(answers: Answers) -> (Setup, Bytes) {
    let setup = Setup::chat(sim::Settings::default());
    let tokens = u32::try_from(answers.tokens()).expect("a few");
    let body = setup.bodies.probe(0, 16, tokens).expect("a body");
    (setup, body)
}

/// Our client.
async fn whole(port: u16, answers: Answers, streams: usize, turns: usize) {
    let (setup, body) = setup(answers);
    let clock = Clock::real().expect("a timer");
    let head =
        RequestHead::new(&format!("127.0.0.1:{port}"), Api::Chat.path(), &Headers::default());
    let settings = Settings { head: head.expect("a head"), ..setup.client };
    let dial = Dial::route(&Route::tcp("127.0.0.1".to_owned(), port));
    let t0 = clock.now();
    let client = Client::new(dial, clock.clone(), t0, settings);
    let metrics = Rc::new(RefCell::new(Metrics::new(Window::default())));
    let rows = RowWriter::new(std::io::sink(), false).expect("a sink");
    let rows = Rc::new(RefCell::new(rows));
    let each = (0..streams).map(|_| {
        let (client, clock, body) = (client.clone(), clock.clone(), body.clone());
        let (metrics, rows) = (metrics.clone(), rows.clone());
        tokio::task::spawn_local(async move {
            for _ in 0..turns {
                let record = StreamRecord { due: clock.now().since(t0), ..StreamRecord::default() };
                let record = client.perform(record, body.clone(), &AttemptControl::default()).await;
                assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
                let row = Row::of(&record, Nanos::ZERO);
                metrics.borrow_mut().add(&row, &record);
                rows.borrow_mut().write(&row).expect("a sink");
            }
        })
    });
    for stream in each.collect::<Vec<_>>() {
        stream.await.expect("no panic");
    }
    let metrics = Rc::into_inner(metrics).expect("the streams have ended").into_inner();
    let tokens = metrics.finish().all.output_tok;
    assert_eq!(tokens, (streams * turns * answers.tokens()) as u64, "every token is counted");
}

/// The least that a client can do.
async fn bare(port: u16, answers: Answers, streams: usize, turns: usize) {
    let (_, body) = setup(answers);
    let head = format!(
        "POST {} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {}\r\n\r\n",
        Api::Chat.path(),
        body.len()
    );
    let request: Rc<[u8]> = [head.as_bytes(), &body].concat().into();
    let each = (0..streams).map(|_| {
        let request = request.clone();
        tokio::task::spawn_local(async move {
            let mut socket = TcpStream::connect(("127.0.0.1", port)).await.expect("a server");
            socket.set_nodelay(true).expect("a socket");
            let mut buffer = vec![0; 64 << 10];
            for _ in 0..turns {
                socket.write_all(&request).await.expect("it takes requests");
                let mut left = answers.bytes();
                while left > 0 {
                    left -= socket.read(&mut buffer).await.expect("it answers");
                }
            }
        })
    });
    for stream in each.collect::<Vec<_>>() {
        stream.await.expect("no panic");
    }
}
