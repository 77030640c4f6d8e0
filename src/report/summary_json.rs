//! The summary as JSON, for programs: the lines of `summary.csv` with what the console adds to them.
//!
//! A value that does not apply is `null`. Deliberately absent: rounding, and anything that `run.json`
//! holds already.

use serde_json::{Value, json};

use super::manifest::{WindowFacts, outcome_counts};
use super::run_facts::RunFacts;
use super::summary_csv::line_json;
use crate::metrics::Summary;
use crate::redact::redact_text;

/// The summary of a run, as one JSON object.
#[must_use]
pub fn summary_json(summary: &Summary, facts: &RunFacts) -> Value {
    let notices: Vec<String> = facts.notices.iter().map(|notice| redact_text(notice)).collect();
    json!({
        "name": facts.name,
        "target": facts.target,
        "model": facts.model,
        "folder": facts.folder,
        "interrupted": facts.interrupted,
        "stopped": facts.stopped,
        "window": WindowFacts::of(summary),
        "outcomes": outcome_counts(&summary.all),
        "resent": summary.all.resent,
        "calibration": facts.own_error,
        "notices": notices,
        "summary": summary.lines.iter().map(line_json).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::summary_csv::SUMMARY_COLUMNS;
    use super::*;
    use crate::metrics::{Metrics, Window};

    #[test]
    fn every_column_is_a_key_and_what_is_not_known_is_null() {
        let summary = Metrics::new(Window::default()).finish();
        let json = summary_json(&summary, &RunFacts::default());
        let first = &json["summary"][0];
        assert_eq!(first["metric"], "lag_ms");
        assert_eq!(
            (&first["n"], &first["p99"], &first["censored"]),
            (&json!(0), &Value::Null, &json!(0))
        );
        assert_eq!(first.as_object().expect("an object").len(), SUMMARY_COLUMNS.len());
        assert_eq!(json["stopped"], Value::Null);
    }
}
