//! Whole runs, row by row, against figures known beforehand.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::record::{Kind, Outcome, Row, StreamRecord, Usage};
use crate::units::Nanos;

const MS: u64 = 1_000_000;

/// A stream due at `due_ms`, sent at once, with a token event at each of `at_ms` (from `t0`).
fn stream(outcome: Outcome, due_ms: u64, at_ms: &[u64], output: Option<u64>) -> StreamRecord {
    let mut record = StreamRecord {
        due: Nanos(due_ms * MS),
        sent: (outcome != Outcome::Unsent).then_some(Nanos(due_ms * MS)),
        http_status: (outcome != Outcome::Unsent).then_some(200),
        output_tok_asked: Some(10),
        input_tok_asked: Some(100),
        usage: output.map(|n| Usage {
            input_tok: Some(100),
            output_tok: Some(n),
            ..Usage::default()
        }),
        outcome,
        ..StreamRecord::default()
    };
    for at in at_ms {
        record.tokens.push(Nanos(at * MS), Kind::Content, None);
    }
    record.close = record.tokens.last().or(record.sent);
    record
}

fn summary_of(window: Window, records: &[StreamRecord]) -> Summary {
    let mut metrics = Metrics::new(window);
    for record in records {
        metrics.add(&Row::of(record, window.warmup), record);
    }
    metrics.finish()
}

fn mean(summary: &Summary, metric: &str, scope: &str) -> Option<f64> {
    summary.value(metric, scope, Stat::Mean)
}

#[test]
fn throughput_counts_tokens_by_arrival_inside_the_window() {
    // Ten requests a second apart, each with 100 tokens, 10 ms apart: they run on past the last due.
    let records: Vec<StreamRecord> = (0..=10)
        .map(|i| {
            let at: Vec<u64> = (1..=100).map(|k| i * 1000 + k * 10).collect();
            stream(Outcome::Ok, i * 1000, &at, Some(100))
        })
        .collect();
    let window = Window { warmup: Nanos::from_secs(2), last_due: None };
    let summary = summary_of(window, &records);
    assert_eq!(summary.window(), Some(Nanos::from_secs(8)));
    // From 2 s to 10 s, closed at both ends: the token at 2.000 s of the second request counts too.
    assert_eq!(mean(&summary, "output_tok_s", MEASURED), Some(801.0 / 8.0));
    assert_eq!(mean(&summary, "request_s", MEASURED), Some(9.0 / 8.0));
    assert_eq!(mean(&summary, "offered_s", MEASURED), Some(9.0 / 8.0));
    assert_eq!(mean(&summary, "output_tok_s_total", ALL), Some(1100.0 / 11.0));
    assert_eq!(mean(&summary, "input_tok_s", MEASURED), Some(100.0 * 8.0 / 8.0));
    assert_eq!(summary.drain(), Some(Nanos::from_secs(1)));
    assert_eq!((summary.measured.rows(), summary.all.rows()), (9, 11));
    assert_eq!(mean(&summary, "ttft_ms", MEASURED), Some(10.0));
    assert_eq!(mean(&summary, "itl_ms", ALL), Some(10.0));
}

#[test]
fn one_request_has_no_rate_but_a_total() {
    let summary = summary_of(Window::default(), &[stream(Outcome::Ok, 0, &[500, 1000], Some(50))]);
    for rate in ["output_tok_s", "input_tok_s", "wasted_tok_s", "request_s", "offered_s"] {
        assert_eq!(mean(&summary, rate, MEASURED), None, "{rate}");
    }
    assert_eq!(mean(&summary, "output_tok_s_total", ALL), Some(50.0));
    assert_eq!(summary.window(), None);
}

#[test]
fn all_failed_leaves_empty_cells() {
    let records: Vec<StreamRecord> = (0..20)
        .map(|i| StreamRecord {
            http_status: Some(503),
            ..stream(Outcome::Http(503), i * 100, &[], None)
        })
        .collect();
    let summary = summary_of(Window::default(), &records);
    assert_eq!(mean(&summary, "error_rate", MEASURED), Some(1.0));
    assert_eq!(mean(&summary, "outcome_http_503", MEASURED), Some(20.0));
    assert_eq!(mean(&summary, "output_tok_s", MEASURED), Some(0.0));
    assert_eq!(mean(&summary, "output_tok_s_total", ALL), None);
    let ttft = summary.line("ttft_ms", MEASURED).expect("a line");
    assert_eq!((ttft.n, ttft.mean, ttft.max, ttft.censored), (Some(0), None, None, Some(0)));
    assert_eq!(summary.line("lag_ms", MEASURED).expect("a line").n, Some(20));
    assert!(summary.line("itl_ms", MEASURED).is_none());
}

#[test]
fn errors_are_counted_by_the_rule() {
    let records = [
        stream(Outcome::Ok, 0, &[5], Some(1)),
        stream(Outcome::Incomplete, 10, &[15, 25], None),
        stream(Outcome::Timeout, 20, &[25, 60], None),
        stream(Outcome::Unsent, 30, &[], None),
        stream(Outcome::Truncated, 40, &[45, 55, 65, 75], None),
        StreamRecord { sent: None, ..stream(Outcome::Skipped, 90, &[], None) },
    ];
    let summary = summary_of(Window::default(), &records);
    assert_eq!(mean(&summary, "error_rate", MEASURED), Some(3.0 / 5.0));
    assert_eq!(mean(&summary, "requests", MEASURED), Some(6.0));
    assert_eq!(summary.last_due, Some(Nanos(40 * MS)), "a skipped row never fell due");
    let ttft = summary.line("ttft_ms", MEASURED).expect("a line");
    assert_eq!((ttft.n, ttft.censored), (Some(3), Some(1)));
    let e2e = summary.line("e2e_ms", MEASURED).expect("a line");
    assert_eq!((e2e.n, e2e.censored), (Some(1), Some(3)));
    let gaps = summary.line("gap_ms", MEASURED).expect("a line");
    assert_eq!((gaps.n, gaps.censored, gaps.max), (Some(2), Some(3), Some(35.0)));
    // Until 40 ms: of the ok and incomplete rows 3 tokens, of the timeout one.
    assert_eq!(summary.line("output_tok_s", MEASURED).expect("a line").n, Some(3));
    assert_eq!(summary.line("wasted_tok_s", MEASURED).expect("a line").n, Some(1));
}

#[test]
fn chunks_of_several_tokens_claim_itl_only_with_running_counts() {
    let chunked = stream(Outcome::Ok, 0, &[100, 140, 180], Some(12));
    let plain = stream(Outcome::Ok, 0, &[10, 20, 30], Some(3));
    let summary = summary_of(Window::default(), &[plain.clone(), chunked.clone()]);
    assert!(summary.line("itl_ms", MEASURED).is_none());
    assert_eq!(mean(&summary, "gap_ms", MEASURED), Some((10.0 + 10.0 + 40.0 + 40.0) / 4.0));

    let mut running = chunked;
    running.tokens = crate::record::TokenTimes::default();
    for (at, n) in [(100, 4), (120, 4), (140, 8), (180, 12)] {
        running.tokens.push(Nanos(at * MS), Kind::Content, Some(n));
    }
    let summary = summary_of(Window::default(), &[plain, running]);
    let itl = summary.line("itl_ms", MEASURED).expect("claimed");
    assert_eq!((itl.n, itl.mean), (Some(10), Some(10.0)));
    // Without any usage, a chunk per token is a guess.
    let blind = summary_of(Window::default(), &[stream(Outcome::Ok, 0, &[10, 20], None)]);
    assert!(blind.line("itl_ms", MEASURED).is_none());
}

#[test]
fn a_stall_shows_in_the_pooled_gaps() {
    let at: Vec<u64> = (0..100).map(|i| i * 10 + if i >= 50 { 990 } else { 0 }).collect();
    let summary = summary_of(Window::default(), &[stream(Outcome::Ok, 0, &at, Some(100))]);
    assert_eq!(summary.value("gap_ms", MEASURED, Stat::Max), Some(1000.0));
}

#[test]
fn classes_have_scopes_up_to_a_limit() {
    let records: Vec<StreamRecord> = (0..70)
        .map(|i| StreamRecord {
            class: Some(Arc::from(format!("c{i:02}"))),
            ..stream(Outcome::Ok, i, &[i + 10, i + 20], Some(2))
        })
        .collect();
    let summary = summary_of(Window::default(), &records);
    assert_eq!(mean(&summary, "requests", "class:c00"), Some(1.0));
    assert_eq!(mean(&summary, "requests", "class:c63"), Some(1.0));
    assert_eq!(mean(&summary, "requests", "class:c64"), None);
    assert_eq!(mean(&summary, "requests", "class:(other)"), Some(6.0));
    assert_eq!(mean(&summary, "requests", MEASURED), Some(70.0));
    let scopes: Vec<&str> = summary.lines.iter().map(|line| &*line.scope).collect();
    let mut seen: Vec<&str> = scopes.clone();
    seen.dedup();
    assert_eq!(seen.len(), 67, "the lines of a scope stand together");
    assert_eq!((seen[0], seen[1], seen[2]), (MEASURED, ALL, "class:(other)"));
}

#[test]
fn a_million_rows_turn_to_a_histogram_and_stay_right() {
    let mut metrics = Metrics::new(Window::default());
    let record = stream(Outcome::Ok, 0, &[10], Some(1));
    let mut row = Row::of(&record, Nanos::ZERO);
    for i in 1..=EXACT_LIMIT as u64 + 1 {
        row.ttft = Some(Nanos(i * 1_000));
        metrics.add(&row, &record);
    }
    let summary = metrics.finish();
    let ttft = summary.line("ttft_ms", MEASURED).expect("a line");
    assert_eq!((ttft.basis, ttft.n), (Basis::Histogram, Some(1_000_001)));
    let median = ttft.percentile(Percentile::P50).expect("plenty");
    assert!((median - 500.0).abs() <= 500.0 * HISTOGRAM_ERROR, "{median}");
    assert_eq!(ttft.max, Some(1000.001));
}

fn any_outcome() -> impl Strategy<Value = Outcome> {
    prop::sample::select(vec![
        Outcome::Ok,
        Outcome::Incomplete,
        Outcome::Timeout,
        Outcome::Truncated,
        Outcome::Http(500),
    ])
}

proptest! {
    #[test]
    fn tokens_in_the_window_are_counted_once_in_any_order(
        rows in prop::collection::vec(
            (any_outcome(), 0..50_u64, prop::collection::vec(0..30_u64, 0..8), any::<bool>()),
            1..30,
        ),
        warmup in 0..60_u64,
        known in any::<bool>(),
        turn in any::<prop::sample::Index>(),
    ) {
        let mut records = Vec::new();
        for (outcome, due, gaps, classed) in &rows {
            let at: Vec<u64> = gaps.iter().scan(*due, |at, gap| { *at += gap; Some(*at) }).collect();
            let mut record = stream(*outcome, *due, &at, Some(3 * at.len() as u64));
            record.class = classed.then(|| Arc::from("chat"));
            records.push(record);
        }
        let last = rows.iter().map(|row| row.1).max().expect("a row");
        let window = Window {
            warmup: Nanos(warmup * MS),
            last_due: known.then_some(Nanos(last * MS)),
        };
        let straight = summary_of(window, &records);
        let count = |failed: bool| {
            let of_kind = records.iter().filter(|record| record.outcome.is_error() == failed);
            let at = of_kind.flat_map(|record| record.tokens.arrivals());
            3 * at.filter(|at| (warmup * MS..=last * MS).contains(&at.0)).count() as u64
        };
        let n = |name| straight.line(name, MEASURED).expect("a line").n.expect("a count");
        prop_assert_eq!(n("output_tok_s"), count(false));
        prop_assert_eq!(n("wasted_tok_s"), count(true));
        let turn = turn.index(records.len());
        records.rotate_left(turn);
        let turned = summary_of(window, &records);
        for (a, b) in straight.lines.iter().zip(&turned.lines) {
            prop_assert_eq!((&a.metric, &a.scope, a.n, a.max), (&b.metric, &b.scope, b.n, b.max));
            prop_assert_eq!(a.percentiles, b.percentiles);
        }
        prop_assert_eq!(straight.measured, turned.measured);
    }
}
