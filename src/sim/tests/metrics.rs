//! What `/metrics` says, held against the truth log.

use super::{CHAT, World, chat, exact, ms, streamed, with};
use crate::sim::settings::Exposition;
use crate::sim::settings::Settings;
use crate::sim::truth::{Ended, TruthRow};

/// The samples of a scrape whose name and labels contain `part`, summed.
fn value(text: &str, part: &str) -> f64 {
    let samples: Vec<f64> = text
        .lines()
        .filter(|line| !line.starts_with('#') && line.contains(part))
        .map(|line| line.rsplit(' ').next().expect("a value").parse().expect(line))
        .collect();
    assert!(!samples.is_empty(), "no {part} in {text}");
    samples.iter().sum()
}

async fn scrape(world: &World) -> String {
    let reply = world.connect().get("/metrics").await;
    assert_eq!(reply.status, 200);
    assert!(reply.head.contains("content-type: text/plain; version=1.0.0; charset=utf-8"));
    reply.body
}

/// Two whole answers of 4 and 40 tokens, and one of 40 that its client leaves at 325 ms: after three
/// tokens, of which the last came at 300.
fn three_requests(world: &World) {
    for tokens in [4, 40] {
        let mut client = world.connect();
        tokio::task::spawn_local(async move { client.post(CHAT, &streamed(tokens)).await });
    }
    let (mut leaver, clock, body) = (world.connect(), world.clock.clone(), streamed(40));
    tokio::task::spawn_local(async move {
        tokio::select! {
            _ = leaver.post(CHAT, &body) => panic!("it left before the end"),
            () = clock.sleep_until(ms(325)) => {}
        }
    });
}

fn sums(truth: &[TruthRow]) -> (f64, f64) {
    let output: u64 = truth.iter().map(|row| row.output_tok).sum();
    let prompt: u64 = truth.iter().filter_map(|row| row.prompt_tok).sum();
    (prompt as f64, output as f64)
}

#[test]
fn vllm_counts_with_each_step_and_no_longer_than_the_client_stays() {
    let (texts, truth) = with(exact(), |world| async move {
        three_requests(&world);
        let mut texts = Vec::new();
        for at in [100, 210, 310, 410, 5_000] {
            world.sleep_until(ms(at)).await;
            texts.push(scrape(&world).await);
        }
        (texts, world.truth())
    });
    let series = |part: &str| texts.iter().map(|text| value(text, part)).collect::<Vec<_>>();
    assert_eq!(series("vllm:num_requests_running{"), [3.0, 3.0, 3.0, 1.0, 0.0]);
    assert_eq!(series("vllm:prompt_tokens_total{"), [0.0, 9.0, 9.0, 9.0, 9.0]);
    assert_eq!(series("vllm:generation_tokens_total{"), [0.0, 3.0, 9.0, 12.0, 47.0]);
    assert_eq!(series("vllm:request_success_total{"), [0.0, 0.0, 0.0, 1.0, 2.0]);
    assert_eq!(series("vllm:time_to_first_token_seconds_count"), [0.0, 3.0, 3.0, 3.0, 3.0]);
    assert_eq!(series("vllm:inter_token_latency_seconds_count"), [0.0, 0.0, 6.0, 9.0, 44.0]);
    assert_eq!(series("vllm:request_generation_tokens_sum"), [0.0, 0.0, 0.0, 4.0, 44.0]);
    assert_eq!(series("vllm:request_generation_tokens_count"), [0.0, 0.0, 0.0, 1.0, 2.0]);
    assert_eq!(series("vllm:request_prompt_tokens_sum"), [0.0, 0.0, 0.0, 3.0, 6.0]);
    let room = f64::from(2_048 * 262_144);
    let usage = series("vllm:kv_cache_usage_perc").into_iter().map(|share| share * room);
    assert_eq!(usage.map(f64::round).collect::<Vec<_>>(), [0.0, 12.0, 18.0, 8.0, 0.0]);

    let (prompt, output) = sums(&truth);
    let last = texts.last().expect("five");
    assert_eq!(truth.iter().filter(|row| row.ended == Ended::Cancelled).count(), 1);
    assert!((value(last, "vllm:prompt_tokens_total") - prompt).abs() < 1e-9);
    assert!((value(last, "vllm:generation_tokens_total") - output).abs() < 1e-9);
    assert!((value(last, "total{engine=\"0\",finished_reason=\"length\"") - 2.0).abs() < 1e-9);
    let up_to = |le: &str| format!("request_generation_tokens_bucket{{engine=\"0\",le=\"{le}\"");
    let counts =
        ["2.0", "5.0", "20.0", "50.0", "200000.0", "+Inf"].map(|le| value(last, &up_to(le)));
    assert_eq!(counts.to_vec(), [0.0, 1.0, 1.0, 2.0, 2.0, 2.0]);
    // Answers of 4 and 40 tokens: 350 ms and 2,150 ms.
    assert!((value(last, "vllm:e2e_request_latency_seconds_sum") - 2.5).abs() < 1e-9);
    assert!(
        (value(last, "vllm:e2e_request_latency_seconds_bucket{engine=\"0\",le=\"0.5\"") - 1.0)
            .abs()
            < 1e-9
    );
}

#[test]
fn sglang_counts_finished_requests_alone() {
    let settings = Settings { metrics: Exposition::Sglang, ..exact() };
    let (texts, truth) = with(settings, |world| async move {
        three_requests(&world);
        let mut texts = Vec::new();
        for at in [310, 410, 5_000] {
            world.sleep_until(ms(at)).await;
            texts.push(scrape(&world).await);
        }
        (texts, world.truth())
    });
    let series = |part: &str| texts.iter().map(|text| value(text, part)).collect::<Vec<_>>();
    assert_eq!(series("sglang:generation_tokens_total{"), [0.0, 4.0, 44.0]);
    assert_eq!(series("sglang:prompt_tokens_total{"), [0.0, 3.0, 6.0]);
    assert_eq!(series("sglang:num_requests_total{"), [0.0, 1.0, 2.0]);
    assert_eq!(series("sglang:num_aborted_requests_total{"), [0.0, 1.0, 1.0]);
    assert_eq!(series("sglang:num_running_reqs{"), [3.0, 1.0, 0.0]);
    assert_eq!(series("sglang:time_to_first_token_seconds_count"), [3.0, 3.0, 3.0]);
    let done: Vec<_> = truth.into_iter().filter(|row| row.ended == Ended::Done).collect();
    let (prompt, output) = sums(&done);
    let last = texts.last().expect("three");
    assert!((value(last, "sglang:prompt_tokens_total") - prompt).abs() < 1e-9);
    assert!((value(last, "sglang:generation_tokens_total") - output).abs() < 1e-9);
    assert!(!last.contains("_created"));
}

#[test]
fn those_that_wait_are_told_from_those_that_run() {
    let settings = Settings { max_running: 2, ..exact() };
    with(settings, |world| async move {
        three_requests(&world);
        world.sleep_until(ms(100)).await;
        let text = scrape(&world).await;
        assert!((value(&text, "vllm:num_requests_running{") - 2.0).abs() < 1e-9);
        assert!((value(&text, "vllm:num_requests_waiting{") - 1.0).abs() < 1e-9);
        assert!((value(&text, "vllm:prompt_tokens_total")).abs() < 1e-9);
    });
}

#[test]
fn every_family_has_its_help_and_type_and_sorted_labels() {
    let settings = Settings { model: "a\"b\\c\nd".to_owned(), ..exact() };
    with(settings, |world| async move {
        let text = scrape(&world).await;
        let mut family = "";
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                family = help.split(' ').next().expect("a name");
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                assert_eq!(kind.split(' ').next(), Some(family), "{line}");
            } else {
                let (name, rest) = line.split_once('{').expect(line);
                assert!(name.starts_with(family), "{line} below {family}");
                assert!(rest.contains(r#"model_name="a\"b\\c\nd"} "#), "{line}");
                assert!(rest.starts_with("engine=\"0\","), "{line}");
            }
        }
        assert!(text.contains("vllm:request_success_total{engine=\"0\",finished_reason=\"abort\""));
        assert!(text.contains("# TYPE vllm:generation_tokens_created gauge"));
        assert!(text.ends_with('\n'));
    });
}

#[test]
fn a_server_may_have_no_metrics() {
    let settings = Settings { metrics: Exposition::Off, ..exact() };
    with(settings, |world| async move {
        assert_eq!(world.connect().get("/metrics").await.status, 404);
        assert_eq!(world.connect().post("/metrics", "").await.status, 405);
    });
}

#[test]
fn answers_in_one_piece_count_as_they_are_made() {
    with(exact(), |world| async move {
        let mut client = world.connect();
        tokio::task::spawn_local(async move { client.post(CHAT, &chat(10, "")).await });
        world.sleep_until(ms(260)).await;
        assert!((value(&scrape(&world).await, "vllm:generation_tokens_total") - 2.0).abs() < 1e-9);
    });
}
