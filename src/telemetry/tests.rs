//! Pages in, figures out: engines, restarts, replicas, servers in turn. Times are made up.

mod absurd;

use proptest::prelude::*;

use super::exposition::{Limits, parse};
use super::histogram::Percentile;
use super::reading::{Reading, read, recognise};
use super::rules::{Counter, Gauge, Latency, Moves};
use super::track::{SeveralServers, Stamp, Track};
use super::window::Window;
use crate::server::Engine;
use crate::units::Nanos;

fn reading(text: &str) -> Reading {
    let page = parse(text.as_bytes(), Limits::default()).expect(text);
    read(&page, recognise(&page).expect(text))
}

fn at(second: u64) -> Stamp {
    Stamp { at: Nanos::from_secs(second), half_width: Nanos::ZERO }
}

/// A reading each second.
fn track(pages: &[String]) -> Result<Track, SeveralServers> {
    let mut track = Track::default();
    for (second, page) in pages.iter().enumerate() {
        track.push(at(second as u64), reading(page))?;
    }
    Ok(track)
}

fn whole(track: &Track) -> Option<Window> {
    Window::of(track, Nanos::ZERO, Nanos::MAX)
}

fn vllm(generated: u64) -> String {
    format!(
        "# TYPE vllm:generation_tokens_total counter\n\
         vllm:generation_tokens_total{{engine=\"0\"}} {generated}\n\
         vllm:num_requests_running{{engine=\"0\"}} 4\n"
    )
}

fn tok_s(window: &Window) -> f64 {
    window.generation.expect("a rate").tok_s
}

#[test]
fn a_rate_is_growth_over_the_time_between_readings() {
    let track = track(&[vllm(100), vllm(250), vllm(500)]).expect("one server");
    let window = whole(&track).expect("readings");
    let generation = window.generation.expect("a rate");
    assert!((generation.tok_s - 200.0).abs() < 1e-9);
    assert_eq!((generation.moves, generation.is_estimate), (Moves::PerStep, false));
    assert_eq!(generation.error_tok_s, Some(2.0), "a step of four, over two seconds");
    assert_eq!((window.measured, window.restarts), (Nanos::from_secs(2), 0));
}

#[test]
fn windows_that_follow_each_other_share_nothing_and_miss_nothing() {
    let track = track(&[vllm(0), vllm(10), vllm(30), vllm(70)]).expect("one server");
    let grown = |from, to| {
        let window = Window::of(&track, Nanos::from_secs(from), Nanos::from_secs(to));
        window.expect("readings").grown[&Counter::Generation]
    };
    assert!((grown(0, 2) - 30.0).abs() < 1e-9);
    assert!((grown(2, 3) - 40.0).abs() < 1e-9);
    assert!(Window::of(&track, Nanos::from_secs(3), Nanos::from_secs(9)).is_none());
}

#[test]
fn a_restart_is_left_out_and_never_negative() {
    let track = track(&[vllm(5000), vllm(5100), vllm(20), vllm(120)]).expect("one server");
    let window = whole(&track).expect("readings");
    assert!((tok_s(&window) - 100.0).abs() < 1e-9, "{window:?}");
    assert_eq!((window.restarts, window.measured), (1, Nanos::from_secs(2)));
    let around = Window::of(&track, Nanos::from_secs(1), Nanos::from_secs(2));
    assert!(around.is_none(), "nothing but the restart");
}

#[test]
fn a_restart_that_has_caught_up_is_seen_by_the_start_of_the_process() {
    let page = |started: u64, generated| {
        format!("{}process_start_time_seconds {started}\n", vllm(generated))
    };
    let track = track(&[page(10, 100), page(20, 900), page(20, 1000)]).expect("one server");
    let window = whole(&track).expect("readings");
    assert!((tok_s(&window) - 100.0).abs() < 1e-9, "{window:?}");
}

#[test]
fn answers_from_several_servers_in_turn_are_refused() {
    let pages: Vec<String> = [1000, 5000, 1010, 5020, 1030].into_iter().map(vllm).collect();
    let error = track(&pages).expect_err("two servers").to_string();
    assert!(error.contains("counters jump back and forth"), "{error}");
    let page = |started: u64| format!("{}process_start_time_seconds {started}\n", vllm(7));
    let error = track(&[page(20), page(10)]).expect_err("two servers").to_string();
    assert!(error.contains("goes back"), "{error}");
    // A server that dies twice without having done more work in between is one server.
    let dying = [1000, 10, 500, 5, 300].map(vllm);
    assert!(track(&dying).is_ok());
}

#[test]
fn data_parallel_engines_add_up_and_one_of_them_may_restart() {
    let page = |a: u64, b: u64| {
        format!(
            "vllm:generation_tokens_total{{engine=\"0\"}} {a}\n\
             vllm:generation_tokens_total{{engine=\"1\"}} {b}\n\
             vllm:num_requests_running{{engine=\"0\"}} 3\nvllm:num_requests_running{{engine=\"1\"}} 5\n\
             vllm:kv_cache_usage_perc{{engine=\"0\"}} 0.25\nvllm:kv_cache_usage_perc{{engine=\"1\"}} 0.5\n"
        )
    };
    let track = track(&[page(0, 1000), page(100, 1100), page(10_000, 3), page(10_100, 103)]);
    let window = whole(&track.expect("one server")).expect("readings");
    assert!(
        (tok_s(&window) - 200.0).abs() < 1e-9,
        "the fall of one is hidden in the sum: {window:?}"
    );
    assert_eq!(window.gauge(Gauge::Running), Some(8.0));
    assert_eq!(window.gauge(Gauge::KvUse), Some(0.5), "the fullest");
}

#[test]
fn a_replica_that_comes_in_brings_no_past_with_it() {
    let both =
        |a: u64, b: u64| format!("{}vllm:generation_tokens_total{{engine=\"1\"}} {b}\n", vllm(a));
    let track = track(&[vllm(0), vllm(100), both(200, 1_000_000), both(300, 1_000_100)]);
    let window = whole(&track.expect("one server")).expect("readings");
    assert_eq!(window.restarts, 0, "a replica more is no restart");
    // 100 of the one in each second, and of the other in the last.
    assert!((tok_s(&window) - 400.0 / 3.0).abs() < 1e-9, "{window:?}");
}

#[test]
fn a_replica_or_model_that_comes_or_goes_is_no_restart_and_no_other_server() {
    let of = |label: &str, count: u64| {
        let ttft = "vllm:time_to_first_token_seconds";
        format!(
            "vllm:generation_tokens_total{{{label}}} {count}\n{ttft}_count{{{label}}} {count}\n\
             {ttft}_bucket{{{label},le=\"+Inf\"}} {count}\n"
        )
    };
    for labels in [
        ["engine=\"0\"", "engine=\"1\""],
        ["engine=\"0\",model_name=\"a\"", "engine=\"0\",model_name=\"b\""],
    ] {
        let [one, other] = labels;
        let pages = [
            of(one, 100),
            of(one, 200) + &of(other, 5_000),
            of(one, 300) + &of(other, 5_010),
            of(other, 5_020),
            of(other, 5_030),
        ];
        let track = track(&pages).expect("one server");
        let window = whole(&track).expect("readings");
        assert_eq!(window.restarts, 0, "{labels:?}");
        let grown = [100.0, 110.0, 10.0, 10.0].iter().sum::<f64>();
        assert!((window.grown[&Counter::Generation] - grown).abs() < 1e-9, "{window:?}");
        assert!((window.latencies[&Latency::Ttft].count - grown).abs() < 1e-9, "{window:?}");
    }
    // The same under another name is another process.
    let renamed = track(&[of("model_name=\"a\"", 10), of("model_name=\"b\"", 12)]);
    assert!(whole(&renamed.expect("one server")).is_none());
}

#[test]
fn a_start_that_is_no_time_tells_of_no_restart() {
    let page = |started: &str, tok| format!("{}process_start_time_seconds {started}\n", vllm(tok));
    for started in [["NaN"; 3], ["+Inf", "-1", "NaN"], ["7", "NaN", "7"]] {
        let pages = [0, 1, 2].map(|at| page(started[at], 100 * at as u64));
        let window = whole(&track(&pages).expect("one server")).expect("readings");
        assert_eq!((window.restarts, tok_s(&window)), (0, 100.0), "{started:?}");
    }
    let again = [page("10", 100), page("NaN", 200), page("20", 900), page("20", 1000)];
    let window = whole(&track(&again).expect("one server")).expect("readings");
    assert_eq!(window.restarts, 1, "one that began while the page gave no time");
}

#[test]
fn a_reason_that_is_new_counts_from_zero() {
    let page = |stop: u64, length: &str, abort: u64| {
        format!(
            "{}vllm:request_success_total{{engine=\"0\",finished_reason=\"stop\"}} {stop}\n{length}\
             vllm:request_success_total{{engine=\"0\",finished_reason=\"abort\"}} {abort}\n",
            vllm(7)
        )
    };
    let length = "vllm:request_success_total{engine=\"0\",finished_reason=\"length\"} 3\n";
    let track = track(&[page(5, "", 0), page(6, length, 9)]).expect("one server");
    let finished = whole(&track).expect("readings").rate(Counter::Finished);
    assert_eq!(finished, Some(4.0), "those that were given up are not among the finished");
}

#[test]
fn ranks_of_one_model_repeat_and_replicas_add_up() {
    let page = |tok: u64| -> String {
        let ranks = [(0, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0), (1, 1, 0)];
        let lines = ranks.map(|(dp, tp, pp)| {
            let labels = format!("dp_rank=\"{dp}\",tp_rank=\"{tp}\",pp_rank=\"{pp}\"");
            format!(
                "sglang:generation_tokens_total{{{labels}}} {tok}\n\
                 sglang:num_running_reqs{{{labels}}} 7\n"
            )
        });
        lines.concat()
    };
    let track = track(&[page(0), page(100)]).expect("one server");
    let window = whole(&track).expect("readings");
    assert!((tok_s(&window) - 200.0).abs() < 1e-9, "{window:?}");
    assert_eq!(window.gauge(Gauge::Running), Some(14.0));
    assert_eq!(window.generation.expect("a rate").moves, Moves::PerFinished);
}

#[test]
fn what_moves_while_requests_run_is_preferred_to_what_moves_when_they_end() {
    let page = |decoded: u64| {
        format!(
            "sglang:generation_tokens_total 0\nsglang:num_running_reqs 3\n\
             sglang:realtime_tokens_total{{mode=\"decode\"}} {decoded}\n\
             sglang:realtime_tokens_total{{mode=\"prefill_compute\"}} 99999\n"
        )
    };
    let slow = track(&[page(100), page(180)]).expect("one server");
    let generation = whole(&slow).expect("readings").generation.expect("a rate");
    assert!((generation.tok_s - 80.0).abs() < 1e-9);
    assert_eq!(generation.moves, Moves::PerInterval);
    let gaps = |decoded: u64, first: u64, later: u64| {
        let ttft = "sglang:time_to_first_token_seconds_count";
        let itl = "sglang:inter_token_latency_seconds_count";
        format!("{}{ttft} {first}\n{itl} {later}\n", page(decoded))
    };
    let fast = track(&[gaps(0, 5, 500), gaps(40, 8, 590)]).expect("one server");
    let generation = whole(&fast).expect("readings").generation.expect("a rate");
    assert!((generation.tok_s - 93.0).abs() < 1e-9, "{generation:?}");
    assert_eq!((generation.moves, generation.is_estimate), (Moves::PerStep, true));
}

/// Nothing has ended, and 200 are running: that is no rate of zero.
#[test]
fn a_count_at_the_end_of_requests_says_nothing_before_one_has_ended() {
    let page = |running: u64, ended: u64| {
        format!(
            "trtllm_generation_tokens_total {}\ntrtllm_num_requests_running {running}\n\
             trtllm_request_success_total{{finished_reason=\"length\"}} {ended}\n",
            50 * ended
        )
    };
    let of = |pages: &[String]| whole(&track(pages).expect("one server")).expect("readings");
    assert_eq!(of(&[page(200, 7), page(200, 7)]).generation, None);
    let idle = of(&[page(0, 7), page(0, 7)]).generation.expect("a rate");
    assert!(idle.tok_s.abs() < 1e-9);
    let some = of(&[page(200, 7), page(200, 11)]).generation.expect("a rate");
    assert_eq!((some.tok_s, some.error_tok_s), (200.0, Some(200.0)), "four ended: two deviations");
}

/// 300 tokens in 296 steps with a mean of 1.01351 in the batch, as a real server printed it.
#[test]
fn steps_and_busy_places_stand_in_for_tokens_under_way() {
    let page = |steps: u64, mean: f64| {
        format!(
            "llamacpp:tokens_predicted_total 300\nllamacpp:n_decode_total {steps}\n\
             llamacpp:requests_processing 4\nllamacpp:n_busy_slots_per_decode {mean}\n"
        )
    };
    let track = track(&[page(296, 1.013_51), page(396, 1.767_68)]).expect("one server");
    let generation = whole(&track).expect("readings").generation.expect("a rate");
    assert!((generation.tok_s - 400.0).abs() < 0.01, "{generation:?}");
    assert!(generation.is_estimate);
    let error = generation.error_tok_s.expect("known");
    assert!((4.0..4.01).contains(&error), "a step and the sixth digit: {error}");
    // Later in the server's life the sixth digit is worth hundreds of tokens, and that is said.
    let old = page(300_000_000, 3.0);
    let idle = self::track(&[old.clone(), old]).expect("one server");
    let generation = whole(&idle).expect("readings").generation.expect("a rate");
    assert!(generation.tok_s.abs() < 1e-9 && generation.error_tok_s > Some(1000.0));
}

#[test]
fn a_figure_that_is_declared_and_has_not_moved_is_zero_and_not_unknown() {
    let idle =
        "# TYPE sglang:generation_tokens_total counter\nsglang:num_running_reqs 0\n".to_owned();
    let first = format!("{idle}sglang:generation_tokens_total{{m=\"x\"}} 40\n");
    let window =
        whole(&track(&[idle.clone(), idle.clone()]).expect("one server")).expect("readings");
    assert!(tok_s(&window).abs() < 1e-9);
    let window = whole(&track(&[idle, first]).expect("one server")).expect("readings");
    assert!((tok_s(&window) - 40.0).abs() < 1e-9);
    let without = "sglang:num_running_reqs 0\n".to_owned();
    let window = whole(&track(&[without.clone(), without]).expect("one server")).expect("readings");
    assert_eq!(window.generation, None);
}

#[test]
fn no_number_where_a_count_should_be_leaves_that_figure_out() {
    let page = "vllm:generation_tokens_total NaN\nvllm:prompt_tokens_total 7\n\
                vllm:num_requests_running NaN\nvllm:num_requests_waiting +Inf\n";
    let reading = reading(page);
    assert_eq!(reading.faults.len(), 2);
    let waiting = reading.faults[1].to_string();
    assert!(waiting.contains("inf for `vllm:num_requests_waiting`"), "{waiting}");
    let said = reading.faults[0].to_string();
    assert!(said.contains("NaN for the counter `vllm:generation_tokens`"), "{said}");
    assert!(!reading.counters.contains_key(&Counter::Generation) && reading.gauges.is_empty());
    assert!(reading.counters[&Counter::Prompt].values().eq([&7.0]), "the others stay");
}

#[test]
fn a_sample_that_stands_twice_counts_for_nothing() {
    let page = "vllm:generation_tokens_total{a=\"1\",b=\"2\"} 5\nvllm:generation_tokens_total{b=\"2\",a=\"1\"} 6\n";
    let said = reading(page).faults[0].to_string();
    assert!(said.contains("two samples of `vllm:generation_tokens`"), "{said}");
}

#[test]
fn names_with_and_without_total_old_and_new() {
    for (page, engine) in [
        ("vllm:generation_tokens 5\n", Engine::Vllm),
        ("vllm:generation_tokens_total 5\nvllm:generation_tokens_created 1.7e9\n", Engine::Vllm),
        ("trtllm:generation_tokens_total 5\n", Engine::TrtLlm),
        ("trtllm_generation_tokens 5\n", Engine::TrtLlm),
        ("tgi_request_generated_tokens_sum 5\n", Engine::Tgi),
        ("lmdeploy:generation_tokens_total 5\n", Engine::LmDeploy),
        ("dynamo_frontend_output_tokens_total 5\nvllm:generation_tokens_total 9\n", Engine::Dynamo),
        ("litellm_output_tokens_metric_total{model=\"say \\\"hi\\\"\\n\"} 5\n", Engine::LiteLlm),
    ] {
        let reading = reading(page);
        assert_eq!(reading.rules.engine, engine, "{page}");
        let generated: f64 = reading.counters[&Counter::Generation].values().sum();
        assert!((generated - 5.0).abs() < 1e-9, "{page}");
    }
    let page = parse(b"python_info 1\nhttp_requests_total 5\n", Limits::default()).expect("a page");
    let said = recognise(&page).expect_err("no engine").to_string();
    assert!(said.contains("begins with python_info, http_requests_total"), "{said}");
}

#[test]
fn latencies_are_of_what_came_in_between() {
    let page = |fast: u64, all: u64, sum: f64| {
        let name = "vllm:time_to_first_token_seconds";
        let buckets = [("0.1", fast), ("0.5", all), ("+Inf", all)];
        let buckets = buckets
            .map(|(le, count)| format!("{name}_bucket{{engine=\"0\",le=\"{le}\"}} {count}\n"));
        let rest =
            format!("{name}_count{{engine=\"0\"}} {all}\n{name}_sum{{engine=\"0\"}} {sum}\n");
        vllm(7) + &buckets.concat() + &rest
    };
    let track = track(&[page(900, 1000, 100.0), page(900, 1004, 101.0)]).expect("one server");
    let window = whole(&track).expect("readings");
    let ttft = &window.latencies[&Latency::Ttft];
    assert_eq!((ttft.count, ttft.mean()), (4.0, Some(0.25)));
    let expect = Percentile { value: Some(0.1 + 0.4 * 0.5), above: 0.1, up_to: 0.5 };
    assert_eq!(ttft.percentile(0.5), Some(expect));
}

#[test]
fn shares_are_formed_of_sums() {
    let page = |hits: u64, queries: u64, drafted: u64, accepted: u64| {
        format!(
            "{}vllm:prefix_cache_hits_total {hits}\nvllm:prefix_cache_queries_total {queries}\n\
             vllm:spec_decode_num_draft_tokens_total {drafted}\n\
             vllm:spec_decode_num_accepted_tokens_total {accepted}\n",
            vllm(7)
        )
    };
    let one = track(&[page(0, 0, 0, 0), page(90, 100, 8, 2)]).expect("one server");
    let other = track(&[page(0, 0, 0, 0), page(0, 900, 0, 0)]).expect("one server");
    let both = whole(&one).expect("readings").and(&whole(&other).expect("readings"));
    assert_eq!(both.cache_hit_share(), Some(0.09));
    assert_eq!(both.acceptance(), Some(0.25));
    assert_eq!(whole(&other).expect("readings").acceptance(), None, "nothing was drafted");
}

#[test]
fn cached_tokens_are_a_share_of_all_prompt_tokens() {
    let llama = |prompt: u64, cached: u64| {
        format!(
            "llamacpp:prompt_tokens_total {prompt}\nllamacpp:prompt_tokens_cached_total {cached}\n"
        )
    };
    let track_of = |pages: &[String]| whole(&track(pages).expect("one server")).expect("readings");
    let computed = track_of(&[llama(0, 0), llama(75, 25)]);
    assert_eq!(computed.cache_hit_share(), Some(0.25), "its prompt tokens are the computed ones");
    let sglang =
        |page: String| page.replace("llamacpp:prompt_tokens_cached", "sglang:cached_tokens");
    let sglang = |page| sglang(page).replace("llamacpp", "sglang");
    let all = track_of(&[sglang(llama(0, 0)), sglang(llama(75, 25))]);
    assert_eq!(all.cache_hit_share(), Some(25.0 / 75.0));
}

/// Real servers' pages, outside the repository; without them this test sees nothing.
#[test]
fn pages_of_real_servers() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/captures");
    let (engine, counted) = (|reading: &Reading| reading.rules.engine, Counter::Generation);
    for (name, expect, generated) in [
        ("vllm/metrics.raw", Engine::Vllm, 316.0),
        ("vllm-reasoning-spec/metrics.raw", Engine::Vllm, f64::NAN),
        ("llamacpp/metrics.raw", Engine::LlamaCpp, 300.0),
        ("llamacpp/metrics_after_cut.raw", Engine::LlamaCpp, 300.0),
        ("dynamo/metrics.raw", Engine::Dynamo, 296.0),
        ("litellm-vllm/metrics.txt", Engine::LiteLlm, f64::NAN),
        ("dynamo/worker_metrics.txt", Engine::Vllm, 0.0),
    ] {
        let Ok(raw) = std::fs::read(folder.join(name)) else { continue };
        let body = raw.windows(4).position(|end| end == b"\r\n\r\n").map_or(0, |end| end + 4);
        let page = parse(&raw[body..], Limits::default()).expect(name);
        let reading = read(&page, recognise(&page).expect(name));
        assert_eq!(engine(&reading), expect, "{name}");
        assert_eq!(reading.faults, [], "{name}");
        let sum = reading.counters.get(&counted).map_or(0.0, |series| series.values().sum());
        assert!(generated.is_nan() && sum > 0.0 || (sum - generated).abs() < 1e-9, "{name}: {sum}");
    }
}

proptest! {
    /// Whatever a page says, no rate is negative, infinite or no number, and windows add up to the whole.
    #[test]
    fn rates_are_never_negative(counts in prop::collection::vec((0_u64..2000, 1_u64..4), 2..40)) {
        let mut track = Track::default();
        let mut second = 0;
        for (count, seconds) in counts {
            second += seconds;
            if track.push(at(second), reading(&vllm(count))).is_err() {
                break;
            }
        }
        let middle = Nanos::from_secs(second / 2);
        let parts = [(Nanos::ZERO, middle), (middle, Nanos::MAX), (Nanos::ZERO, Nanos::MAX)];
        let windows = parts.map(|(from, to)| Window::of(&track, from, to));
        for window in windows.iter().flatten() {
            let rate = tok_s(window);
            prop_assert!(rate.is_finite() && rate >= 0.0, "{rate}");
        }
        let grown = |window: &Option<Window>| {
            window.as_ref().map_or(0.0, |window| window.grown[&Counter::Generation])
        };
        let [first, second, whole] = &windows;
        prop_assert!((grown(first) + grown(second) - grown(whole)).abs() < 1e-6);
    }
}

#[test]
fn one_answer_of_another_server_is_no_restart() {
    let of = |counts: &[u64]| track(&counts.iter().map(|n| vllm(*n)).collect::<Vec<_>>());
    for (what, counts) in [
        ("one far above", [1_000, 1_100, 71_200, 1_300, 1_400]),
        ("one a little below", [1_000, 1_100, 950, 1_300, 1_400]),
        ("one far below", [10_000, 10_100, 300, 10_300, 10_400]),
    ] {
        let refused = of(&counts).err().map(|error| error.sign);
        assert_eq!(refused, Some("counters jump back and forth"), "{what}");
    }
    let restarted = of(&[10_000, 10_100, 40, 140, 240]).expect("one server");
    let window = whole(&restarted).expect("readings");
    assert_eq!((window.restarts, window.generation.map(|rate| rate.tok_s)), (1, Some(100.0)));
}
