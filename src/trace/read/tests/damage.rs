//! Bad rows of every format: file, line, field, value, remedy. And damage of any kind, which may be
//! refused but never ends the program.

use proptest::prelude::*;

use super::*;

/// A good file of each format, by name.
pub(super) fn samples() -> Vec<(Format, String)> {
    let weka = r#"{"id": "one", "block_size": 64, "hash_id_scope": "local", "requests": [{"t": 0.5, "type": "n", "model": "m", "in": 130, "out": 5, "hash_ids": [1, 2], "think_time": 1.5}]}"#;
    vec![
        (Format::Native, "at_s,input_tok,output_tok,session,turn\n0,5,5,a,1\n1.5,6,7,a,2\n".into()),
        (Format::Native, "{\"at_s\": 0.5, \"input_tok\": 5, \"output_tok\": 5, \"blocks\": [1]}\n".into()),
        (Format::Azure, format!("{AZURE}2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,1,2\n")),
        (
            Format::BurstGpt,
            "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
             5.0,a,43,GPT-4,906,446,1352,x\n9,,1,GPT-4,1,2,3,x\n"
                .into(),
        ),
        (Format::Mooncake, MOONCAKE.repeat(2)),
        (
            Format::Mooncake,
            "{\"timestamp\": 1, \"session_id\": \"s\", \"text_input\": \"words\", \"output_length\": 3}\n\
             {\"session_id\": \"s\", \"delay\": 5, \"messages\": [{}], \"output_length\": 3}\n"
                .into(),
        ),
        (
            Format::Bailian,
            "{\"chat_id\": 0, \"parent_chat_id\": -1, \"timestamp\": 0.5, \"input_length\": 17, \
             \"output_length\": 2, \"type\": \"text\", \"turn\": 1, \"hash_ids\": [1, 2]}\n"
                .into(),
        ),
        (
            Format::RagPulse,
            "{\"timestamp\": \"5\", \"input_length\": 300, \"output_length\": 9, \"hash_ids\": \
             {\"sys_prompt\": [1], \"history\": []}, \"session_id\": \"a\"}\n"
                .into(),
        ),
        (Format::Weka, weka.to_owned() + "\n"),
        (
            Format::TraceLab,
            "{\"session_id\": \"s\", \"round_index\": 0, \"model\": \"m\", \"input_tokens_total\": 640, \
             \"prefix_tokens\": 64, \"output_tokens\": 9, \"timing_events\": [{\"timestamp\": \
             \"2026-06-01T05:40:20.151Z\"}]}\n"
                .into(),
        ),
        (
            Format::TraceLabReplay,
            "session_id,arrival_time,round_idx,prefix_len,input_len,output_len,tool_wait_after_ms\n\
             0,100,0,0,640,64,250\n0,100,1,640,128,64,0\n"
                .into(),
        ),
        (Format::Lengths, "arrived_at,num_prefill_tokens,num_decode_tokens\n0.5,4808,10\n".into()),
        (
            Format::Otel,
            "{\"spans\": [{\"start_time\": \"2026-02-25T10:00:00.5\", \"attributes\": \
             {\"gen_ai.operation.name\": \"chat\", \"gen_ai.usage.input_tokens\": 7, \
             \"gen_ai.usage.output_tokens\": 8}}]}\n"
                .into(),
        ),
        (
            Format::LiteLlm,
            "{\"startTime\": \"2025-01-01 10:00:00.25\", \"prompt_tokens\": 5, \"completion_tokens\": 7, \
             \"call_type\": \"acompletion\"}\n"
                .into(),
        ),
        (
            Format::Dynamo,
            "{\"schema\": \"dynamo.request.trace.v1\", \"event_type\": \"request_end\", \"request\": \
             {\"request_received_ms\": 1700000000000, \"output_tokens\": 3, \"input_tokens\": 130, \"replay\": \
             {\"trace_block_size\": 64, \"input_length\": 130, \"input_sequence_hashes\": [5, 6]}}}\n"
                .into(),
        ),
        (
            Format::SgLang,
            "{\"timestamp\": \"2025-09-10T19:10:00.1\", \"event\": \"request.finished\", \"rid\": \"a\", \"out\": \
             {\"meta_info\": {\"prompt_tokens\": 11, \"completion_tokens\": 4, \"e2e_latency\": 1.5}}}\n"
                .into(),
        ),
    ]
}

#[test]
fn every_sample_is_told_apart_and_read() {
    for (format, text) in samples() {
        let trace = opened(text.as_bytes(), options());
        assert_eq!(trace.format(), format, "{text}");
        assert!(!requests(&trace).is_empty(), "{text}");
        let forced = ReadOptions { format: Some(format), ..options() };
        assert_eq!(sketch(&opened(text.as_bytes(), forced)), sketch(&trace));
    }
}

/// Replaces a part of the format's last sample and expects every part of the message.
#[track_caller]
fn check_bad(format: Format, part: &str, bad: &str, expect: &[&str]) {
    let (_, text) = samples().into_iter().rev().find(|(own, _)| *own == format).unwrap();
    assert!(text.contains(part), "{part} is not in {text}");
    let text = text.replacen(part, bad, 1);
    let options = ReadOptions { format: Some(format), ..options() };
    let file = Written::new(text.as_bytes());
    let message = file.open(options).err().unwrap_or_else(|| panic!("{text}")).to_string();
    let name = file.path.display().to_string();
    for expect in [&[&*name, "line "], expect].concat() {
        assert!(message.contains(expect), "{expect:?} is not in: {message}");
    }
}

#[test]
fn bad_values_of_every_format_name_place_field_value_and_remedy() {
    let check = check_bad;
    check(Format::BurstGpt, "906", "9x6", &["line 2", "`Request tokens`", "`9x6`", "whole number"]);
    check(Format::BurstGpt, "5.0,a", "-5.0,a", &["`Timestamp`", "negative", "seconds"]);
    check(Format::BurstGpt, ",x\n9", "\n9", &["line 2", "7 fields, the header 8"]);
    check(Format::Mooncake, "\"timestamp\": 1, ", "", &["`timestamp`", "missing", "`delay`"]);
    check(Format::Mooncake, "\"text_input\": \"words\", ", "", &["`input_length`", "`text_input`"]);
    check(
        Format::Mooncake,
        "\"words\"",
        "\"w\", \"messages\": []",
        &["more than once", "keep one"],
    );
    check(
        Format::Bailian,
        "[1, 2]",
        "[1]",
        &["`hash_ids`", "1 ids", "blocks of 16", "--block-tok"],
    );
    check(Format::Bailian, "\"chat_id\": 0", "\"chat_id\": 0.5", &["`chat_id`", "`0.5`", "whole"]);
    check(Format::RagPulse, "\"5\"", "\"five\"", &["`timestamp`", "`five`", "seconds"]);
    check(Format::Weka, "[1, 2]", "[1, 2, 3]", &["3 ids", "blocks of 64 need 2", "--block-tok"]);
    check(Format::Weka, "\"block_size\": 64, ", "", &["`block_size`", "--block-tok"]);
    check(Format::Weka, "\"in\": 130, ", "", &["`in`", "request 0 of `one`", "missing"]);
    check(Format::Weka, "0.5, ", "-0.5, ", &["`t`", "negative"]);
    check(Format::TraceLab, "64, ", "6400, ", &["`prefix_tokens`", "6400", "640"]);
    check(Format::TraceLab, "2026-06-01T", "2026-06-01X", &["`timing_events`", "write it as"]);
    check(Format::TraceLabReplay, ",640,64,", ",640,,", &["line 2", "`output_len`", "missing"]);
    check(Format::Lengths, "4808", "48.5", &["line 2", "`num_prefill_tokens`", "`48.5`"]);
    check(Format::Otel, "2026-02", "2026-22", &["`start_time`", "month"]);
    check(
        Format::LiteLlm,
        "\"prompt_tokens\": 5",
        "\"prompt_tokens\": -5",
        &["`prompt_tokens`", "`-5`"],
    );
    check(Format::LiteLlm, "2025-01-01 ", "2025-01-41 ", &["`startTime`", "day"]);
    check(Format::Dynamo, "[5, 6]", "[5]", &["`input_sequence_hashes`", "--block-tok"]);
    check(Format::Dynamo, "\"trace_block_size\": 64, ", "", &["`trace_block_size`", "--block-tok"]);
    check(
        Format::Dynamo,
        "\"request_received_ms\": 1700000000000, ",
        "",
        &["`request_received_ms`"],
    );
    check(
        Format::SgLang,
        "\"prompt_tokens\": 11",
        "\"prompt_tokens\": \"11\"",
        &["`prompt_tokens`", "quotes"],
    );
    check(Format::SgLang, "\"rid\": \"a\", ", "", &["`rid`", "missing"]);
}

#[test]
fn a_document_that_breaks_off_says_so() {
    for format in [Format::Weka, Format::Otel] {
        let (_, text) = samples().into_iter().find(|(own, _)| *own == format).unwrap();
        let cut = &text[..text.len() / 2];
        let options = ReadOptions { format: Some(format), ..options() };
        let message = Written::new(cut.as_bytes()).open(options).err().unwrap().to_string();
        assert!(message.contains("the file ends in the middle"), "{message}");
    }
}

#[test]
fn entries_without_a_request_are_no_trace() {
    let (_, text) = samples().into_iter().find(|(own, _)| *own == Format::LiteLlm).unwrap();
    let text = text.replace("acompletion", "aembedding");
    let message = Written::new(text.as_bytes()).open(options()).err().unwrap().to_string();
    assert!(message.contains("none of its 1 entries"), "{message}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Any damage to a good file is read or refused, as a file, in a walk and as a stream.
    #[test]
    fn damage_never_panics(
        place in any::<prop::sample::Index>(),
        cuts in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..4), 1..4),
    ) {
        let samples = samples();
        let (format, text) = place.get(&samples);
        let mut bytes = text.clone().into_bytes();
        for (at, byte, kind) in cuts {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => { bytes.remove(at); }
                2 => bytes.insert(at, byte),
                _ => bytes.truncate(at),
            }
        }
        for format in [None, Some(*format)] {
            let options = ReadOptions { format, failed: Failed::Keep, ..ReadOptions::default() };
            if let Ok(trace) = stream(&bytes, options.clone()) {
                trace.rows().unwrap().for_each(drop);
            }
            let file = Written::new(&bytes);
            if let Ok(trace) = file.open(options.clone()) {
                let rows = trace.rows().unwrap().map(Result::unwrap).count() as u64;
                let facts = trace.facts().unwrap();
                prop_assert_eq!(rows, facts.rows_kept);
                prop_assert!(facts.rows_kept + facts.rows_skipped <= facts.rows_read);
            }
            let mut walked = 0_u64;
            let _ = walk(&Input::File(file.path.clone()), &options, &mut |_| {
                walked += 1;
                std::ops::ControlFlow::Continue(())
            });
            prop_assert!(walked <= 10);
        }
    }
}
