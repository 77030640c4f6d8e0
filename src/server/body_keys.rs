//! Keys that nobody may put into every body: what they say is measured by, so with another value the
//! figures would tell of something else than what was sent.
//!
//! The same value as the run's own is no fault. Deliberately absent: the `body` of a single row, which
//! its trace answers for.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::error::ServerError;

/// Refuses such a key; `whose` object it is, for the message.
pub fn check(whose: &str, object: &RawValue) -> Result<(), ServerError> {
    let keys: Map<String, Value> = serde_json::from_str(object.get())
        .map_err(|error| ServerError::Settings(format!("{whose} is no JSON object: {error}")))?;
    for (key, value) in &keys {
        let Some((why, hint)) = fault(key, value) else { continue };
        return Err(ServerError::Settings(format!(
            "`{key}` in {whose} would make the figures wrong: {why}\nhint: {hint}"
        )));
    }
    Ok(())
}

/// Why a key may not have this value, and what is there in its place.
fn fault(key: &str, value: &Value) -> Option<(&'static str, &'static str)> {
    let options = |name: &str| value.get(name).is_some();
    Some(match key {
        "stream" if *value != json!(true) => {
            ("only a stream shows when tokens come", "leave it out; every request streams")
        }
        "stream_options" if !value.is_object() => {
            ("it asks for the usage that tokens are counted by", "--no-usage leaves it out")
        }
        "stream_options" if value["include_usage"] == json!(false) => {
            ("tokens are counted by the usage it asks for", "--no-usage leaves it out")
        }
        "stream_options" if options("continuous_usage_stats") => (
            "whether every chunk tells a count decides what is known of ITL",
            "--running-usage on or off says so",
        ),
        "messages" | "prompt" => (
            "every row would say the same, and have another length than its own",
            "--prompt TEXT or --prompts FILE gives the rows words",
        ),
        "max_tokens" | "max_completion_tokens" => (
            "every row asks for a length of its own",
            "the trace or the workload's [output] says how long answers are, --max-output-tok cuts them; \
             --max-tokens-key names the key",
        ),
        "n" if *value != json!(1) => (
            "the gaps of several answers in one stream cannot be told apart",
            "leave it out, and send more rows",
        ),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(json: &str) -> Option<String> {
        let object = RawValue::from_string(json.to_owned()).expect("JSON");
        check("--extra", &object).err().map(|error| error.to_string())
    }

    #[test]
    fn keys_that_bend_the_figures_are_refused_with_their_remedy() {
        for (json, key, remedy) in [
            (r#"{"stream":false}"#, "`stream`", "leave it out"),
            (r#"{"stream_options":{"include_usage":false}}"#, "`stream_options`", "--no-usage"),
            (r#"{"stream_options":null}"#, "`stream_options`", "--no-usage"),
            (
                r#"{"stream_options":{"continuous_usage_stats":true}}"#,
                "`stream_options`",
                "--running-usage",
            ),
            (r#"{"temperature":1,"max_tokens":7}"#, "`max_tokens`", "--max-output-tok"),
            (r#"{"max_completion_tokens":null}"#, "`max_completion_tokens`", "[output]"),
            (r#"{"prompt":"a"}"#, "`prompt`", "--prompt TEXT"),
            (r#"{"messages":[]}"#, "`messages`", "--prompts FILE"),
            (r#"{"n":2}"#, "`n`", "more rows"),
        ] {
            let said = refused(json).unwrap_or_else(|| panic!("{json} passes"));
            assert!(said.contains(key) && said.contains(remedy), "{said}");
            assert!(said.contains("in --extra") && said.contains("\nhint: "), "{said}");
        }
    }

    #[test]
    fn all_others_pass() {
        for json in [
            "{}",
            r#"{"temperature":0.7,"top_p":1,"stop":["a"],"ignore_eos":true,"min_tokens":5}"#,
            r#"{"stream":true,"n":1,"stream_options":{"include_usage":true,"include_obfuscation":false}}"#,
            r#"{"user":"n","nested":{"stream":false,"max_tokens":1}}"#,
        ] {
            assert_eq!(refused(json), None, "{json}");
        }
    }
}
