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
        sums.2 += u64::from(request.output_tok);
        sums.3 += u128::from(request.at.0);
    }
    sums
}

fn check(name: &str, expect: (u64, u64, u64, u128), last_ns: u64, distinct: u64, notices: usize) {
    let Some(trace) = shared(name) else { return };
    assert_eq!(sums(&trace), expect, "{name}");
    let facts = trace.facts().unwrap();
    assert_eq!((facts.rows_read, facts.rows_kept, facts.rows_moved), (expect.0, expect.0, 0));
    assert_eq!((facts.input_tok, facts.output_tok), (expect.1, expect.2));
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

#[test]
fn strangers() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/traces");
    for (name, part) in [
        ("formats/bailian_thinking_head1.jsonl", "Bailian"),
        ("formats/burstgpt_1_head3.csv", "BurstGPT"),
        ("formats/burstgpt_3_head4.csv", "BurstGPT"),
        ("formats/openai_batch_input.jsonl", "cannot tell"),
        ("formats/otel_simple_chain.json", "cannot tell"),
        ("vidur_splitwise/splitwise_conv.csv", "vidur"),
        ("tracelab/round_trace.jsonl", "TraceLab"),
        ("tracelab/replay_multi_session_example.csv", "cannot tell"),
        ("weka_claude_code/trace_0504.json", "cannot tell"),
        ("servegen/language/m-small/chunk-12-trace.csv", "needs a header"),
        ("lengths/sharegpt_8k_filtered_stats_llama2_tokenizer.csv", "cannot tell"),
    ] {
        let path = path.join(name);
        if !path.exists() {
            return;
        }
        let message = open(Input::File(path), options()).err().unwrap().to_string();
        assert!(message.contains(part), "{name}: {message}");
    }
}
