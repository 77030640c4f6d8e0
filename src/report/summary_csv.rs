//! `summary.csv`: one line per metric and scope, with a fixed header.
//!
//! A value that does not apply is an empty cell: never 0, NaN or inf.

use std::io::Write;
use std::path::Path;

use super::folder::{WriteError, replace_file};
use crate::metrics::{Line, Summary, Unit};

/// The columns, in order. `ci_low` and `ci_high` bound the median (see [`crate::metrics`]).
pub const HEADER: [&str; 22] = [
    "metric", "scope", "unit", "basis", "n", "mean", "std", "min", "p1", "p5", "p10", "p25", "p50",
    "p75", "p90", "p95", "p99", "p99_9", "max", "ci_low", "ci_high", "censored",
];

/// Writes the header and every line.
pub fn write_summary<W: Write>(summary: &Summary, out: W) -> std::io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(HEADER)?;
    for line in &summary.lines {
        csv.write_record(cells(line))?;
    }
    csv.flush()
}

/// Writes the file, whole or not at all.
pub fn save_summary(summary: &Summary, path: &Path) -> Result<(), WriteError> {
    replace_file(path, |out| write_summary(summary, out))
}

fn cells(line: &Line) -> Vec<String> {
    let mut cells = vec![
        line.metric.to_string(),
        line.scope.to_string(),
        line.unit.word().to_owned(),
        line.basis.word().to_owned(),
        count(line.n),
    ];
    let mut figure = |value: Option<f64>| cells.push(number(line.unit, value));
    for value in [line.mean, line.std, line.min] {
        figure(value);
    }
    line.percentiles.into_iter().for_each(&mut figure);
    for value in [line.max, line.ci_low, line.ci_high] {
        figure(value);
    }
    cells.push(count(line.censored));
    cells
}

fn count(value: Option<u64>) -> String {
    value.map_or_else(String::new, |n| n.to_string())
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
                assert_eq!(record.expect("as many cells as columns").len(), HEADER.len());
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
}
