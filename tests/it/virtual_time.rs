//! The same client, server and worker in virtual time: exact times, the same every time.

use underfire::lab::{self, Setup};
use underfire::metrics::{MEASURED, Percentile, Stat};
use underfire::record::{Outcome, Row};
use underfire::replay::Mode;
use underfire::replay::drain::Drain;
use underfire::schedule::Planned;
use underfire::sim;
use underfire::trace::Request;
use underfire::units::Nanos;

use crate::faults::fixed;

/// `(due_ms, input_tok, output_tok)` as a plan.
fn plan(rows: &[(u64, u32, u32)]) -> impl Iterator<Item = Planned> + use<> {
    let rows = rows.to_vec();
    (0u64..).zip(rows).map(|(row, (due_ms, input_tok, output_tok))| Planned {
        index: row,
        due: Some(Nanos::from_millis(due_ms)),
        request: Request { row, input_tok, output_tok: Some(output_tok), ..Request::default() },
    })
}

#[test]
fn times_come_out_exactly() {
    let rows: Vec<_> = (0..50).map(|row| (row * 37, 20, 12)).collect();
    let outcome = lab::replay(plan(&rows), &Setup::chat(fixed(&[]))).expect("a run");
    assert_eq!(outcome.rows.len(), 50);
    let ms = |n| Some(Nanos::from_millis(n));
    for row in &outcome.rows {
        assert_eq!(row.outcome, Outcome::Ok);
        assert_eq!((row.lag, row.ttft, row.ttft_send), (ms(0), ms(200), ms(200)));
        assert_eq!((row.gap_p50, row.gap_p99, row.gap_max), (ms(50), ms(50), ms(50)));
        assert_eq!((row.tpot, row.e2e), (ms(50), ms(200 + 11 * 50)));
        assert_eq!(row.output_tok, Some(12));
    }
    let check = lab::check(&outcome.rows, Nanos::ZERO, &outcome.truth);
    assert_eq!((check.matched, check.missing, check.miscounted), (50, 0, 0));
    for agreement in [&check.arrival, &check.ttft, &check.gap_p50, &check.gap_p99] {
        assert_eq!(agreement.percentile(100), Some(Nanos::ZERO));
    }
}

#[test]
fn waiting_in_the_servers_queue_is_in_the_latency() {
    let one_at_a_time = sim::Settings { max_running: 1, ..fixed(&[]) };
    let outcome =
        lab::replay(plan(&[(0, 5, 3), (0, 5, 3), (0, 5, 3)]), &Setup::chat(one_at_a_time));
    let mut ttft: Vec<u64> = outcome
        .expect("a run")
        .rows
        .iter()
        .map(|row| row.ttft.expect("a token").0 / 1_000_000)
        .collect();
    ttft.sort_unstable();
    assert_eq!(ttft, [200, 500, 800], "each waits for the 300 ms of those before it");
}

#[test]
fn the_closed_loop_is_due_when_a_stream_closes() {
    let setup = Setup {
        mode: Mode::Closed { slots: 2, ramp: Nanos::ZERO, until: Nanos::MAX },
        ..Setup::chat(fixed(&[]))
    };
    let outcome = lab::replay(plan(&[(0, 5, 3); 6]), &setup).expect("a run");
    let mut due: Vec<u64> =
        outcome.rows.iter().map(|row| row.scheduled.expect("due").0 / 1_000_000).collect();
    due.sort_unstable();
    assert_eq!(due, [0, 0, 300, 300, 600, 600]);
}

#[test]
fn a_run_repeats_to_the_last_digit() {
    let jittery = sim::Settings { jitter: 0.3, seed: 9, ..sim::Settings::default() };
    let rows: Vec<_> = (0..80).map(|row| (row * 20, 50, 30)).collect();
    let run = || -> Vec<Row> {
        lab::replay(plan(&rows), &Setup::chat(jittery.clone())).expect("a run").rows
    };
    let first = run();
    assert_eq!(first, run());
    let distinct: std::collections::BTreeSet<_> = first.iter().map(|row| row.ttft).collect();
    assert!(distinct.len() > 40, "the jitter is there");
}

#[test]
fn timeouts_and_drain_end_streams_at_their_instant() {
    let mut timed = Setup::chat(fixed(&[]));
    timed.client.timeouts.total = Some(Nanos::from_millis(420));
    let outcome = lab::replay(plan(&[(0, 5, 100)]), &timed).expect("a run");
    let row = &outcome.rows[0];
    assert_eq!(row.outcome, Outcome::Timeout);
    assert_eq!(row.close, Some(Nanos::from_millis(420)));
    assert_eq!(row.chunks, Some(5), "at 200, 250, 300, 350 and 400 ms");

    let drained = Setup { drain: Drain::After(Nanos::from_secs(1)), ..Setup::chat(fixed(&[])) };
    let outcome = lab::replay(plan(&[(0, 5, 2), (100, 5, 100)]), &drained).expect("a run");
    let cut: Vec<Outcome> = outcome.rows.iter().map(|row| row.outcome).collect();
    assert_eq!(cut, [Outcome::Ok, Outcome::Incomplete]);
}

#[test]
fn figures_add_up() {
    let rows: Vec<_> = (0..100).map(|row| (row * 100, 20, 12)).collect();
    let outcome = lab::replay(plan(&rows), &Setup::chat(fixed(&[]))).expect("a run");
    let value = |metric, stat| outcome.summary.value(metric, MEASURED, stat);
    let percentile = |p| Stat::Percentile(Percentile::parse(p).expect("a percentile"));
    assert_eq!(value("requests", Stat::Mean), Some(100.0));
    assert_eq!(value("ttft_ms", percentile("p50")), Some(200.0));
    assert_eq!(value("ttft_ms", percentile("p99")), None, "100 rows cannot bound a p99");
    assert_eq!(value("gap_ms", Stat::Max), Some(50.0));
    assert_eq!(value("error_rate", Stat::Mean), Some(0.0));
    // 100 requests due over 9.9 s; tokens that arrived by then, over the same 9.9 s.
    let by_the_end: u64 = (0..100u64)
        .map(|row| (0..12u64).filter(|token| row * 100 + 200 + token * 50 <= 9_900).count() as u64)
        .sum();
    let rate = value("output_tok_s", Stat::Mean).expect("a rate");
    assert!((rate - by_the_end as f64 / 9.9).abs() < 1e-6, "{rate}");
}

#[test]
fn a_rule_stops_the_sending_at_its_instant_and_streams_are_followed() {
    // One stream runs for five seconds, and there is no queue: all others are refused at once.
    let sim = sim::Settings { max_running: 1, max_queued: 0, ..fixed(&[]) };
    let rows: Vec<_> = (0..300).map(|row| (row * 10, 5, 100)).collect();
    let rule = "error_rate>50%/1s".parse().expect("a rule");
    let setup = Setup { abort_on: vec![rule], ..Setup::chat(sim) };
    let outcome = lab::replay(plan(&rows), &setup).expect("a run");
    // Row 100 is due and refused at one second, the first instant at which the rule is judged.
    assert_eq!(outcome.rows.len(), 101, "rows not yet due are not written");
    let last = outcome.rows.last().expect("a row");
    assert_eq!((last.row, last.outcome, last.output_tok), (0, Outcome::Ok, Some(100)));
    assert!(outcome.rows[..100].iter().all(|row| row.outcome == Outcome::Http(503)));
}
