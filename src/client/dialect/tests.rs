//! Chunks, errors, bodies and merges by table, and the quick reading against the lenient one.

use proptest::prelude::*;
use serde_json::value::RawValue;

use super::*;

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
    let mut data = delta(r#"{"content":"a"}"#).into_bytes();
    let at = data.iter().position(|byte| *byte == b'a').expect("it is there");
    data[at] = 0xc3;
    data.truncate(data.len());
    let Ok(Parsed::Chunk(chunk)) = parse(&data) else { panic!("a chunk") };
    assert_eq!(chunk.kind, None, "the first `a` is in `delta`");
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
fn an_error_body_is_one_line() {
    let check = |body: &str, expect: &str| assert_eq!(error_message(body.as_bytes()), expect);
    check(r#"{"error":{"message":"a","type":"b"}}"#, "a");
    check(r#"{"error":"a"}"#, "a");
    check(r#"{"message":"a","type":"b","code":404}"#, "a");
    check(r#"{"detail":"a"}"#, "a");
    check(
        r#"{"detail":[{"loc":["body","messages",0],"msg":"Field required"},{"loc":[],"msg":"b"}]}"#,
        "body.messages.0: Field required; b",
    );
    check(r#"{"status":404,"error":"Not Found","message":"No route"}"#, "No route");
    check(r#"{"status":404,"error":"Not Found"}"#, "Not Found");
    check(r#"{"errors":[{"message":"a"},{"message":"b"}]}"#, "a; b");
    check(r#"[{"error":{"message":"a"}}]"#, "a");
    check(r#"{"error":{"message":""}}"#, r#"{"error":{"message":""}}"#);
    check(r#"{"code":7}"#, r#"{"code":7}"#);
    check("data: {\"error\":\"a\"}\n\n", "a");
    check("\"a\"", "a");
    check("Internal Server Error\r\n", "Internal Server Error");
    check("a\u{1b}[31m\tb\u{2028}c", "a [31m b c");
    check("", "empty body");
    check(" \n", "empty body");
    check(
        "<html><head><title>T</title><style>x</style></head><body>a &amp; b<br>c</body>",
        "a & b c",
    );
    check("<html><head><title>T</title></head><body></body></html>", "T");
    check("<broken", "<broken");
    assert_eq!(error_message(b"\xff\xfe"), "\u{fffd}\u{fffd}");
    let long = error_message("wörd ".repeat(100_000).as_bytes());
    assert_eq!(long.chars().count(), error_text::MESSAGE_CHARS);
    assert!(long.ends_with('…'));
    let exact = "x".repeat(500);
    assert_eq!(error_message(exact.as_bytes()), exact);
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

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).expect("JSON")
}

#[test]
fn bodies_are_plain_and_in_a_fixed_order() {
    let check = |params: BodyParams<'_>, prompt: Prompt<'_>, expect: &str| {
        let body = body(&params, prompt).expect("a body");
        assert_eq!(String::from_utf8(body).expect("UTF-8"), expect);
    };
    let chat = BodyParams { model: Some("m\"1"), max_tokens: 7, ..BodyParams::default() };
    check(
        BodyParams { include_usage: true, ..chat },
        Prompt::Text("say \"é\"\n"),
        r#"{"model":"m\"1","messages":[{"role":"user","content":"say \"é\"\n"}],"max_tokens":7,"stream":true,"stream_options":{"include_usage":true}}"#,
    );
    let messages = raw(r#"[{"role":"system", "content":"s"}]"#);
    check(
        BodyParams { model: None, ignore_eos: true, ..chat },
        Prompt::Messages(&messages),
        r#"{"messages":[{"role":"system", "content":"s"}],"max_tokens":7,"stream":true,"ignore_eos":true}"#,
    );
    let completions = BodyParams { api: Api::Completions, ..chat };
    check(
        BodyParams { running_usage: true, ..completions },
        Prompt::Ids(&[1, 0, 4_294_967_295]),
        r#"{"model":"m\"1","prompt":[1,0,4294967295],"max_tokens":7,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}"#,
    );
    check(
        BodyParams { model: None, ..completions },
        Prompt::Text(""),
        r#"{"prompt":"","max_tokens":7,"stream":true}"#,
    );
    assert_eq!(body(&chat, Prompt::Ids(&[1])), Err(BodyError::IdsToChat));
    assert_eq!(
        body(&completions, Prompt::Messages(&messages)),
        Err(BodyError::MessagesToCompletions)
    );
}

#[test]
fn a_rows_body_wins_and_keeps_its_bytes() {
    let check = |base: &str, over: &str, expect: &str| {
        let merged = merge(base.as_bytes(), &raw(over)).expect("objects");
        assert_eq!(String::from_utf8(merged).expect("UTF-8"), expect, "{base} under {over}");
    };
    check(r#"{"a":1,"b":2}"#, r#"{"c":1.50,"a":true}"#, r#"{"a":true,"b":2,"c":1.50}"#);
    check(r#"{"a":1}"#, r#"{"a":null}"#, r#"{"a":null}"#);
    check(
        r#"{"a":{"x":1,"y":{"z":1}}}"#,
        r#"{"a":{"y":{"w":2}}}"#,
        r#"{"a":{"x":1,"y":{"z":1,"w":2}}}"#,
    );
    check(r#"{"a":{"x":1}}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#);
    check(r#"{"a":[1,2]}"#, r#"{"a":[3]}"#, r#"{"a":[3]}"#);
    check(
        r#"{"a":1}"#,
        r#"{"a":{"z":12345678901234567890.0,"b":1e400}}"#,
        r#"{"a":{"z":12345678901234567890.0,"b":1e400}}"#,
    );
    check("{}", r#"{"z":1,"a":2,"z":3}"#, r#"{"z":3,"a":2}"#);
    check(r#"{"a":1}"#, r#"{"a":2,"a":3,"\u0062":4}"#, r#"{"a":3,"b":4}"#);
    check(r#"{"a":1}"#, "{}", r#"{"a":1}"#);
    for not in ["[1]", "7", "null", "\"a\""] {
        let message = merge(b"{}", &raw(not)).expect_err(not).to_string();
        assert!(message.starts_with("the object to merge is no JSON object"), "{message}");
    }
    let deep = format!("{}1{}", r#"{"a":"#.repeat(1000), "}".repeat(1000));
    let error = merge(deep.as_bytes(), &raw(&deep)).expect_err("too deep").to_string();
    assert_eq!(error, "objects are nested more than 64 deep");
}

/// Values of every type, the likely ones more often.
fn value() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "null",
        "\"\"",
        "\"a\"",
        "\"a\"",
        "\"\\n\"",
        "{}",
        "[]",
        "7",
        "-1",
        "1.5",
        "true",
        r#"[{"type":"text","text":"a"}]"#,
        r#"[{"thinking":[{"text":"a"}]}]"#,
        r#"["a"]"#,
        r#"[{"function":{"name":"f"}}]"#,
        r#"[{"function":{"name":""}},{}]"#,
        r#"{"name":"f"}"#,
        r#"{"arguments":{"a":1}}"#,
        r#"{"cached_tokens":3}"#,
        r#"{"reasoning_tokens":3.0}"#,
    ])
    .prop_map(str::to_owned)
}

fn object(keys: Vec<&'static str>, value: BoxedStrategy<String>) -> BoxedStrategy<String> {
    prop::collection::vec((prop::sample::select(keys), value), 0..4)
        .prop_map(|members| {
            let members: Vec<String> =
                members.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
            format!("{{{}}}", members.join(","))
        })
        .boxed()
}

fn chunks() -> impl Strategy<Value = String> {
    let fields = vec![
        "role",
        "content",
        "text",
        "refusal",
        "reasoning",
        "reasoning_content",
        "tool_calls",
        "function_call",
        "other",
    ];
    let delta = prop_oneof![4 => object(fields, value().boxed()), 1 => value()].boxed();
    let inner = prop_oneof![2 => delta, 1 => value()].boxed();
    let choice = object(vec!["index", "delta", "delta", "text", "finish_reason"], inner);
    let choices = prop::collection::vec(prop_oneof![6 => choice, 1 => value()], 0..3)
        .prop_map(|choices| format!("[{}]", choices.join(",")));
    let counts = vec![
        "prompt_tokens",
        "completion_tokens",
        "prompt_tokens_details",
        "reasoning_tokens",
        "completion_tokens_details",
        "prompt_cache_hit_tokens",
    ];
    let usage = object(counts, value().boxed());
    let rest = object(vec!["id", "object", "error", "message", "detail", "x"], value().boxed());
    (choices, usage, rest).prop_map(|(choices, usage, rest)| {
        format!(r#"{{"choices":{choices},"usage":{usage},"rest":{rest},{}"#, &rest[1..])
            .replace(",}", "}")
    })
}

proptest! {
    #[test]
    fn where_the_quick_reading_reads_both_agree(data in chunks()) {
        let slow = lenient::read(&data);
        prop_assert!(slow.is_ok(), "{data}");
        if let Some(quick) = openai::read(&data) {
            prop_assert_eq!(Ok(quick), slow.map_err(|error| error.to_string()));
        }
    }

    #[test]
    fn no_bytes_make_it_panic(
        data in chunks(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut data = data.into_bytes();
        let at = at.index(data.len());
        data[at] = byte;
        let _ = parse(&data);
        let _ = parse(&data[..at]);
        let line = error_message(&data[at..]);
        prop_assert!(line.chars().count() <= error_text::MESSAGE_CHARS);
        prop_assert!(!line.chars().any(char::is_control));
    }

    #[test]
    fn a_merge_over_itself_changes_nothing(data in chunks()) {
        let merged = merge(b"{}", &raw(&data)).expect("an object");
        let again = merge(&merged, &raw(&data)).expect("an object");
        prop_assert_eq!(String::from_utf8(merged), String::from_utf8(again));
    }
}
