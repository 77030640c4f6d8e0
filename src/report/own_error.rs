//! How wrong the client's own figures are where a run was made, as measured before it: what stands
//! behind `±`.
//!
//! Deliberately absent: how that is measured.

use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    pub fn words(&self) -> String {
        let Self { load, bound, .. } = self;
        format!(
            "± is the client's own error on this machine, measured before the run at {load}: {bound}"
        )
    }
}
