//! Chunks by table: what is a token event, of which kind, and what else a chunk says.

use std::borrow::Cow;

use super::*;
use crate::record::{Kind, Usage};

fn chunk(data: &str) -> Chunk<'_> {
    match parse(data.as_bytes()) {
        Ok(Parsed::Chunk(chunk)) => chunk,
        other => panic!("{data}: {other:?}"),
    }
}

fn delta(fields: &str) -> String {
    format!(r#"{{"id":"x","choices":[{{"index":0,"delta":{fields},"finish_reason":null}}]}}"#)
}

fn check_delta(fields: &str, expect: Option<Kind>) {
    assert_eq!(chunk(&delta(fields)).kind, expect, "{fields}");
}

#[test]
fn text_of_any_kind_is_a_token_event() {
    check_delta(r#"{"content":"a"}"#, Some(Kind::Content));
    check_delta(r#"{"content":" "}"#, Some(Kind::Content));
    check_delta(r#"{"content":"\n"}"#, Some(Kind::Content));
    check_delta(r#"{"content":"\""}"#, Some(Kind::Content));
    check_delta(r#"{"content":"\ud83d"}"#, Some(Kind::Content));
    check_delta(r#"{"refusal":"no"}"#, Some(Kind::Content));
    check_delta(r#"{"text":"a"}"#, Some(Kind::Content));
    check_delta(r#"{"reasoning":"a"}"#, Some(Kind::Reasoning));
    check_delta(r#"{"reasoning_content":"a","content":null}"#, Some(Kind::Reasoning));
    check_delta(r#"{"reasoning":"a","reasoning_content":"a","content":""}"#, Some(Kind::Reasoning));
    check_delta(r#"{"reasoning":"a","content":"b"}"#, Some(Kind::Content));
    let completion = |text| format!(r#"{{"choices":[{{"index":0,"text":{text}}}]}}"#);
    assert_eq!(chunk(&completion("\"a\"")).kind, Some(Kind::Content));
    assert_eq!(chunk(&completion("\"\"")).kind, None);
    assert_eq!(chunk(&completion("null")).kind, None);
}

#[test]
fn tool_calls_with_a_name_or_arguments_are_token_events() {
    let tool =
        |function: &str| format!(r#"{{"tool_calls":[{{"index":0,"function":{function}}}]}}"#);
    check_delta(&tool(r#"{"name":"f","arguments":""}"#), Some(Kind::Tool));
    check_delta(&tool(r#"{"arguments":"{\""}"#), Some(Kind::Tool));
    check_delta(&tool(r#"{"name":null,"arguments":"1"}"#), Some(Kind::Tool));
    check_delta(&tool(r#"{"arguments":{"a":1}}"#), Some(Kind::Tool));
    check_delta(&tool(r#"{"name":"","arguments":""}"#), None);
    check_delta(&tool(r#"{"arguments":{}}"#), None);
    check_delta(&tool("null"), None);
    check_delta(r#"{"tool_calls":[{"index":0},{"function":{"name":"g"}}]}"#, Some(Kind::Tool));
    check_delta(r#"{"tool_calls":[],"content":null}"#, None);
    check_delta(r#"{"tool_calls":null}"#, None);
    check_delta(r#"{"tool_calls":{"function":{"name":"f"}}}"#, None);
    check_delta(r#"{"function_call":{"name":"f"}}"#, Some(Kind::Tool));
    check_delta(r#"{"function_call":{"arguments":""}}"#, None);
    check_delta(r#"{"reasoning":"a","tool_calls":[{"function":{"name":"f"}}]}"#, Some(Kind::Tool));
}

#[test]
fn openers_and_empty_chunks_are_none() {
    for fields in [
        r#"{"role":"assistant","content":""}"#,
        r#"{"role":"assistant","content":null}"#,
        r#"{"role":"assistant"}"#,
        r#"{"content":7}"#,
        r#"{"content":{"text":"a"}}"#,
        "{}",
        "null",
        "[]",
    ] {
        check_delta(fields, None);
    }
    for data in [
        "{}",
        r#"{"choices":[]}"#,
        r#"{"choices":null}"#,
        r#"{"choices":{}}"#,
        r#"{"choices":[{"index":0}]}"#,
        r#"{"choices":[null,3,"a"]}"#,
        r#"{"id":7,"choices":[{"delta":null,"finish_reason":""}],"usage":null}"#,
        r#"{"choices":[{"message":{"content":"the whole of it again"}}]}"#,
        "",
        "  ",
    ] {
        assert_eq!(chunk(data), Chunk::default(), "{data}");
    }
}

/// Mistral sends content as typed parts, with thinking among them.
#[test]
fn content_may_be_parts() {
    check_delta(r#"{"content":[{"type":"text","text":"a"}]}"#, Some(Kind::Content));
    check_delta(
        r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]}]}"#,
        Some(Kind::Reasoning),
    );
    check_delta(r#"{"content":[{"type":"thinking","thinking":"a"}]}"#, Some(Kind::Reasoning));
    check_delta(
        r#"{"content":[{"type":"thinking","thinking":"a"},{"type":"text","text":"b"}]}"#,
        Some(Kind::Content),
    );
    check_delta(r#"{"content":["a"]}"#, Some(Kind::Content));
    check_delta(r#"{"content":[{"type":"thinking","thinking":[]}, {"text":""}]}"#, None);
    check_delta(r#"{"content":[]}"#, None);
}

#[test]
fn any_choice_counts_and_the_first_reason_stands() {
    let data = r#"{"choices":[{"index":0,"delta":{},"finish_reason":null},
        {"index":1,"delta":{"content":"a"},"finish_reason":"stop"},
        {"index":2,"delta":{"reasoning":"b"},"finish_reason":"length"}]}"#;
    let chunk = chunk(data);
    assert_eq!(chunk.kind, Some(Kind::Content));
    assert!(chunk.is_answer());
    assert_eq!(chunk.finish_reason.as_deref(), Some("stop"));
}

#[test]
fn usage_is_read_under_all_its_names() {
    let check = |usage: &str, expect: [Option<u64>; 4]| {
        let data = format!(r#"{{"choices":[],"usage":{usage}}}"#);
        let got = chunk(&data).usage;
        let expect = Usage {
            input_tok: expect[0],
            output_tok: expect[1],
            cached_tok: expect[2],
            reasoning_tok: expect[3],
            running: false,
        };
        assert_eq!(got.unwrap_or_default(), expect, "{usage}");
        assert_eq!(got.is_none(), expect == Usage::default(), "{usage}");
    };
    check(r#"{"prompt_tokens":1,"completion_tokens":2}"#, [Some(1), Some(2), None, None]);
    check(
        r#"{"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":4}}"#,
        [None, None, Some(3), Some(4)],
    );
    check(r#"{"prompt_cache_hit_tokens":3,"reasoning_tokens":4}"#, [None, None, Some(3), Some(4)]);
    check(
        r#"{"prompt_tokens":12.0,"completion_tokens":1e2,"prompt_tokens_details":null}"#,
        [Some(12), Some(100), None, None],
    );
    check(
        r#"{"prompt_tokens":-1,"completion_tokens":99999999999999999999,"reasoning_tokens":1e400}"#,
        [None; 4],
    );
    check(r#"{"prompt_tokens":"12","completion_tokens":null,"x":[{}]}"#, [None; 4]);
    check(
        r#"{"prompt_tokens":true,"completion_tokens":5,"prompt_tokens_details":7}"#,
        [None, Some(5), None, None],
    );
    check("{}", [None; 4]);
    check("null", [None; 4]);
    check("7", [None; 4]);
    check(r#"[{"completion_tokens":5}]"#, [None; 4]);
}

#[test]
fn usage_before_the_end_is_running() {
    let running = |delta: &str, reason: &str, count: u32| {
        let data = format!(
            r#"{{"choices":[{{"delta":{delta},"finish_reason":{reason}}}],"usage":{{"completion_tokens":{count}}}}}"#
        );
        chunk(&data).usage.expect("usage").running
    };
    assert!(running(r#"{"content":"a"}"#, "null", 3));
    assert!(running(r#"{"reasoning":"a"}"#, "\"\"", 3));
    assert!(running(r#"{"role":"assistant","content":""}"#, "null", 0));
    assert!(!running(r#"{"content":"a"}"#, "\"stop\"", 3), "one event may be the whole answer");
    assert!(!running("{}", "null", 3), "LiteLLM's last chunk");
    assert!(!chunk(r#"{"usage":{"completion_tokens":3}}"#).usage.expect("usage").running);
}

#[test]
fn errors_inside_a_stream() {
    let check = |data: &str, expect: Option<&str>| {
        assert_eq!(chunk(data).error.as_deref(), expect, "{data}");
    };
    check(r#"{"error":{"message":"boom","type":"x","code":500}}"#, Some("boom"));
    check(r#"{"error":"boom"}"#, Some("boom"));
    check(r#"{"error":{"code":500}}"#, Some(r#"{"code":500}"#));
    check(r#"{"error":"a\nb\u0007 c"}"#, Some("a b c"));
    check(r#"{"object":"error","message":"boom","type":"x","code":400}"#, Some("boom"));
    check(r#"{"object":"error"}"#, Some("an error without a message"));
    check(r#"{"message":"boom","type":"Internal","code":500}"#, Some("boom"));
    check(r#"{"detail":"boom"}"#, Some("boom"));
    check(r#"{"choices":[],"error":{"message":"boom"}}"#, Some("boom"));
    check(r#"{"choices":[],"error":null}"#, None);
    check(r#"{"choices":[],"error":{}}"#, None);
    check(r#"{"choices":[],"error":false,"message":"all is well"}"#, None);
    check(r#"{"message":""}"#, None);
    let with_text = r#"{"error":"boom","choices":[{"delta":{"content":"a"}}]}"#;
    assert_eq!(chunk(with_text).kind, Some(Kind::Content));

    for (data, expect) in [
        ("{\"message\":\"boom\",\"choices\":[]}", "boom"),
        ("out of memory", "out of memory"),
        ("{\"error\":\"boom\"}", "boom"),
        ("", "empty body"),
        ("[DONE]", "[DONE]"),
    ] {
        let Ok(Parsed::Chunk(chunk)) = parse_event(b"error", data.as_bytes()) else {
            panic!("{data}")
        };
        assert_eq!(chunk.error.as_deref(), Some(expect), "{data}");
    }
}

#[test]
fn done_and_what_is_no_json() {
    for done in [&b"[DONE]"[..], b" [DONE]", b"[DONE] "] {
        assert_eq!(parse(done), Ok(Parsed::Done));
    }
    for data in ["{", "[1]", "7", "\"a\"", "null", "hello\nworld", r#"{"a":1}{"b":2}"#, "[DONE]]"] {
        let message = parse(data.as_bytes()).expect_err(data).to_string();
        assert!(message.starts_with("an event of the stream is no JSON object ("), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }
    let long = parse("x".repeat(1 << 20).as_bytes()).expect_err("no JSON").to_string();
    assert!(long.chars().count() < 200, "{long}");
}

#[test]
fn bytes_that_are_no_utf8_are_read_all_the_same() {
    let text = br#"{"choices":[{"text":"XX"}]}"#.map(|byte| if byte == b'X' { 0xff } else { byte });
    let Ok(Parsed::Chunk(chunk)) = parse(&text) else { panic!("a chunk") };
    assert_eq!(chunk.kind, Some(Kind::Content));
}

#[test]
fn ids_and_reasons_are_borrowed() {
    let data = delta(r#"{"content":"a\n"}"#).replace("null", "\"stop\"");
    let chunk = chunk(&data);
    assert!(matches!(chunk.id, Some(Cow::Borrowed("x"))));
    assert!(matches!(chunk.finish_reason, Some(Cow::Borrowed("stop"))));
    assert_eq!(chunk.clone().into_owned(), chunk);
}

/// Deep nesting neither overflows the stack nor takes quadratic time.
#[test]
fn depth_is_survived() {
    let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    for data in [
        format!(r#"{{"choices":[{{"delta":{{"content":{}}}}}]}}"#, deep(100_000)),
        format!(r#"{{"error":{}}}"#, deep(100_000)),
        format!(r#"{{"logprobs":{},"choices":[]}}"#, deep(100_000)),
    ] {
        let _ = parse(data.as_bytes());
        let _ = error_message(data.as_bytes());
    }
}

#[test]
fn apis_are_named_by_one_word() {
    for (word, api) in [("chat", Api::Chat), ("completions", Api::Completions)] {
        assert_eq!(word.parse(), Ok(api));
        assert_eq!(api.to_string(), word);
    }
    let error = "chats".parse::<Api>().expect_err("unknown").to_string();
    assert_eq!(error, "unknown API `chats`; known are chat and completions");
}
