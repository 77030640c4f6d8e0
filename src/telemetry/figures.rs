//! The figures of a window under their names, as files and programs take them.
//!
//! A figure that does not apply is `None`. Deliberately absent: rounding, and words.

use super::rules::{Counter, Gauge, Latency, Moves, Rules};
use super::window::{Generation, Window};
use crate::columns::columns;

columns! {
    /// Names and values, in the order of the columns of `watch.csv`.
    pub const FIGURES: |window: &Window| -> Option<f64> {
        /// Length of the window that was measured.
        "measured_s" in S = Some(window.measured.as_secs_f64());
        /// How exactly its ends are known.
        "stamp_error_s" in S = Some(window.stamp_error.as_secs_f64());
        /// Restarts of a server inside it.
        "restarts" = Some(f64::from(window.restarts));
        /// Completion tokens. Empty: not told.
        "generation_tok_s" in TokS = window.generation.map(|rate| rate.tok_s);
        /// How far off that may be. Empty: not known.
        "generation_error_tok_s" in TokS = window.generation.and_then(|rate| rate.error_tok_s);
        /// Prompt tokens. Empty: not told.
        "prompt_tok_s" in TokS = window.rate(Counter::Prompt);
        /// Requests that finished. Empty: not told.
        "finished_req_s" in ReqS = window.rate(Counter::Finished);
        /// Mean length of their answers. Empty: none finished, or not told.
        "mean_completion_tok" in Tok = window.mean_completion_tok();
        /// Requests in the batch, at the end. Empty: not told.
        "running" = window.gauge(Gauge::Running);
        /// Requests that wait for a place, at the end. Empty: not told.
        "waiting" = window.gauge(Gauge::Waiting);
        /// Use of the KV cache, at the end. Empty: not told.
        "kv_use" in Share = window.gauge(Gauge::KvUse);
        /// Prompt tokens that its prefix cache had. Empty: none were asked for, or not told.
        "cache_hit" in Share = window.cache_hit_share();
        /// Requests put off for lack of KV cache. Empty: not told.
        "preemptions" = window.grown.get(&Counter::Preempted).copied();
        /// Drafted tokens that were accepted. Empty: none were drafted, or not told.
        "acceptance" in Share = window.acceptance();
        /// Median of the time to first token, by the server's histogram. Empty: too few values, or beyond its last bound.
        "ttft_p50_ms" in Ms = ms(window, Latency::Ttft, 0.5);
        /// The same, 90th percentile. Empty: too few values, or beyond its last bound.
        "ttft_p90_ms" in Ms = ms(window, Latency::Ttft, 0.9);
        /// The same, 99th percentile. Empty: too few values, or beyond its last bound.
        "ttft_p99_ms" in Ms = ms(window, Latency::Ttft, 0.99);
        /// Median of the time between tokens, by the server's histogram. Empty: too few values, or beyond its last bound.
        "itl_p50_ms" in Ms = ms(window, Latency::Itl, 0.5);
        /// The same, 90th percentile. Empty: too few values, or beyond its last bound.
        "itl_p90_ms" in Ms = ms(window, Latency::Itl, 0.9);
        /// The same, 99th percentile. Empty: too few values, or beyond its last bound.
        "itl_p99_ms" in Ms = ms(window, Latency::Itl, 0.99);
        /// Median of the time of a whole request, by the server's histogram. Empty: too few values, or beyond its last bound.
        "e2e_p50_ms" in Ms = ms(window, Latency::E2e, 0.5);
        /// The same, 90th percentile. Empty: too few values, or beyond its last bound.
        "e2e_p90_ms" in Ms = ms(window, Latency::E2e, 0.9);
        /// The same, 99th percentile. Empty: too few values, or beyond its last bound.
        "e2e_p99_ms" in Ms = ms(window, Latency::E2e, 0.99);
        /// Median of the time in the queue, by the server's histogram. Empty: too few values, or beyond its last bound.
        "queue_p50_ms" in Ms = ms(window, Latency::Queue, 0.5);
        /// The same, 90th percentile. Empty: too few values, or beyond its last bound.
        "queue_p90_ms" in Ms = ms(window, Latency::Queue, 0.9);
        /// The same, 99th percentile. Empty: too few values, or beyond its last bound.
        "queue_p99_ms" in Ms = ms(window, Latency::Queue, 0.99);
    }
}

/// A percentile of a latency, where the histogram bounds it.
fn ms(window: &Window, latency: Latency, share: f64) -> Option<f64> {
    window.percentile(latency, share)?.value.map(|s| s * 1000.0)
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
