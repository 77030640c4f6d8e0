//! The figures of a window under their names, as files and programs take them.
//!
//! A figure that does not apply is `None`. Deliberately absent: rounding, and words.

use super::rules::{Counter, Gauge, Latency, Moves, Rules};
use super::window::{Generation, Window};

/// Histograms and the beginnings of their names.
const LATENCIES: [(Latency, [&str; 3]); 4] = [
    (Latency::Ttft, ["ttft_p50_ms", "ttft_p90_ms", "ttft_p99_ms"]),
    (Latency::Itl, ["itl_p50_ms", "itl_p90_ms", "itl_p99_ms"]),
    (Latency::E2e, ["e2e_p50_ms", "e2e_p90_ms", "e2e_p99_ms"]),
    (Latency::Queue, ["queue_p50_ms", "queue_p90_ms", "queue_p99_ms"]),
];
const SHARES: [f64; 3] = [0.5, 0.9, 0.99];

/// Names and values, always the same names in the same order.
#[must_use]
pub fn figures(window: &Window) -> Vec<(&'static str, Option<f64>)> {
    let generation = window.generation;
    let mut figures = vec![
        ("measured_s", Some(window.measured.as_secs_f64())),
        ("stamp_error_s", Some(window.stamp_error.as_secs_f64())),
        ("restarts", Some(f64::from(window.restarts))),
        ("generation_tok_s", generation.map(|rate| rate.tok_s)),
        ("generation_error_tok_s", generation.and_then(|rate| rate.error_tok_s)),
        ("prompt_tok_s", window.rate(Counter::Prompt)),
        ("finished_req_s", window.rate(Counter::Finished)),
        ("mean_completion_tok", window.mean_completion_tok()),
        ("running", window.gauge(Gauge::Running)),
        ("waiting", window.gauge(Gauge::Waiting)),
        ("kv_use", window.gauge(Gauge::KvUse)),
        ("cache_hit", window.cache_hit_share()),
        ("preemptions", window.grown.get(&Counter::Preempted).copied()),
        ("acceptance", window.acceptance()),
    ];
    for (latency, names) in LATENCIES {
        for (name, share) in names.into_iter().zip(SHARES) {
            let percentile = window.percentile(latency, share);
            figures.push((name, percentile.and_then(|found| found.value).map(|s| s * 1000.0)));
        }
    }
    figures
}

/// How the rate of completion tokens was found, in a word.
#[must_use]
pub fn basis(generation: &Generation) -> &'static str {
    match generation.moves {
        _ if generation.is_estimate => "steps",
        Moves::PerStep => "per_step",
        Moves::PerInterval => "per_interval",
        Moves::PerFinished => "per_finished",
    }
}

/// What the engine's page does not tell, in words.
#[must_use]
pub fn untold(window: &Window, rules: &Rules) -> Vec<&'static str> {
    let has_gauge = |gauge| window.gauges.contains_key(&gauge);
    let has_counter = |counter| window.grown.contains_key(&counter);
    let has_latency = |latency| window.latencies.contains_key(&latency);
    let cache = has_counter(Counter::CacheQueries) || has_gauge(Gauge::CacheHitRate);
    [
        (has_counter(Counter::Generation), "completion tokens"),
        (has_counter(Counter::Prompt), "prompt tokens"),
        (has_counter(Counter::Finished), "finished requests"),
        (
            has_counter(Counter::Finished) && has_counter(Counter::FinishedTokens),
            "mean completion length",
        ),
        (has_gauge(Gauge::Running), "running requests"),
        (has_gauge(Gauge::Waiting), "waiting requests"),
        (has_gauge(Gauge::KvUse), "KV use"),
        (cache, "prefix cache hits"),
        (has_counter(Counter::Preempted), "preemptions"),
        // Told only where it is switched on.
        (
            has_counter(Counter::Drafted)
                || rules.counters.iter().any(|(c, _)| *c == Counter::Drafted),
            "speculative decoding",
        ),
        (has_latency(Latency::Ttft), "TTFT"),
        (has_latency(Latency::Itl), "ITL"),
    ]
    .into_iter()
    .filter(|(is_told, _)| !is_told)
    .map(|(_, name)| name)
    .collect()
}
