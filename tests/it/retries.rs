//! `--retries`: one row per due request however often it was sent, in virtual time so that waits are
//! exact; and what the files of a run say of it.

use underfire::client::Retries;
use underfire::lab::{self, Setup};
use underfire::record::{Outcome, Row};
use underfire::replay::drain::Drain;
use underfire::units::Nanos;

use crate::faults::{fixed, plan};
use crate::program::{Place, small_trace};
use crate::sockets::Sim;

/// One request that may be sent again `limit` times: its row, and how many POSTs the server saw.
fn one(faults: &[&str], limit: u32, change: impl FnOnce(&mut Setup)) -> (Row, usize) {
    let mut setup = Setup::chat(fixed(faults));
    setup.client.retries = Retries { limit, seed: 0 };
    change(&mut setup);
    let outcome = lab::replay(plan(1, 0), &setup).expect("a run that ends");
    assert_eq!(outcome.rows.len(), 1, "one row under {faults:?}");
    assert_eq!(outcome.summary.all.resent, Some(outcome.truth.len() as u64 - 1));
    (outcome.rows.into_iter().next().expect("a row"), outcome.truth.len())
}

fn check(faults: &[&str], limit: u32, outcome: Outcome, posts: usize) -> Row {
    let (row, seen) = one(faults, limit, |_| ());
    assert_eq!((row.outcome, seen), (outcome, posts), "{faults:?} {row:#?}");
    assert_eq!(row.attempts.map(|n| n as usize), Some(posts));
    assert_eq!(row.lag, Some(Nanos::ZERO), "sent when it was sent first");
    row
}

#[test]
fn what_passes_is_tried_again_and_the_clock_runs_from_due() {
    // The server asks for one second each time.
    let row = check(&["status=503@rows=0-1"], 2, Outcome::Ok, 3);
    assert_eq!(row.ttft, Some(Nanos::from_millis(2_200)));
    assert_eq!(row.ttft_send, row.ttft);
    let row = check(&["status=503@rows=0-1"], 1, Outcome::Http(503), 2);
    assert!(row.error.expect("words").ends_with("(Retry-After: 1)"));
    // Without a word of the server's the wait is half a second, less what is drawn.
    for fault in
        ["hangup=close@rows=0", "status=500@rows=0", "status=408@rows=0", "cut=close,0@rows=0"]
    {
        let row = check(&[fault], 3, Outcome::Ok, 2);
        let ttft = row.ttft.expect("a token");
        assert!((575..=700).contains(&(ttft.0 / 1_000_000)), "{fault}: {ttft:?}");
    }
}

#[test]
fn what_stays_or_has_begun_is_not() {
    check(&["status=400"], 3, Outcome::Http(400), 1);
    check(&["redirect=307"], 3, Outcome::Http(307), 1);
    check(&["cut=close,2"], 3, Outcome::Truncated, 1);
    check(&["cut=end,0"], 3, Outcome::Truncated, 1);
    check(&["error=object"], 3, Outcome::StreamError, 1);
    check(&[], 3, Outcome::Ok, 1);
}

#[test]
fn limits_and_the_end_of_the_run_end_the_waiting() {
    let faults = ["status=503"];
    let total = |setup: &mut Setup| setup.client.timeouts.total = Some(Nanos::from_millis(1_500));
    let (row, posts) = one(&faults, 9, total);
    assert_eq!((row.outcome, posts), (Outcome::Http(503), 2), "the third would come too late");
    assert_eq!(row.close, Some(Nanos::from_secs(1)), "and is not waited for");
    let cut = |setup: &mut Setup| setup.drain = Drain::After(Nanos::from_millis(1_500));
    let (row, posts) = one(&faults, 9, cut);
    assert_eq!((row.outcome, posts), (Outcome::Http(503), 2), "what the server said stands");
    // Nine waits of a second are no silence to the drain.
    let quiet = |setup: &mut Setup| setup.drain = Drain::Quiet(Nanos::from_millis(900));
    assert_eq!(one(&faults, 9, quiet).1, 10);
}

#[test]
fn a_limit_on_the_whole_counts_from_the_first_send() {
    let (row, posts) = one(&["status=503@rows=0", "stall=1h"], 3, |setup| {
        setup.client.timeouts.total = Some(Nanos::from_millis(1_500));
    });
    assert_eq!((row.outcome, posts), (Outcome::Timeout, 2));
    assert_eq!(row.close, Some(Nanos::from_millis(1_500)));
}

#[test]
fn the_open_loop_does_not_wait_for_it() {
    let mut setup = Setup::chat(fixed(&["status=429"]));
    setup.client.retries = Retries { limit: 2, seed: 0 };
    let outcome = lab::replay(plan(50, 10), &setup).expect("a run that ends");
    assert_eq!((outcome.rows.len(), outcome.truth.len()), (50, 150));
    assert!(outcome.rows.iter().all(|row| row.lag == Some(Nanos::ZERO)), "{:#?}", outcome.rows);
}

#[test]
fn the_files_tell_of_it_only_where_it_was_asked_for() {
    let place = Place::new();
    place.write("t.csv", small_trace(6, 20));
    let sim = Sim::start(&place, &["--fault", "hangup=close@rows=1,3"]);
    let common = ["run", "t.csv", "--url", &sim.url, "--no-preflight", "--out"];
    place.run(&[&common[..], &["again", "--retries", "2"]].concat()).expect(0);
    place.run(&[&common[..], &["once"]].concat()).expect(0);
    let header =
        |run: &str| place.read(&format!("{run}/requests.csv")).lines().next().map(str::to_owned);
    assert!(header("again").expect("a line").ends_with(",request_id,attempts"));
    assert!(header("once").expect("a line").ends_with(",request_id"));
    let attempts: u32 = place.rows("again").iter().filter_map(|row| row.attempts).sum();
    assert_eq!(attempts, 8);
    assert!(place.read("again/run.json").contains("\"resent\": 2"));
    assert!(!place.read("once/summary.csv").contains("resent"));
    for run in ["again", "once"] {
        let before = place.read(&format!("{run}/summary.csv"));
        let said = place.run(&["report", run]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert_eq!(place.read(&format!("{run}/summary.csv")), before);
    }
    sim.end(&place);
}
