//! Values from a file: drawn with replacement, each as likely as any other.
//!
//! A number per line, or a CSV with a header and the `column` to take. The one place where a workload
//! reads a second file. Deliberately absent: pairs of columns, which a rank correlation stands for.

use std::path::Path;
use std::sync::Arc;

use super::super::WorkloadError;
use super::super::keys::{Field, Keys};
use super::Unit;

/// The largest file.
const LIMIT_BYTES: u64 = 512 * 1024 * 1024;

/// Reads `file` and, where there is one, `column`.
pub(super) fn read(keys: &mut Keys<'_>, unit: Unit) -> Result<Arc<[f64]>, WorkloadError> {
    let file = keys.need("file", "it names a file of numbers, one a line, or a CSV")?;
    let column = keys.get("column").map(|field| field.text()).transpose()?;
    let path = file.file()?;
    let text = text(&file, &path)?;
    let mut values = match column {
        None => lines(&text).map_err(|why| file.fail(why))?,
        Some(column) => cells(&text, column).map_err(|why| file.fail(why))?,
    };
    let fits = |value: f64| {
        (unit.least..=unit.most).contains(&value)
            && (!unit.whole || value.fract().abs() < f64::EPSILON)
    };
    if let Some((at, bad)) = values.iter().enumerate().find(|(_, value)| !fits(**value)) {
        let kind = if unit.whole { "whole numbers" } else { "numbers" };
        let why = format!(
            "names {}, whose value {} is {bad}; it must hold {kind} from {} to {}",
            path.display(),
            at + 1,
            unit.least,
            unit.most
        );
        return Err(file.fail(why));
    }
    if values.is_empty() {
        return Err(file.fail(format!("names {}, which holds no value", path.display())));
    }
    values.sort_unstable_by(f64::total_cmp);
    Ok(values.into())
}

fn text(field: &Field<'_>, path: &Path) -> Result<String, WorkloadError> {
    let shown = path.display();
    let size = std::fs::metadata(path).map(|file| file.len());
    if size.as_ref().is_ok_and(|&size| size > LIMIT_BYTES) {
        return Err(field.fail(format!("names {shown}, which is larger than {LIMIT_BYTES} bytes")));
    }
    std::fs::read_to_string(path)
        .map_err(|error| field.fail(format!("names {shown}, which cannot be read: {error}")))
}

fn lines(text: &str) -> Result<Vec<f64>, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, line)| {
            number(line).ok_or_else(|| {
                format!("names a file whose line {} is no number; name a `column` of a CSV", at + 1)
            })
        })
        .collect()
}

fn cells(text: &str, column: &str) -> Result<Vec<f64>, String> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header =
        reader.headers().map_err(|error| format!("names a file that is no CSV: {error}"))?;
    let place = header.iter().position(|name| name.trim() == column).ok_or_else(|| {
        let columns: Vec<&str> = header.iter().collect();
        format!("names a file without a column `{column}`; it has {}", columns.join(", "))
    })?;
    let mut values = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| format!("names a file that is no CSV: {error}"))?;
        let cell = record.get(place).unwrap_or_default();
        let line = record.position().map_or(0, csv::Position::line);
        values.push(number(cell).ok_or_else(|| {
            format!("names a file whose line {line} has `{cell}` in `{column}`, which is no number")
        })?);
    }
    Ok(values)
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

/// The place of probability `u` among `count` values.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "u is between 0 and 1, and the result is held to the last place"
)]
pub(super) fn place(u: f64, count: usize) -> usize {
    ((u * count as f64) as usize).min(count.saturating_sub(1))
}
