//! The quick reading against the lenient one, on chunks with every field of every type, and both on
//! damaged bytes.

use proptest::prelude::*;

use super::*;

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
}
