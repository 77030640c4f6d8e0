//! What is told of a run beside its figures; among it how wrong the client's own figures are where it was
//! made, as measured before it, which stands behind `±`.
//!
//! Deliberately absent: how that is measured.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the summary does not know about the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFacts {
    /// The run's name.
    pub name: String,
    /// Where requests went: a URL without secrets, or `built-in simulated server`.
    pub target: String,
    /// Model asked for.
    pub model: Option<String>,
    /// The folder with the results.
    pub folder: Option<String>,
    /// Whether the run was cut short.
    pub interrupted: bool,
    /// Why the run ended before its plan did, where it did.
    pub stopped: Option<String>,
    /// What helps where prompts have another length than asked for.
    pub input_remedy: Option<String>,
    /// No row shares its beginning with another one on purpose, so a prefix cache should give no more
    /// than this for each: the chat template. `None` where rows do share.
    pub cache_unasked_tok: Option<u32>,
    /// The client's own error, where it was measured before the run.
    pub own_error: Option<OwnError>,
    /// Whether this client kept up, and why not.
    pub client: Option<String>,
    /// Further sentences for the end.
    pub notices: Vec<String>,
}

/// Bounds on the client's own error, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OwnError {
    /// Under which load, in words.
    pub load: String,
    /// What a bound is, in words: the p99, or the largest of a few.
    pub bound: String,
    /// Of a time to a first token.
    pub ttft_ms: Option<f64>,
    /// Of a time to a last token.
    pub e2e_ms: Option<f64>,
    /// Of a time between two chunks.
    pub gap_ms: Option<f64>,
    /// Of the time at which a request reaches the server.
    pub arrival_ms: Option<f64>,
    /// Everything that was measured.
    pub details: Value,
}

impl OwnError {
    /// The bound on a metric of `summary.csv`, where one was measured.
    #[must_use]
    pub fn of(&self, metric: &str) -> Option<f64> {
        match metric {
            "ttft_ms" | "ttft_send_ms" | "ttfo_ms" => self.ttft_ms,
            "e2e_ms" | "e2e_send_ms" => self.e2e_ms,
            "gap_ms" | "itl_ms" => self.gap_ms,
            _ => None,
        }
    }

    /// What `±` means.
    #[must_use]
    pub fn legend(&self) -> String {
        let Self { load, bound, .. } = self;
        format!(
            "± is the client's own error on this machine, measured before the run at {load}: {bound}"
        )
    }
}
