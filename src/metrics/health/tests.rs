//! Runs of all kinds, and what is said of their client.

use super::super::client_figures::Heartbeat;
use super::super::{Metrics, Window};
use super::*;
use crate::record::{Kind, Row, StreamRecord};

/// 400 rows, sent so late, each with a second token after so long; the first `odd` rows are `outcome`.
fn judged(
    lag_ms: u64,
    gap_ms: u64,
    odd: u64,
    outcome: Outcome,
    facts: HealthFacts,
) -> ClientVerdict {
    let mut metrics = Metrics::new(Window::default());
    for row in 0..400 {
        let due = Nanos::from_millis(row * 10);
        let sent = due + Nanos::from_millis(lag_ms);
        let outcome = if row < odd { outcome } else { Outcome::Ok };
        let mut record = StreamRecord {
            row,
            due,
            sent: (outcome != Outcome::Unsent).then_some(sent),
            outcome,
            error: (outcome != Outcome::Ok).then(|| "Too many open files".to_owned()),
            ..StreamRecord::default()
        };
        if outcome == Outcome::Ok {
            for at in [100, 100 + gap_ms] {
                record.tokens.push(sent + Nanos::from_millis(at), Kind::Content, None);
            }
        }
        metrics.add(&Row::of(&record, Nanos::ZERO), &record);
    }
    ClientVerdict::of(&metrics.finish(), facts)
}

#[test]
fn lag_decides_by_its_own_limits_and_by_those_on_ttft() {
    let none = HealthFacts::default();
    let check = |lag_ms, facts, limited, warned| {
        let verdict = judged(lag_ms, 20, 0, Outcome::Ok, facts);
        let found = (verdict.is_limited(), !verdict.warnings.is_empty());
        assert_eq!(found, (limited, warned), "{lag_ms} ms: {verdict}");
    };
    check(1, none, false, false);
    check(6, none, false, true);
    check(51, none, true, true);
    let strict = HealthFacts { ttft_limit: Some(Nanos::from_millis(200)), ..none };
    check(21, strict, true, false);
    check(19, strict, false, true);
    // Who holds rows back on purpose makes them late on purpose.
    check(5_000, HealthFacts { capped: true, ..none }, false, false);
}

#[test]
fn a_server_that_stalls_or_comes_in_bursts_is_no_fault_of_ours() {
    for gap_ms in [0, 60_000] {
        let verdict = judged(0, gap_ms, 0, Outcome::Ok, HealthFacts::default());
        assert_eq!(verdict.to_string(), "ok");
    }
    for outcome in [Outcome::Connect, Outcome::Timeout, Outcome::Http(503)] {
        assert_eq!(judged(0, 20, 50, outcome, HealthFacts::default()).to_string(), "ok");
    }
}

#[test]
fn a_starved_client_is_told_from_a_busy_machine_that_it_does_not_feel() {
    let with = |lag_ms, busiest, waited| {
        let figures = ClientFigures {
            thread_cpu_share: Some(busiest),
            cpu_wait_share: Some(waited),
            ..ClientFigures::default()
        };
        judged(lag_ms, 20, 0, Outcome::Ok, HealthFacts { figures, ..HealthFacts::default() })
    };
    assert!(with(3, 0.4, 0.5).to_string().starts_with("limited (processor: its threads waited"));
    assert_eq!(with(1, 0.4, 0.5).to_string(), "ok");
    assert!(!with(3, 0.4, 0.1).is_limited());
    assert!(with(0, 0.97, 0.0).to_string().contains("ran 97% of the time"));
}

#[test]
fn a_control_group_that_holds_the_client_back_limits_it() {
    let with = |share| {
        let figures = ClientFigures {
            cpu_throttled_share: Some(share),
            cpu_allowed: Some(0.5),
            ..ClientFigures::default()
        };
        judged(0, 20, 0, Outcome::Ok, HealthFacts { figures, ..HealthFacts::default() }).to_string()
    };
    assert_eq!(
        with(0.032),
        "limited (processor: its control group held it back for 3.2% of the time (it allows 0.50 cores))"
    );
    assert_eq!(with(0.009), "ok");
}

#[test]
fn a_schedule_that_bent_for_a_moment_is_told_though_most_rows_left_in_time() {
    let check = |late_rows: u64, late_ms, expect: &str| {
        let mut metrics = Metrics::new(Window::default());
        for row in 0..1_000 {
            let due = Nanos::from_millis(row * 10);
            let late = if (50..50 + late_rows).contains(&row) { late_ms } else { 0 };
            let sent = Some(due + Nanos::from_millis(late));
            let record =
                StreamRecord { row, due, sent, outcome: Outcome::Ok, ..StreamRecord::default() };
            metrics.add(&Row::of(&record, Nanos::ZERO), &record);
        }
        let verdict = ClientVerdict::of(&metrics.finish(), HealthFacts::default());
        assert_eq!(verdict.to_string(), expect);
    };
    check(5, 700, "ok (the schedule bent: 5 requests that were due had not left at 1 s)");
    // Over the end of a second, and not late.
    check(50, 1, "ok");
}

#[test]
fn workers_that_wake_late_and_what_is_nearly_used_up_are_told() {
    let with = |n, p99_ms, ports| {
        let delays = [Nanos(1), Nanos::from_millis(p99_ms), Nanos::from_secs(9)];
        let figures = ClientFigures {
            heartbeat_ms: Some(Heartbeat::of(n, delays)),
            ports: Some(ports),
            ports_limit: Some(1_000),
            ..ClientFigures::default()
        };
        judged(0, 20, 0, Outcome::Ok, HealthFacts { figures, ..HealthFacts::default() }).to_string()
    };
    assert_eq!(with(1_000, 1, 900), "ok");
    assert_eq!(with(1_000, 6, 0), "ok (its workers woke 6.0 ms late (p99))");
    assert_eq!(with(1_000, 51, 0), "limited (its workers woke 51.0 ms late (p99))");
    assert_eq!(with(367, 51, 0), "ok", "too few for a p99");
    let taken =
        "ok (up to 950 of 1000 local ports were taken (net.ipv4.ip_local_port_range widens it))";
    assert_eq!(with(1_000, 1, 950), taken);
    let figures = ClientFigures { record_wait_ms: Some(1_234.5), ..ClientFigures::default() };
    let facts = HealthFacts { figures, ..HealthFacts::default() };
    assert_eq!(
        judged(0, 20, 0, Outcome::Ok, facts).to_string(),
        "ok (its workers stood still, since what they had measured was not written in time (1234 ms in all))"
    );
}

#[test]
fn what_ran_out_and_what_was_never_sent_limit_it() {
    let none = HealthFacts::default();
    let words = judged(0, 20, 3, Outcome::Client, none).to_string();
    assert_eq!(words, "limited (3 requests found no room on this machine: Too many open files)");
    assert!(judged(0, 20, 1, Outcome::Unsent, none).is_limited());
    for facts in [HealthFacts { stopped: true, ..none }, HealthFacts { capped: true, ..none }] {
        assert!(!judged(0, 20, 1, Outcome::Unsent, facts).is_limited());
    }
}
