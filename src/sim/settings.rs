//! What the simulated server is like: its speed, its limits, its chance.
//!
//! Plain data and the arithmetic on it, so that a test or a report can say beforehand what the server
//! will carry. Absent: where it listens and how long (see [`super::run`]), and
//! what each fault does (see [`super::fault`]).
//!
//! # The model
//! A request holds one of `max_running` slots from the start of its prefill to its last token; behind
//! them is a first-in first-out queue. With `r` slots held at that moment,
//!
//! ```text
//! first token   = slot taken + prefill_base + prompt_tok × prefill_per_tok
//! next token    = this token + step_base + r × step_per_stream
//! ```
//!
//! each multiplied by its own jitter. Streams do not share steps: each keeps its own phase.
//!
//! # The defaults, in numbers
//! | | |
//! |---|---|
//! | first token at 1,155 prompt tokens | 20 + 1,155 × 0.02 = 43.1 ms |
//! | step at 1,000 running | 10 + 1,000 × 0.002 = 12 ms, 83 tok/s for each user |
//! | step at the limit of 2,048 | 14.1 ms |
//! | capacity, decoding alone | 2,048 / 14.1 ms = 145k tok/s |
//! | capacity at 1,155 in, 211 out | 2,048 / (43.1 ms + 210 × 14.1 ms) = 682 req/s, 144k tok/s |
//!
//! The first ten minutes of the Azure 2023 conversation trace at speed 60 are 287 requests and 74.6k
//! tokens a second, with 353 requests and 89k tokens in the fullest second: a third to two thirds of
//! that. At most 977 slots are held at once (1,025 over the whole hour), so nothing queues.

use serde::{Deserialize, Serialize};

use super::fault::FaultPlan;
use super::nanoseconds;
use crate::units::{NS_PER_S, Nanos};

/// The mean length of answers to chats that name no longest one, where the settings name no mean: that
/// of the Azure 2023 conversation trace.
pub const NATURAL_MEAN_TOK: f64 = 211.0;

/// How the simulated server behaves. As JSON, times are integer nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The name of its one model.
    pub model: String,
    /// The part of the time to first token that every request pays.
    #[serde(rename = "prefill_base_ns", with = "nanoseconds")]
    pub prefill_base: Nanos,
    /// The part that each prompt token adds.
    #[serde(rename = "prefill_per_tok_ns", with = "nanoseconds")]
    pub prefill_per_tok: Nanos,
    /// The part of a decode step that does not depend on load.
    #[serde(rename = "step_base_ns", with = "nanoseconds")]
    pub step_base: Nanos,
    /// The part that each running stream adds, the stepping one included.
    #[serde(rename = "step_per_stream_ns", with = "nanoseconds")]
    pub step_per_stream: Nanos,
    /// How many streams may hold a slot; the others queue.
    pub max_running: usize,
    /// How many may queue; beyond, a request is refused with a 503.
    pub max_queued: usize,
    /// How many tokens prompt and output may have together.
    pub max_model_len_tok: u64,
    /// Half the width of the uniform factor on each prefill and step: 0.1 is 0.9 to 1.1.
    pub jitter: f64,
    /// All chance follows from it, the request's number and the token's number.
    pub seed: u64,
    /// The mean of the geometric length at which an answer ends by itself, unless `ignore_eos` is
    /// asked for. Without it every answer runs to the length asked for; where none is, its mean is
    /// [`NATURAL_MEAN_TOK`].
    pub mean_output_tok: Option<f64>,
    /// How it tells of itself at `/metrics`.
    pub metrics: Exposition,
    /// What it does wrong, and to which requests.
    pub faults: FaultPlan,
}

/// Under which names the server tells of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exposition {
    /// Those of `vllm`.
    #[default]
    Vllm,
    /// Those of `sglang`.
    Sglang,
    /// There is no `/metrics`.
    Off,
}

impl Exposition {
    /// The words for them on a command line.
    pub const WORDS: [&str; 3] = ["vllm", "sglang", "off"];

    /// What one of the words stands for.
    #[must_use]
    pub fn of(word: impl AsRef<str>) -> Self {
        match word.as_ref() {
            "sglang" => Self::Sglang,
            "off" => Self::Off,
            _ => Self::Vllm,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            model: "sim".to_owned(),
            prefill_base: Nanos::from_millis(20),
            prefill_per_tok: Nanos(20_000),
            step_base: Nanos::from_millis(10),
            step_per_stream: Nanos(2_000),
            max_running: 2_048,
            // A real server queues without limit; this one remembers that its memory has one.
            max_queued: 100_000,
            // Above the longest row of every public trace (Mooncake: below 131,072).
            max_model_len_tok: 262_144,
            jitter: 0.1,
            seed: 0,
            mean_output_tok: None,
            metrics: Exposition::default(),
            faults: FaultPlan::default(),
        }
    }
}

/// A server that cannot be simulated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SettingsError {
    /// Without a name no request can name it.
    #[error("the simulated model needs a name")]
    NoModel,
    /// Nothing would ever run.
    #[error("`max_running` must be at least 1")]
    NoSlots,
    /// There is no room for a prompt and an answer.
    #[error("`max_model_len_tok` must be at least 2, not {0}")]
    TooShort(u64),
    /// Its capacity would be infinite.
    #[error("a decode step must take at least 1 ns: raise `step_base` or `step_per_stream`")]
    NoStep,
    /// Times would be negative, or not numbers.
    #[error("`jitter` must be from 0 to below 1, not {0}")]
    Jitter(f64),
    /// An answer has at least one token.
    #[error("`mean_output_tok` must be at least 1 and finite, not {0}")]
    MeanOutput(f64),
}

impl Settings {
    /// Speed, limits and seed as arguments of `underfire sim`. Faults, and how the server tells of
    /// itself, are for people who start one by hand.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let ns = |time: Nanos| format!("{}ns", time.0);
        [
            ("--seed", self.seed.to_string()),
            ("--prefill-base", ns(self.prefill_base)),
            ("--prefill-per-tok", ns(self.prefill_per_tok)),
            ("--step-base", ns(self.step_base)),
            ("--step-per-stream", ns(self.step_per_stream)),
            ("--max-running", self.max_running.to_string()),
            ("--max-queued", self.max_queued.to_string()),
            ("--max-model-len-tok", self.max_model_len_tok.to_string()),
            ("--jitter", self.jitter.to_string()),
        ]
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value])
        .collect()
    }

    /// Says what is wrong, if anything.
    pub fn check(&self) -> Result<(), SettingsError> {
        if self.model.is_empty() {
            return Err(SettingsError::NoModel);
        }
        if self.max_running == 0 {
            return Err(SettingsError::NoSlots);
        }
        if self.max_model_len_tok < 2 {
            return Err(SettingsError::TooShort(self.max_model_len_tok));
        }
        if self.step(self.max_running) == Nanos::ZERO {
            return Err(SettingsError::NoStep);
        }
        if !(0.0..1.0).contains(&self.jitter) {
            return Err(SettingsError::Jitter(self.jitter));
        }
        match self.mean_output_tok {
            Some(mean) if !(mean.is_finite() && mean >= 1.0) => {
                Err(SettingsError::MeanOutput(mean))
            }
            _ => Ok(()),
        }
    }

    /// Prefill time of a prompt, before jitter: the time to first token where nothing queues.
    #[must_use]
    pub fn prefill(&self, prompt_tok: u64) -> Nanos {
        self.prefill_base + Nanos(self.prefill_per_tok.0.saturating_mul(prompt_tok))
    }

    /// Time of a decode step while `running` streams hold a slot, before jitter.
    #[must_use]
    pub fn step(&self, running: usize) -> Nanos {
        self.step_base + Nanos(self.step_per_stream.0.saturating_mul(running as u64))
    }

    /// Output tokens per second with all slots decoding: `max_running / step(max_running)`.
    ///
    /// What long answers approach; [`Self::capacity_req_s`] counts the prefill too.
    #[must_use]
    pub fn capacity_tok_s(&self) -> f64 {
        self.max_running as f64 / self.step(self.max_running).as_secs_f64()
    }

    /// Requests per second that keep all slots busy, at these mean lengths:
    /// `max_running / (prefill(prompt) + (output − 1) × step(max_running))`.
    ///
    /// Times `mean_output_tok` it is the output tokens per second at these lengths. Jitter has mean 1
    /// and does not change it.
    #[must_use]
    pub fn capacity_req_s(&self, mean_prompt_tok: f64, mean_output_tok: f64) -> f64 {
        let per_tok_s = self.prefill_per_tok.as_secs_f64();
        let prefill_s = self.prefill_base.as_secs_f64() + mean_prompt_tok * per_tok_s;
        let decode_s = (mean_output_tok - 1.0).max(0.0) * self.step(self.max_running).as_secs_f64();
        // A server without prefill time could begin and end one-token answers in no time at all.
        self.max_running as f64 / (prefill_s + decode_s).max(1.0 / NS_PER_S as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_defaults_are_the_defaults() {
        let settings = Settings::default();
        assert_eq!(settings.check(), Ok(()));
        assert_eq!(settings.prefill(1_155), Nanos(43_100_000));
        assert_eq!(settings.step(1_000), Nanos::from_millis(12));
        assert!((settings.capacity_tok_s() - 145_000.0).abs() < 500.0);
        let req_s = settings.capacity_req_s(1_155.0, 211.0);
        assert!((req_s - 682.0).abs() < 1.0, "{req_s}");
        // The trace's fullest second, with a fifth to spare.
        assert!(req_s > 1.2 * 507.0, "{req_s}");
    }

    #[test]
    fn a_server_of_1600_tok_s_is_easily_set() {
        let settings = Settings {
            max_running: 200,
            step_base: Nanos::from_millis(125),
            step_per_stream: Nanos::ZERO,
            ..Settings::default()
        };
        assert!((settings.capacity_tok_s() - 1_600.0).abs() < 1e-9);
    }

    #[test]
    fn impossible_servers_are_refused() {
        let check = |change: fn(&mut Settings), part: &str| {
            let mut settings = Settings::default();
            change(&mut settings);
            let message = settings.check().expect_err(part).to_string();
            assert!(message.contains(part), "{message}");
        };
        check(|s| s.model.clear(), "name");
        check(|s| s.max_running = 0, "max_running");
        check(|s| s.max_model_len_tok = 1, "max_model_len_tok");
        check(|s| s.jitter = 1.0, "jitter");
        check(|s| s.jitter = f64::NAN, "jitter");
        check(|s| s.mean_output_tok = Some(0.5), "mean_output_tok");
        check(|s| (s.step_base, s.step_per_stream) = (Nanos::ZERO, Nanos::ZERO), "step");
    }

    #[test]
    fn settings_survive_json() {
        let settings = Settings { mean_output_tok: Some(211.0), ..Settings::default() };
        let text = serde_json::to_string(&settings).expect("plain data");
        assert!(text.contains(r#""prefill_base_ns":20000000"#), "{text}");
        assert_eq!(serde_json::from_str::<Settings>(&text).expect("its own output"), settings);
        assert!(serde_json::from_str::<Settings>(r#"{"max_runing":1}"#).is_err());
    }
}
