//! The summary for programs: `summary.csv`, one line per metric and scope with a fixed header, and the same
//! lines as JSON with what the console adds to them.
//!
//! A value that does not apply is an empty cell, or `null`: never 0, NaN or inf. Deliberately absent: rounding
//! in JSON, and anything there that `run.json` holds already.

use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use super::folder::{WriteError, replace_file};
use super::manifest::{WindowFacts, outcome_counts};
use super::run_facts::RunFacts;
use crate::columns::{Column, PLAIN, Unit, Word, WriteCell, columns, write_cells, write_header};
use crate::metrics::{Percentile, Summary, SummaryLine};
use crate::redact::redact_text;

/// A cell of a line, before it is written as CSV or as JSON.
#[derive(Clone, Copy, Debug)]
pub enum Figure<'a> {
    /// A name.
    Text(&'a str),
    /// A number of values.
    Count(Option<u64>),
    /// A figure in the line's unit.
    Number(Option<f64>),
}
use Figure::{Count, Number, Text};

columns! {
    /// The columns of `summary.csv`, in order.
    pub const SUMMARY_COLUMNS: |line: &SummaryLine| -> Figure<'_> {
        /// What is told.
        "metric" = Text(&line.metric);
        /// Of which rows: `measured`, `all` or `class:NAME`.
        "scope" = Text(&line.scope);
        /// What the figures of this line are counted in.
        "unit" = Text(line.unit.word());
        /// Whether values were kept `exact` or in a `histogram`, within 0.1%.
        "basis" = Text(line.basis.word());
        /// Measured values; of a rate, what was counted; of `error_rate`, the rows due. Empty: a count.
        "n" = Count(line.n);
        /// Mean of the measured values; the value of a rate or a count. Empty: not known.
        "mean" = Number(line.mean);
        /// Sample standard deviation. Empty: fewer than two values.
        "std" = Number(line.std);
        /// Smallest measured value. Empty: there is none.
        "min" = Number(line.min);
        /// 1st percentile, nearest rank. Empty: too few values to bound it, or it falls on one that we cut off.
        "p1" = Number(line.percentile(Percentile::P1));
        /// 5th percentile. Empty: as `p1`.
        "p5" = Number(line.percentile(Percentile::P5));
        /// 10th percentile. Empty: as `p1`.
        "p10" = Number(line.percentile(Percentile::P10));
        /// 25th percentile. Empty: as `p1`.
        "p25" = Number(line.percentile(Percentile::P25));
        /// Median. Empty: as `p1`.
        "p50" = Number(line.percentile(Percentile::P50));
        /// 75th percentile. Empty: as `p1`.
        "p75" = Number(line.percentile(Percentile::P75));
        /// 90th percentile. Empty: as `p1`.
        "p90" = Number(line.percentile(Percentile::P90));
        /// 95th percentile. Empty: as `p1`.
        "p95" = Number(line.percentile(Percentile::P95));
        /// 99th percentile. Empty: as `p1`.
        "p99" = Number(line.percentile(Percentile::P99));
        /// 99.9th percentile. Empty: as `p1`.
        "p99_9" = Number(line.percentile(Percentile::P99_9));
        /// Largest measured value. Empty: there is none.
        "max" = Number(line.max);
        /// Lower end of the median's 95% interval. Empty: values depend on each other, or are too few.
        "ci_low" = Number(line.ci_low);
        /// Its upper end. Empty: as `ci_low`.
        "ci_high" = Number(line.ci_high);
        /// Values that we cut off before they were known. Empty: a rate or a count.
        "censored" = Count(line.censored);
    }
}

/// Writes the header and every line.
pub fn write_summary<W: Write>(summary: &Summary, mut out: W) -> std::io::Result<()> {
    let mut text = Vec::new();
    write_header(SUMMARY_COLUMNS, &mut text);
    for line in &summary.lines {
        write_cells(SUMMARY_COLUMNS, &mut text, |column, text| match (column.cell)(line) {
            Text(name) => WriteCell::<PLAIN>::write(&name, text),
            Count(n) => WriteCell::<PLAIN>::write(&n, text),
            Number(value) => text.extend_from_slice(number(line.unit, value).as_bytes()),
        });
    }
    out.write_all(&text)?;
    out.flush()
}

/// Writes the file, whole or not at all.
pub fn save_summary(summary: &Summary, path: &Path) -> Result<(), WriteError> {
    replace_file(path, |out| write_summary(summary, out))
}

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

/// A line with the columns as keys, unrounded; what does not apply is `null`.
fn line_json(line: &SummaryLine) -> Value {
    let entry = |column: &Column<fn(&SummaryLine) -> Figure<'_>>| {
        let value = match (column.cell)(line) {
            Text(name) => json!(name),
            Count(n) => json!(n),
            Number(value) => json!(value),
        };
        (column.name.to_owned(), value)
    };
    Value::Object(SUMMARY_COLUMNS.iter().map(entry).collect())
}

/// Milliseconds to the nanosecond; shares to nine decimals, since one error in ten million rows is
/// not none; all else to six. Trailing zeros are left out but of milliseconds.
fn number(unit: Unit, value: Option<f64>) -> String {
    let Some(value) = value.filter(|value| value.is_finite()) else { return String::new() };
    let text = match unit {
        Unit::Ms => return format!("{value:.6}"),
        Unit::Share => format!("{value:.9}"),
        _ => format!("{value:.6}"),
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Metrics, Window};
    use crate::record::{Kind, Outcome, Row, StreamRecord, Usage};
    use crate::units::Nanos;

    fn text_of(records: &[StreamRecord]) -> String {
        let mut metrics = Metrics::new(Window::default());
        for record in records {
            metrics.add(&Row::of(record, Nanos::ZERO), record);
        }
        let mut out = Vec::new();
        write_summary(&metrics.finish(), &mut out).expect("memory");
        String::from_utf8(out).expect("text")
    }

    fn answer(due_s: u64, output: u64) -> StreamRecord {
        let due = Nanos::from_secs(due_s);
        let mut record = StreamRecord {
            due,
            sent: Some(due + Nanos(1_500)),
            http_status: Some(200),
            outcome: Outcome::Ok,
            usage: Some(Usage { output_tok: Some(output), ..Usage::default() }),
            class: Some("a,b".into()),
            ..StreamRecord::default()
        };
        for k in 1..=output {
            record.tokens.push(due + Nanos::from_millis(100 * k), Kind::Content, None);
        }
        record
    }

    #[test]
    fn lines_are_fixed_and_cells_empty_where_nothing_is_known() {
        let text = text_of(&(0..8).map(|i| answer(i, 3)).collect::<Vec<_>>());
        let mut lines = text.lines();
        assert_eq!(
            lines.next(),
            Some(
                "metric,scope,unit,basis,n,mean,std,min,p1,p5,p10,p25,p50,p75,p90,p95,p99,p99_9,\
                 max,ci_low,ci_high,censored"
            )
        );
        for line in [
            "lag_ms,measured,ms,exact,8,0.001500,0.000000,0.001500,,,,,0.001500,,,,,,0.001500,\
             0.001500,0.001500,0",
            "connect_ms,measured,ms,exact,0,,,,,,,,,,,,,,,,,0",
            "ttft_ms,all,ms,exact,8,100.000000,0.000000,100.000000,,,,,100.000000,,,,,,100.000000,\
             100.000000,100.000000,0",
            "output_tok,measured,tok,exact,8,3,0,3,,,,,3,,,,,,3,,,0",
            "decode_tok_s,\"class:a,b\",tok/s,exact,8,10,0,10,,,,,10,,,,,,10,,,0",
            "offered_s,measured,req/s,exact,8,1.142857,,,,,,,,,,,,,,,,",
            "error_rate,measured,share,exact,8,0,,,,,,,,,,,,,,,,",
            "outcome_ok,all,count,exact,,8,,,,,,,,,,,,,,,,",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\nnot in\n{text}");
        }
    }

    #[test]
    fn degenerate_runs_have_no_nan_and_whole_lines() {
        let one_token = answer(0, 1);
        let refused = StreamRecord { outcome: Outcome::Connect, ..StreamRecord::default() };
        for records in
            [vec![], vec![one_token.clone()], vec![refused.clone(); 20], vec![one_token, refused]]
        {
            let text = text_of(&records);
            let lower = text.to_lowercase();
            assert!(!lower.contains("nan") && !lower.contains("inf"), "{text}");
            let mut reader =
                csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
            for record in reader.records() {
                assert_eq!(record.expect("as many cells as columns").len(), SUMMARY_COLUMNS.len());
            }
        }
    }

    #[test]
    fn numbers_have_one_style() {
        assert_eq!(number(Unit::Ms, Some(0.000_001)), "0.000001");
        assert_eq!(number(Unit::Share, Some(1.0 / 27_000_000.0)), "0.000000037");
        assert_eq!(number(Unit::Count, Some(1_200.0)), "1200");
        assert_eq!(number(Unit::TokS, Some(1.0 / 3.0)), "0.333333");
        assert_eq!(number(Unit::TokS, Some(f64::NAN)), "");
        assert_eq!(number(Unit::TokS, Some(f64::INFINITY)), "");
    }

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
