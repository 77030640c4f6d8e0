//! The public files, where a checkout has them beside it; sums computed apart, in Python.

use super::*;

fn shared(name: &str) -> Option<Trace> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/traces").join(name);
    path.exists().then(|| open(Input::File(path), options()).unwrap())
}

/// Rows, input tokens, output tokens, sum of offsets in ns.
fn sums(trace: &Trace) -> (u64, u64, u64, u128) {
    let mut sums = (0, 0, 0, 0);
    for (place, request) in (0u64..).zip(requests(trace)) {
        assert_eq!(request.row, place);
        sums.0 += 1;
        sums.1 += u64::from(request.input_tok);
        sums.2 += u64::from(request.output_tok.unwrap());
        sums.3 += u128::from(request.at.0);
    }
    sums
}

fn check(name: &str, expect: (u64, u64, u64, u128), last_ns: u64, distinct: u64, notices: usize) {
    let Some(trace) = shared(name) else { return };
    assert_eq!(sums(&trace), expect, "{name}");
    let facts = trace.facts().unwrap();
    assert_eq!((facts.rows_read, facts.rows_kept, facts.rows_moved), (expect.0, expect.0, 0));
    assert_eq!((facts.input_tok, facts.output.total().unwrap()), (expect.1, expect.2));
    assert_eq!((facts.first, facts.last.0, facts.distinct_times), (Nanos::ZERO, last_ns, distinct));
    assert_eq!(trace.notices().len(), notices, "{name}: {:?}", trace.notices());
}

#[test]
fn azure_2023() {
    check(
        "azure2023/AzureLLMInferenceTrace_code.csv",
        (8_819, 18_059_974, 245_896, 13_327_267_954_592_000),
        3_435_948_056_000,
        8_819,
        0,
    );
    check(
        "azure2023/AzureLLMInferenceTrace_conv.csv",
        (19_366, 22_361_870, 4_088_665, 33_473_340_385_407_000),
        3_501_721_937_000,
        19_366,
        0,
    );
}

#[test]
fn azure_of_later_years() {
    for (name, notices) in [
        ("azure2024_code_head5.csv", 0),
        ("azure2024_conv_head5.csv", 0),
        ("azure_lmm2025_head5.csv", 1),
    ] {
        let Some(trace) = shared(&format!("formats/{name}")) else { return };
        assert_eq!((requests(&trace).len(), trace.notices().len()), (5, notices), "{name}");
    }
}

#[test]
fn mooncake_conversation() {
    let name = "mooncake/conversation_trace.jsonl";
    let expect = (12_031, 144_793_823, 4_122_048, 22_224_626_588_000_000);
    check(name, expect, 3_536_999_000_000, 1_180, 1);
    let Some(trace) = shared(name) else { return };
    let ids: Vec<_> = requests(&trace).into_iter().filter_map(|row| row.prefix).collect();
    assert_eq!(ids.iter().map(|prefix| prefix.blocks.len()).sum::<usize>(), 288_500);
    assert_eq!(ids.iter().flat_map(|prefix| &prefix.blocks).sum::<u64>(), 23_407_000_830);
}

/// A question about the unit of times is for traces that are not as any of these.
#[test]
fn no_public_file_is_asked_about_its_unit() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/traces");
    let Ok(folders) = std::fs::read_dir(&folder) else { return };
    let files = folders.flatten().filter_map(|own| std::fs::read_dir(own.path()).ok());
    let mut opened = 0;
    for file in files.flatten().flatten().filter(|file| file.path().is_file()) {
        let Ok(trace) = open(Input::File(file.path()), options()) else { continue };
        opened += 1;
        let asked = trace.notices().iter().find(|line| line.contains("--time-unit"));
        assert_eq!(asked, None, "{}", file.path().display());
    }
    assert!(opened >= 20, "{opened} files");
}

/// Rows, tokens and last offset of a file of any format, in the order of its notices.
#[track_caller]
fn check_sums(
    name: &str,
    format: Format,
    expect: (u64, u64, u64, u128),
    last_ns: u64,
    distinct: u64,
) -> Option<Trace> {
    let trace = shared(name)?;
    assert_eq!(trace.format(), format, "{name}");
    let facts = trace.facts().unwrap().clone();
    let all = requests(&trace);
    let sum = |of: fn(&Request) -> u64| all.iter().map(of).sum::<u64>();
    let (input, output) =
        (sum(|row| row.input_tok.into()), sum(|row| row.output_tok.unwrap().into()));
    let offsets: u128 = all.iter().map(|row| u128::from(row.at.0)).sum();
    assert_eq!((all.len() as u64, input, output, offsets), expect, "{name}");
    assert_eq!((facts.rows_read, facts.rows_kept), (expect.0, expect.0), "{name}");
    assert_eq!((facts.input_tok, facts.output.total().unwrap()), (expect.1, expect.2), "{name}");
    assert_eq!((facts.last.0, facts.distinct_times), (last_ns, distinct), "{name}");
    Some(trace)
}

fn ids(trace: &Trace) -> usize {
    requests(trace).iter().filter_map(|row| row.prefix.as_ref()).map(|own| own.blocks.len()).sum()
}

#[test]
fn burstgpt() {
    let format = Format::BurstGpt;
    let first = (3, 1_976, 524, 153_000_000_000);
    check_sums("formats/burstgpt_1_head3.csv", format, first, 113_000_000_000, 3);
    let third = (4, 3_656, 776, 277_000_000_000);
    let trace = check_sums("formats/burstgpt_3_head4.csv", format, third, 144_000_000_000, 4);
    let Some(trace) = trace else { return };
    let rows = requests(&trace);
    assert_eq!(rows[0].session.as_deref(), Some("1722ac82-0a46-4bf0-aa08-89794e7a2b3f"));
    assert_eq!((rows[1].class.as_deref(), rows[1].turn), (Some("ChatGPT"), Some(1)));
}

#[test]
fn vidurs_noisy_seconds_are_azures_ticks() {
    check_sums(
        "vidur_splitwise/splitwise_conv.csv",
        Format::Lengths,
        (19_366, 22_361_870, 4_088_665, 33_473_340_385_407_000),
        3_501_721_937_000,
        19_366,
    );
    check_sums(
        "vidur_splitwise/splitwise_code.csv",
        Format::Lengths,
        (8_819, 18_059_974, 245_896, 13_327_267_954_592_000),
        3_435_948_056_000,
        8_819,
    );
}

#[test]
fn lengths_without_times() {
    for (name, expect) in [
        (
            "lengths/arxiv_summarization_stats_llama2_tokenizer_filtered_v2.csv",
            (28_257, 73_131_321, 8_234_948, 0),
        ),
        (
            "lengths/sharegpt_8k_filtered_stats_llama2_tokenizer.csv",
            (30_731, 71_911_571, 13_481_988, 0),
        ),
    ] {
        let Some(trace) = check_sums(name, Format::Lengths, expect, 0, 1) else { return };
        assert_eq!(trace.clock(), TraceClock::Absent);
    }
}

#[test]
fn tracelab() {
    let replay = Format::TraceLabReplay;
    for (name, expect, last_ns, distinct, waits_ms) in [
        ("multi_session_example", (8, 5_308, 448, 1_900_000_000), 500_000_000, 3, None),
        (
            "multi_session_large",
            (303, 1_150_397, 58_678, 1_499_283_000_000),
            9_994_000_000,
            48,
            None,
        ),
        // The pause after the last of its 11 rounds has no round to wait.
        ("session_workload_example", (11, 535_277, 24_798, 0), 0, 1, Some(45_098)),
    ] {
        let name = format!("tracelab/replay_{name}.csv");
        let Some(trace) = check_sums(&name, replay, expect, last_ns, distinct) else { return };
        if let Some(waits_ms) = waits_ms {
            let waits: u64 =
                requests(&trace).iter().filter_map(|row| row.think).map(|ns| ns.0).sum();
            assert!(waits <= waits_ms * 1_000_000 && waits > 0);
            assert_eq!(trace.clock(), TraceClock::PerSession);
        }
    }
    check_sums(
        "tracelab/round_trace.jsonl",
        Format::TraceLab,
        (19, 514_012, 11_335, 62_049_980_355_000_000),
        6_205_051_678_000_000,
        19,
    );
}

#[test]
fn claude_code_sessions() {
    let mut all = 0;
    for (name, expect, last_s, blocks) in [
        ("0067", (40, 4_415_955, 10_239, 82_918_000_000_000), 6_968, 68_979),
        ("0089", (5, 740_487, 3_535, 777_000_000_000), 311, 11_568),
        ("0177", (4, 3_428_752, 1_517, 456_000_000_000), 210, 53_571),
        ("0225", (40, 4_383_846, 9_244, 185_777_000_000_000), 6_999, 68_475),
        // Two sub-agents.
        ("0291", (32, 2_254_119, 19_504, 29_252_936_000_000), 1_363, 35_209),
        ("0361", (24, 2_881_895, 7_013, 11_728_000_000_000), 1_045, 45_015),
        ("0504", (3, 33_739, 337, 3_088_000_000_000), 3_075, 525),
        ("0569", (44, 2_775_514, 17_377, 19_508_000_000_000), 1_498, 43_346),
        ("0613", (4, 72_335, 502, 202_000_000_000), 92, 1_128),
        ("0715", (68, 5_163_723, 28_201, 148_809_000_000_000), 5_578, 80_646),
    ] {
        let file = format!("weka_claude_code/trace_{name}.json");
        let rows = expect.0;
        let trace = check_sums(&file, Format::Weka, expect, last_s * 1_000_000_000, rows);
        let Some(trace) = trace else { return };
        assert_eq!(ids(&trace), blocks, "{name}");
        all += rows;
    }
    let Some(folder) = shared("weka_claude_code") else { return };
    let facts = folder.facts().unwrap();
    assert_eq!((facts.rows_read, facts.rows_kept, facts.clock), (all, all, TraceClock::PerSession));
    let rows = requests(&folder);
    assert!(rows.is_sorted_by_key(|row| row.at));
    let names: std::collections::HashSet<_> = rows.iter().map(|row| row.session.clone()).collect();
    assert_eq!(names.len(), 12, "ten sessions and two sub-agents");
}

#[test]
fn single_rows_and_samples() {
    let name = "formats/bailian_thinking_head1.jsonl";
    let Some(trace) = check_sums(name, Format::Bailian, (1, 502, 1_494, 0), 0, 1) else { return };
    assert_eq!(ids(&trace), 32);
    let head = "formats/azure_head20_inference_perf.csv";
    assert_eq!(requests(&shared(head).unwrap()).len(), 20);
    for (name, rows, last_ns) in [
        ("formats/otel_simple_chain.json", 3, 6_000_000_000),
        ("formats/otel_code_review_workflow.json", 15, 27_000_000_000),
    ] {
        let trace = shared(name).unwrap();
        let facts = trace.facts().unwrap();
        assert_eq!((trace.format(), facts.rows_kept, facts.last.0), (Format::Otel, rows, last_ns));
        let worded = |row: &Request| row.content.as_ref().is_some_and(|own| own.messages.is_some());
        assert!(requests(&trace).iter().all(worded), "{name}");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/traces");
    for (name, part) in [
        ("formats/openai_batch_input.jsonl", "cannot tell"),
        ("servegen/language/m-small/chunk-12-trace.csv", "needs a header"),
    ] {
        let message = open(Input::File(path.join(name)), options()).err().unwrap().to_string();
        assert!(message.contains(part), "{name}: {message}");
    }
}
