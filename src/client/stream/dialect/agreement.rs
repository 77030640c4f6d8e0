//! Both readings against each other, on chunks with every field of every type, on the forms of
//! real servers with a byte changed, and on damaged bytes.

use proptest::prelude::*;

use super::parse::read_slowly;
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

/// What servers send for a token, and near it.
const FORMS: [&str; 6] = [
    r#"{"id":"c-1","object":"chat.completion.chunk","created":17,"model":"m","choices":[{"index":0,"delta":{"content":" a\n","reasoning":null},"logprobs":null,"finish_reason":null}],"usage":{"prompt_tokens":3,"total_tokens":4,"completion_tokens":1}}"#,
    r#"{"id":"c","choices":[{"delta":{"role":"assistant","content":"","refusal":null,"tool_calls":null},"finish_reason":"stop"}],"usage":null}"#,
    r#"{ "choices": [ { "text": "\u00e9é", "finish_reason": "" } ], "created": 1.5, "id": null }"#,
    r#"{"choices":[{"index":0,"delta":{"reasoning_content":"x\\"},"stop":false}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{\""}}]},"logprobs":{"content":[{"logprob":-0.5e-3,"bytes":[32,97]}]}},{"index":1,"delta":{}}]}"#,
    r#"{"choices":[],"usage":{"prompt_tokens":3,"prompt_tokens_details":{"cached_tokens":1},"completion_tokens":9,"completion_tokens_details":{"reasoning_tokens":7,"x":null},"prompt_cache_hit_tokens":2,"reasoning_tokens":null}}"#,
];

/// Where the quick reading reads, the lenient one says the same.
fn agrees(data: &[u8]) -> Result<(), TestCaseError> {
    if let Some(quick) = quick::read(data) {
        prop_assert_eq!(Ok(quick), read_slowly(data), "{}", String::from_utf8_lossy(data));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]
    #[test]
    fn the_scan_agrees_on_every_form(data in chunks()) {
        agrees(data.as_bytes())?;
    }

    #[test]
    fn the_scan_agrees_on_changed_forms(
        form in 0..FORMS.len(),
        changes in prop::collection::vec(
            (
                any::<prop::sample::Index>(),
                prop_oneof![prop::sample::select(&b"{}[]\",:\\ 0naz\x00\n"[..]), any::<u8>()],
                0..3u8,
            ),
            0..3,
        ),
    ) {
        let mut data = FORMS[form].as_bytes().to_vec();
        for (at, byte, how) in changes {
            let at = at.index(data.len());
            match how {
                0 => data[at] = byte,
                1 => data.insert(at, byte),
                _ => drop(data.remove(at)),
            }
        }
        agrees(&data)?;
    }
}

#[test]
fn the_forms_of_real_servers_are_read_quickly() {
    for form in FORMS {
        let quick = quick::read(form.as_bytes()).expect(form);
        assert_eq!(Ok(quick), read_slowly(form.as_bytes()), "{form}");
    }
}

proptest! {
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
