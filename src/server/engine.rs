//! The engines that serve models: how each is recognised, which vendor keys it takes, and where it
//! tells its version. One table; everything else about engines follows from it.
//!
//! Sources: the replies of running servers (vLLM 0.32, llama.cpp, Dynamo 1.6, `LiteLLM` 1.108) and, for
//! the others, the request types in the public sources of each project. Deliberately absent: sockets
//! (who asks is in `probe`), and guessing from a name or port.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

/// What serves the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names of products")]
pub enum Engine {
    /// The plain API and nothing else.
    OpenAi,
    Vllm,
    Sglang,
    LlamaCpp,
    Tgi,
    TrtLlm,
    Dynamo,
    LmDeploy,
    Ollama,
    LiteLlm,
    /// The simulated server.
    Underfire,
}

/// What is known of an engine.
struct Traits {
    engine: Engine,
    word: &'static str,
    /// `owned_by` of the models that it lists; empty where that tells nothing.
    owned_by: &'static str,
    /// The body's `ignore_eos: true` is understood.
    ignore_eos: bool,
    /// `stream_options.continuous_usage_stats` is understood.
    running_usage: bool,
    /// A GET path below the server's root and a JSON pointer to the version in its reply.
    version: Option<(&'static str, &'static str)>,
    /// The same, to something in a reply that no other engine gives; asked only where the model list
    /// did not tell.
    sign: Option<(&'static str, &'static str)>,
}

const PLAIN: Traits = Traits {
    engine: Engine::OpenAi,
    word: "openai",
    owned_by: "",
    ignore_eos: false,
    running_usage: false,
    version: None,
    sign: None,
};

const TABLE: [Traits; 11] = [
    PLAIN,
    Traits {
        engine: Engine::Vllm,
        word: "vllm",
        owned_by: "vllm",
        ignore_eos: true,
        running_usage: true,
        version: Some(("/version", "/version")),
        ..PLAIN
    },
    Traits {
        engine: Engine::Sglang,
        word: "sglang",
        owned_by: "sglang",
        ignore_eos: true,
        running_usage: true,
        version: Some(("/get_server_info", "/version")),
        sign: Some(("/get_model_info", "/model_path")),
    },
    Traits {
        engine: Engine::LlamaCpp,
        word: "llamacpp",
        owned_by: "llamacpp",
        ignore_eos: true,
        version: Some(("/props", "/build_info")),
        sign: Some(("/props", "/build_info")),
        ..PLAIN
    },
    // Its `owned_by` is the model's own name, and its API has no key for the end of a sequence.
    Traits {
        engine: Engine::Tgi,
        word: "tgi",
        version: Some(("/info", "/version")),
        sign: Some(("/info", "/model_id")),
        ..PLAIN
    },
    Traits {
        engine: Engine::TrtLlm,
        word: "trtllm",
        owned_by: "tensorrt_llm",
        ignore_eos: true,
        running_usage: true,
        version: Some(("/version", "/version")),
        ..PLAIN
    },
    Traits {
        engine: Engine::Dynamo,
        word: "dynamo",
        owned_by: "nvidia",
        ignore_eos: true,
        running_usage: true,
        ..PLAIN
    },
    Traits {
        engine: Engine::LmDeploy,
        word: "lmdeploy",
        owned_by: "lmdeploy",
        ignore_eos: true,
        ..PLAIN
    },
    Traits {
        engine: Engine::Ollama,
        word: "ollama",
        owned_by: "library",
        version: Some(("/api/version", "/version")),
        sign: Some(("/api/version", "/version")),
        ..PLAIN
    },
    // A gateway: what it takes is up to what is behind it.
    Traits { engine: Engine::LiteLlm, word: "litellm", ..PLAIN },
    Traits {
        engine: Engine::Underfire,
        word: "underfire",
        owned_by: "underfire",
        ignore_eos: true,
        running_usage: true,
        ..PLAIN
    },
];

impl Engine {
    fn traits(self) -> &'static Traits {
        TABLE.iter().find(|traits| traits.engine == self).unwrap_or(&PLAIN)
    }

    /// Whether it understands `ignore_eos`.
    #[must_use]
    pub fn ignores_eos(self) -> bool {
        self.traits().ignore_eos
    }

    /// Whether it understands `stream_options.continuous_usage_stats`.
    #[must_use]
    pub fn has_running_usage(self) -> bool {
        self.traits().running_usage
    }

    /// Where it tells its version: a path, and a JSON pointer into the reply.
    pub(super) fn version_at(self) -> Option<(&'static str, &'static str)> {
        self.traits().version
    }

    /// The words of those that understand `ignore_eos`, for a hint.
    #[must_use]
    pub fn words_that_ignore_eos() -> String {
        let known = TABLE.iter().filter(|t| t.ignore_eos && t.engine != Self::Underfire);
        known.map(|traits| traits.word).collect::<Vec<_>>().join(", ")
    }

    /// The engine by what its model list says and by the head of that reply.
    pub(super) fn by_models(
        owned_by: Option<&str>,
        has_header: impl Fn(&str) -> bool,
    ) -> Option<Self> {
        // A gateway in front passes on what it likes, but says itself that it is there.
        if has_header("x-litellm-version") {
            return Some(Self::LiteLlm);
        }
        let owned_by = owned_by.filter(|owner| !owner.is_empty())?;
        TABLE.iter().find(|traits| traits.owned_by == owned_by).map(|traits| traits.engine)
    }

    /// What to ask a server that is not recognised by its model list, in turn.
    pub(super) fn signs() -> impl Iterator<Item = (Self, &'static str, &'static str)> {
        TABLE
            .iter()
            .filter_map(|traits| traits.sign.map(|(path, pointer)| (traits.engine, path, pointer)))
    }
}

crate::units::serialize_as_text!(Engine);

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.traits().word)
    }
}

/// A word that names no engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown engine `{0}`; known are {known}", known = known_engines())]
pub struct UnknownEngine(String);

fn known_engines() -> String {
    TABLE.iter().map(|traits| traits.word).collect::<Vec<_>>().join(", ")
}

impl FromStr for Engine {
    type Err = UnknownEngine;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let found = TABLE.iter().find(|traits| traits.word == word);
        found.map(|traits| traits.engine).ok_or_else(|| UnknownEngine(word.to_owned()))
    }
}

/// A model as a server lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// Its name in requests.
    pub id: String,
    /// Who the server says it belongs to; most engines name themselves.
    pub owned_by: Option<String>,
    /// The longest prompt plus completion, in tokens.
    pub max_len_tok: Option<u64>,
}

/// Reads a model list; `None` where it is none.
pub(super) fn models(reply: &[u8]) -> Option<Vec<Model>> {
    /// Where engines keep the length: vLLM and `SGLang`, llama.cpp (of a slot), Dynamo, gateways.
    const LENGTHS: [&str; 4] =
        ["/max_model_len", "/meta/n_ctx", "/context_window", "/context_length"];
    let reply: Value = serde_json::from_slice(reply).ok()?;
    let listed = reply.get("data").unwrap_or(&reply).as_array()?;
    let text = |model: &Value, key: &str| Some(model.get(key)?.as_str()?.to_owned());
    let model = |model: &Value| {
        let lengths = LENGTHS.iter().filter_map(|at| model.pointer(at)?.as_u64());
        Some(Model {
            id: text(model, "id")?,
            owned_by: text(model, "owned_by"),
            max_len_tok: lengths.into_iter().find(|len| *len > 0),
        })
    };
    Some(listed.iter().filter_map(model).collect())
}

/// The text or number at a pointer into a JSON reply.
pub(super) fn value_at(reply: &[u8], pointer: &str) -> Option<String> {
    let reply: Value = serde_json::from_slice(reply).ok()?;
    match reply.pointer(pointer)? {
        Value::String(text) if !text.is_empty() => Some(text.chars().take(80).collect()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back_and_traits_hold() {
        for traits in &TABLE {
            assert_eq!(traits.word.parse::<Engine>(), Ok(traits.engine));
            assert_eq!(traits.engine.to_string(), traits.word);
        }
        let unknown = "vlm".parse::<Engine>().expect_err("no engine").to_string();
        assert!(unknown.contains("`vlm`") && unknown.contains("vllm, sglang"), "{unknown}");
        assert!(Engine::Vllm.ignores_eos() && !Engine::Tgi.ignores_eos());
        assert!(!Engine::OpenAi.has_running_usage());
        let hint = Engine::words_that_ignore_eos();
        assert_eq!(hint, "vllm, sglang, llamacpp, trtllm, dynamo, lmdeploy");
    }

    /// The lists are those that the servers gave, shortened.
    #[test]
    fn engines_are_recognised_by_their_model_lists() {
        let check = |reply: &str, engine: Option<Engine>, id: &str, len: Option<u64>| {
            let models = models(reply.as_bytes()).expect(reply);
            assert_eq!((models[0].id.as_str(), models[0].max_len_tok), (id, len));
            assert_eq!(Engine::by_models(models[0].owned_by.as_deref(), |_| false), engine);
        };
        check(
            r#"{"object":"list","data":[{"id":"t","owned_by":"vllm","max_model_len":2048}]}"#,
            Some(Engine::Vllm),
            "t",
            Some(2048),
        );
        check(
            r#"{"models":[],"data":[{"id":"s","owned_by":"llamacpp","meta":{"n_ctx":2048}}]}"#,
            Some(Engine::LlamaCpp),
            "s",
            Some(2048),
        );
        check(
            r#"{"data":[{"id":"d","owned_by":"nvidia","context_window":0}]}"#,
            Some(Engine::Dynamo),
            "d",
            None,
        );
        check(r#"[{"id":"x","owned_by":"openai"}]"#, None, "x", None);
        check(r#"{"data":[{"id":"x","max_model_len":"many"}]}"#, None, "x", None);
        assert_eq!(models(b"<html>"), None);
        assert_eq!(models(br#"{"data":"none"}"#), None);
        assert_eq!(models(br#"{"data":[{"name":"x"}]}"#), Some(Vec::new()));
        let litellm = Engine::by_models(Some("openai"), |name| name == "x-litellm-version");
        assert_eq!(litellm, Some(Engine::LiteLlm));
    }

    #[test]
    fn versions_are_text_or_numbers() {
        assert_eq!(value_at(br#"{"version":"0.32.0"}"#, "/version").as_deref(), Some("0.32.0"));
        assert_eq!(value_at(br#"{"a":{"b":3}}"#, "/a/b").as_deref(), Some("3"));
        assert_eq!(value_at(br#"{"version":null}"#, "/version"), None);
        assert_eq!(value_at(b"no", "/version"), None);
    }
}
