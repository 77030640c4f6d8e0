//! Runs with real threads in which a thread panics: they end, and what the others measured is told.

use std::convert::Infallible;
use std::net::TcpListener;

use super::*;
use crate::client::dialect::Api;
use crate::client::{Headers, RequestHead, Retries, Route, Settings, Timeouts};
use crate::prompt::Prompter;
use crate::record::Outcome;
use crate::trace::Request;

const ROWS: u64 = 40;

/// Rows that are all due at once, to two workers.
fn plan() -> impl Iterator<Item = Result<Planned, Infallible>> + Send {
    (0..ROWS).map(|index| {
        let request = Request { row: index, input_tok: 5, ..Request::default() };
        Ok(Planned { index, due: Some(Nanos::ZERO), request })
    })
}

fn setup(port: u16, mode: Mode) -> Setup {
    let settings = Settings {
        head: RequestHead::new("127.0.0.1", "/", &Headers::default()).expect("a head"),
        timeouts: Timeouts::default(),
        ignore_eos: false,
        retries: Retries::default(),
        keep_kinds: false,
    };
    Setup {
        targets: vec![Endpoint { route: Route::tcp("127.0.0.1", port), settings }],
        bodies: BodyMaker::new(Api::Chat, Prompter::new(0, "")),
        workers: 2,
        predial: 0,
        mode,
        until: Nanos::MAX,
        drain: Drain::default(),
    }
}

/// A port at which nobody answers. Kept, connections to it come about and stay silent; else they are refused.
fn silent() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    (listener, port)
}

/// Runs with a worker that panics as `inspect` does: its message, and what was told before it.
fn run_to_the_panic(
    setup: &Setup,
    interrupt: Option<Stop>,
    inspect: fn(usize, &StreamRecord),
) -> (Panicked, Vec<StreamRecord>) {
    let (stop, _) = watch::channel(Stop::No);
    let mut records = Vec::new();
    let on_event = |event: Event<'_>| {
        match event {
            Event::Started(_) => interrupt.into_iter().for_each(|how| how.request(&stop)),
            Event::Ended(record) => records.push(*record),
            _ => {}
        }
        Ok::<(), Infallible>(())
    };
    match run_inspected(plan(), setup, &stop, on_event, inspect) {
        Err(ReplayError::Panicked(panicked)) => (panicked, records),
        other => panic!("no worker panicked: {other:?}"),
    }
}

fn rows_of_worker_1(records: &[StreamRecord]) -> Vec<u64> {
    let mut rows: Vec<u64> = records.iter().map(|record| record.row).collect();
    rows.retain(|row| row % 2 == 1);
    rows.sort_unstable();
    rows
}

#[test]
fn a_panic_of_a_request_ends_a_run_whose_other_rows_are_told() {
    let (_, port) = silent();
    let (panicked, records) = run_to_the_panic(&setup(port, Mode::Open), None, |worker, record| {
        assert!(worker != 0 || record.row != 4, "no room for row {}", record.row);
    });
    assert_eq!((&*panicked.thread, &*panicked.message), ("worker-0", "no room for row 4"));
    assert_eq!(rows_of_worker_1(&records), (0..ROWS / 2).map(|n| 2 * n + 1).collect::<Vec<_>>());
    assert!(records.iter().all(|record| record.row != 4));
}

#[test]
fn a_panic_in_an_interrupted_run_keeps_nobody_waiting() {
    let (_listener, port) = silent();
    let setup = setup(port, Mode::Open);
    let (panicked, records) = run_to_the_panic(&setup, Some(Stop::All), |worker, _| {
        assert!(worker != 0, "cut");
    });
    assert_eq!(&*panicked.thread, "worker-0");
    assert_eq!(rows_of_worker_1(&records).len() as u64, ROWS / 2);
}

#[test]
fn a_panic_of_a_worker_itself_is_told_as_well() {
    let (_listener, port) = silent();
    // What finds no slot is recorded at the end, by the worker and no task of it.
    let mode = Mode::Capped { slots: 2, last_due: Some(Nanos::ZERO) };
    let setup = setup(port, mode);
    let (panicked, records) = run_to_the_panic(&setup, Some(Stop::All), |_, record| {
        assert!(record.outcome != Outcome::Unsent || record.row != 20, "row 20 was not sent");
    });
    assert!(panicked.thread.starts_with("worker-"), "{panicked}");
    assert_eq!(panicked.message, "row 20 was not sent");
    // The other takes what is left of the queue that they share. What was in the one slot is lost.
    assert!(records.len() as u64 >= ROWS - 2, "{} records", records.len());
}

#[test]
fn a_panic_of_the_plan_is_told_after_the_rows_before_it() {
    let (_, port) = silent();
    let (stop, _) = watch::channel(Stop::No);
    let mut count = 0;
    let plan = plan().inspect(|row| {
        let index = row.as_ref().map_or(0, |row| row.index);
        assert!(index < 7, "no row {index}");
    });
    let on_event = |event: Event<'_>| {
        count += u64::from(matches!(event, Event::Ended(_)));
        Ok::<(), Infallible>(())
    };
    let ran = run(plan, &setup(port, Mode::Open), &stop, on_event);
    let Err(ReplayError::Panicked(panicked)) = ran else { panic!("it went on: {ran:?}") };
    assert_eq!((&*panicked.thread, &*panicked.message), ("bodies", "no row 7"));
    assert_eq!(count, 7);
}
