//! The summary as JSON, for programs: the lines of `summary.csv` with what the console adds to them.
//!
//! A value that does not apply is `null`. Deliberately absent: rounding, and anything that `run.json`
//! holds already.

use serde_json::{Map, Value, json};

use super::console::RunFacts;
use super::manifest::{WindowFacts, outcome_counts};
use crate::redact::redact_text;
use super::summary_csv::HEADER;
use crate::metrics::{Line, Summary};

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
        "summary": summary.lines.iter().map(object).collect::<Vec<_>>(),
    })
}

/// A line with the columns of `summary.csv` as keys.
fn object(line: &Line) -> Value {
    let mut values = vec![
        json!(*line.metric),
        json!(*line.scope),
        json!(line.unit.word()),
        json!(line.basis.word()),
        json!(line.n),
        json!(line.mean),
        json!(line.std),
        json!(line.min),
    ];
    values.extend(line.percentiles.iter().map(|value| json!(value)));
    values.extend([json!(line.max), json!(line.ci_low), json!(line.ci_high), json!(line.censored)]);
    let keys = HEADER.iter().map(|key| (*key).to_owned());
    Value::Object(keys.zip(values).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
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
        assert_eq!(first.as_object().expect("an object").len(), HEADER.len());
        assert_eq!(json["stopped"], Value::Null);
    }
}
