//! Figures of small traces worked out by hand, and of the public ones against figures made elsewhere.

use std::path::Path;

use super::*;
use crate::trace::Prefix;
use crate::trace::read::{Input, ReadOptions, open};
use crate::units::Nanos;

fn of(rows: impl IntoIterator<Item = Request>) -> TraceFigures {
    let mut stats = Stats::default();
    rows.into_iter().for_each(|row| stats.add(&row));
    stats.finish().0
}

fn row(at_ms: u64, input_tok: u32, output_tok: u32) -> Request {
    let (at, output_tok) = (Nanos::from_millis(at_ms), Some(output_tok));
    Request { at, input_tok, output_tok, ..Request::default() }
}

fn close(found: Option<f64>, expect: f64, within: f64) {
    let found = found.expect("a figure");
    assert!((found - expect).abs() <= within, "{found} is not {expect}");
}

#[test]
fn windows_gaps_and_lengths_by_hand() {
    // Seconds 0 to 3 hold 3, 0, 1 rows and the start of an open window.
    let figures =
        of([row(0, 10, 1), row(100, 20, 2), row(100, 30, 3), row(2_000, 40, 4), row(3_000, 50, 5)]);
    let arrivals = &figures.arrivals;
    close(arrivals.rate, 4.0 / 3.0, 1e-12);
    assert_eq!((arrivals.distinct_times, arrivals.quantised), (4, false));
    // Gaps 0.1, 0, 1.9, 1.0: mean 0.75, variance 0.593.
    close(arrivals.gap_cv, (0.5925_f64).sqrt() / 0.75, 1e-9);
    close(arrivals.gap_max_s, 1.9, 1e-12);
    close(arrivals.gap_p50_s, 0.1, 0.003);
    close(arrivals.gaps_under_1ms, 0.25, 1e-12);
    // Counts 3, 0, 1: mean 4/3, variance 14/9.
    close(arrivals.scales[0].idc, 14.0 / 12.0, 1e-9);
    close(arrivals.scales[0].peak_to_mean, 2.25, 1e-9);
    close(arrivals.scales[0].empty, 1.0 / 3.0, 1e-9);
    assert_eq!(arrivals.scales[1].idc, None, "no window of 10 s is full");
    let input = figures.input_tok.unwrap();
    assert_eq!((input.min, input.p50, input.p99, input.max, input.sum), (10, 30, 50, 50, 150));
    let correlation = figures.correlation.unwrap();
    close(correlation.pearson, 1.0, 1e-9);
    close(correlation.spearman, 1.0, 1e-9);
    assert!(figures.sessions.is_none() && figures.reuse.is_none());
}

#[test]
fn one_row_and_none_have_no_gaps() {
    let none = of([]);
    assert_eq!((none.rows, none.arrivals.rate, none.arrivals.first_s), (0, None, None));
    assert!(none.input_tok.is_none() && none.correlation.is_none());
    let one = of([row(5_000, 1, 1)]).arrivals;
    assert_eq!((one.span_s, one.rate, one.gap_cv, one.gap_max_s), (Some(0.0), None, None, None));
}

#[test]
fn sessions_and_reuse_by_hand() {
    let turn = |at_ms: u64, name: &str, think_ms: Option<u64>, blocks: &[u64]| Request {
        session: Some(name.into()),
        think: think_ms.map(Nanos::from_millis),
        prefix: Some(Box::new(Prefix { blocks: blocks.into(), block_tok: 10 })),
        ..row(at_ms, 25, 1)
    };
    let figures = of([
        turn(0, "a", None, &[1, 2, 3]),
        turn(1_000, "b", None, &[1, 9, 3]),
        turn(4_000, "a", Some(500), &[1, 2, 3]),
    ]);
    let sessions = figures.sessions.unwrap();
    assert_eq!((sessions.sessions, sessions.rows, sessions.turns_max), (2, 3, 2));
    assert_eq!(sessions.think.unwrap().p50_s.to_bits(), 0.5_f64.to_bits());
    assert_eq!(sessions.between.unwrap().p50_s.to_bits(), 4.0_f64.to_bits());
    // 0, 1 (block 3 stands behind one that is new) and 3 blocks; 10 and 25 tokens.
    let reuse = figures.reuse.unwrap();
    assert_eq!((reuse.blocks, reuse.distinct_blocks), (9, 4));
    close(Some(reuse.block_hit), 4.0 / 9.0, 1e-12);
    close(Some(reuse.token_hit), 35.0 / 75.0, 1e-12);
    assert!(reuse.caches.is_empty());
}

#[test]
fn a_finite_cache_drops_what_was_used_longest_ago() {
    let mut lengths = (Lengths::default(), Lengths::default());
    (0..100).for_each(|tok| lengths.0.add(tok));
    (50..150).for_each(|tok| lengths.1.add(tok));
    close(lengths.0.distance(&lengths.1), 0.5, 1e-12);
    assert_eq!(lengths.0.distance(&Lengths::default()), None);
    let blocks = |ids: Vec<u64>| Request {
        prefix: Some(Box::new(Prefix { blocks: ids.into(), block_tok: 1 })),
        ..row(0, 600, 1)
    };
    // 600 blocks, 600 others, the first again: 1,000 fit, and 200 of the first were dropped. They stand
    // at the start, so nothing is reused.
    let figures = of([
        blocks((0..600).collect()),
        blocks((600..1200).collect()),
        blocks((0..600).collect()),
        blocks((1..2).cycle().take(600).collect()),
    ]);
    let reuse = figures.reuse.unwrap();
    assert_eq!((reuse.caches.len(), reuse.caches[0].blocks), (1, 1_000));
    close(Some(reuse.caches[0].block_hit), 600.0 / 2400.0, 1e-12);
    close(Some(reuse.block_hit), 1200.0 / 2400.0, 1e-12);
}

/// A public file's figures, where a checkout has it beside it.
fn public(name: &str) -> Option<TraceFigures> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/traces").join(name);
    let trace = path.exists().then(|| open(Input::File(path), ReadOptions::default()).unwrap())?;
    Some(of(trace.rows().unwrap().map(Result::unwrap)))
}

#[test]
fn public_traces_have_their_known_figures() {
    let check = |name: &str, cv: f64, idc: [f64; 3], spearman: f64| {
        let Some(figures) = public(name) else { return };
        close(figures.arrivals.gap_cv, cv, 0.005);
        for (scale, expect) in figures.arrivals.scales.iter().zip(idc) {
            close(scale.idc, expect, 0.005);
        }
        close(figures.correlation.unwrap().spearman, spearman, 0.0006);
    };
    let code = "azure2023/AzureLLMInferenceTrace_code.csv";
    check(code, 13.151, [13.186, 71.641, 163.965], -0.021);
    check("azure2023/AzureLLMInferenceTrace_conv.csv", 1.094, [1.385, 3.857, 16.128], 0.073);
    let mooncake = "mooncake/conversation_trace.jsonl";
    check(mooncake, 3.034, [7.898, 2.099, 2.895], 0.072);
    if let Some(figures) = public(code) {
        let input = figures.input_tok.unwrap();
        assert_eq!((input.p1, input.p50, input.p99, input.max), (17, 1_469, 7_436, 7_437));
        close(input.at_cap, 0.040_254, 1e-6);
        close(figures.arrivals.scales[0].empty, 0.734, 0.001);
        close(figures.arrivals.scales[2].peak_to_mean, 4.18, 0.005);
    }
    if let Some(figures) = public(mooncake) {
        assert!(figures.arrivals.quantised);
        let reuse = figures.reuse.unwrap();
        assert_eq!((reuse.blocks, reuse.distinct_blocks), (288_500, 182_790));
        close(Some(reuse.block_hit), 0.366, 0.0006);
        close(Some(reuse.token_hit), 0.374, 0.0006);
        for (cache, expect) in reuse.caches.iter().zip([0.044_475, 0.211_165, 0.354_558]) {
            close(Some(cache.block_hit), expect, 1e-5);
        }
    }
}
