//! Pages that no server has: whatever they say, each figure is a finite one that is not negative, or none.

use proptest::prelude::*;

use super::super::exposition::{Limits, parse};
use super::super::figures;
use super::super::lifetime::Lifetime;
use super::super::models::narrow;
use super::super::reading::{Reading, read, recognise};
use super::super::remaining::{Outlook, Remaining};
use super::super::rules::Counter;
use super::super::track::{Stamp, Track};
use super::super::window::Window;
use crate::units::Nanos;

/// Of each kind of rules one, with `@` for every figure.
const PAGES: [&str; 4] = [
    "vllm:generation_tokens_total{engine=\"0\",model_name=\"a\"} @\n\
     vllm:generation_tokens_total{engine=\"1\",model_name=\"b\"} @\n\
     vllm:prompt_tokens_total @\nvllm:request_success_total{finished_reason=\"stop\"} @\n\
     vllm:request_generation_tokens_sum @\nvllm:num_requests_running{engine=\"0\"} @\n\
     vllm:num_requests_running{engine=\"1\"} @\nvllm:kv_cache_usage_perc @\n\
     vllm:time_to_first_token_seconds_bucket{le=\"@\"} @\n\
     vllm:time_to_first_token_seconds_bucket{le=\"@\"} @\n\
     vllm:time_to_first_token_seconds_bucket{le=\"+Inf\"} @\n\
     vllm:time_to_first_token_seconds_count @\nvllm:time_to_first_token_seconds_sum @\n\
     vllm:prefix_cache_hits_total @\nvllm:prefix_cache_queries_total @\n\
     process_start_time_seconds @\n",
    "sglang:generation_tokens_total{dp_rank=\"0\"} @\nsglang:num_requests_total{dp_rank=\"0\"} @\n\
     sglang:time_to_first_token_seconds_count{dp_rank=\"0\"} @\n\
     sglang:inter_token_latency_seconds_count{dp_rank=\"1\"} @\n\
     sglang:num_running_reqs @\nsglang:cache_hit_rate @\nsglang:cached_tokens_total @\n",
    "llamacpp:tokens_predicted_total @\nllamacpp:n_decode_total @\nllamacpp:prompt_tokens_total @\n\
     llamacpp:n_busy_slots_per_decode @\nllamacpp:requests_processing @\n",
    "tgi_request_generated_tokens_sum @\ntgi_request_success @\ntgi_batch_current_size @\n",
];
const FIGURES: [&str; 14] = [
    "0",
    "1",
    "7",
    "0.25",
    "1e-300",
    "5e-324",
    "9007199254740992",
    "9007199254740993",
    "1e17",
    "1e308",
    "+Inf",
    "-Inf",
    "NaN",
    "-1",
];

fn reading(page: &str) -> Option<Reading> {
    let mut page = parse(page.as_bytes(), Limits::default()).ok()?;
    let rules = recognise(&page).ok()?;
    let _ = narrow(&mut page, rules, "a");
    Some(read(&page, rules))
}

/// A page with these figures in their turn, and some of its bytes overwritten.
fn page(of: usize, chosen: &[prop::sample::Index], bytes: &[(prop::sample::Index, u8)]) -> String {
    let mut text = String::new();
    for (at, part) in PAGES[of].split('@').enumerate() {
        if at > 0 {
            text.push_str(FIGURES[chosen[at % chosen.len()].index(FIGURES.len())]);
        }
        text.push_str(part);
    }
    let mut text = text.into_bytes();
    for (place, byte) in bytes {
        let place = place.index(text.len());
        text[place] = *byte;
    }
    String::from_utf8_lossy(&text).into_owned()
}

fn is_sound(value: Option<f64>) -> bool {
    value.is_none_or(|value| value.is_finite() && value >= 0.0)
}

proptest! {
    #[test]
    fn no_figure_is_absurd(
        of in 0..PAGES.len(),
        chosen in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 1..20), 2..5),
        bytes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        apart_ns in 1..2_000_000_000_u64,
    ) {
        let pages: Vec<String> = chosen.iter().map(|chosen| page(of, chosen, &bytes)).collect();
        let readings: Vec<Reading> = pages.iter().filter_map(|page| reading(page)).collect();
        let mut track = Track::default();
        let mut remaining = Remaining::new(u64::MAX, None);
        remaining.begins_with(readings.first().and_then(Lifetime::of));
        for (at, reading) in readings.into_iter().enumerate() {
            let stamp = Stamp { at: Nanos(apart_ns * at as u64), half_width: Nanos(apart_ns / 3) };
            if track.push(stamp, reading).is_err() {
                break;
            }
            let window = Window::of(&track, Nanos::ZERO, Nanos::MAX);
            for window in window.iter().flat_map(|one| [one.clone(), one.clone().and(one)]) {
                for figure in figures::FIGURES {
                    let (name, value) = (figure.name, (figure.cell)(&window));
                    prop_assert!(is_sound(value), "{name}: {value:?} of {pages:#?}");
                }
                let tok_s = window.generation.map_or(0.0, |rate| rate.tok_s);
                remaining.add_counts(tok_s, window.grown.get(&Counter::Finished).copied());
                remaining.add_rates([tok_s, tok_s / 2.0]);
            }
            if let Ok(Outlook { samples, mean_tok, left_s, between_s: (least, most), .. }) = remaining.outlook() {
                let all = [Some(samples), Some(mean_tok), Some(left_s), Some(least), most];
                prop_assert!(all.into_iter().all(is_sound), "{:?} of {pages:#?}", remaining.outlook());
            }
        }
    }
}
