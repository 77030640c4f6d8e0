//! Distributions that are read off a table: the values of a file, a grid of quantiles, Zipf's law.
//!
//! Values of a file, a number per line or one `column` of a CSV with a header, are drawn with replacement,
//! each as likely as any other; it is the one place where a workload reads a second file. Deliberately absent:
//! pairs of columns, which a rank correlation stands for.

use std::path::Path;
use std::sync::Arc;

use super::super::WorkloadError;
use super::super::keys::{Field, Keys};
use super::Unit;

/// The largest file.
const LIMIT_BYTES: u64 = 512 * 1024 * 1024;

/// Reads `file` and, where there is one, `column`.
pub(super) fn read_file(keys: &mut Keys<'_>, unit: Unit) -> Result<Arc<[f64]>, WorkloadError> {
    let file = keys.need("file", "it names a file of numbers, one a line, or a CSV")?;
    let column = keys.get("column").map(|field| field.text()).transpose()?;
    let path = file.file()?;
    let text = file_text(&file, &path)?;
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

fn file_text(field: &Field<'_>, path: &Path) -> Result<String, WorkloadError> {
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

/// The most points a grid may have.
const LIMIT_POINTS: usize = 100_000;

/// Reads `q` and the values at each: points of an inverse distribution function with straight lines between
/// them. With 105 points it is within KS 0.007 of the rows that they were taken from, where the best single
/// family misses by 0.04 to 0.2.
pub(super) fn read_grid(
    keys: &mut Keys<'_>,
    unit: Unit,
) -> Result<Arc<[(f64, f64)]>, WorkloadError> {
    let q_field = keys.need("q", "it lists probabilities from 0 to 1, ascending")?;
    let value_field = keys.need(unit.key, "it lists the value at each probability of `q`")?;
    let (q, values) = (q_field.numbers()?, value_field.numbers()?);
    if q.len() < 2 || q.len() > LIMIT_POINTS {
        let why = format!("has {} points; it must have from 2 to {LIMIT_POINTS}", q.len());
        return Err(q_field.fail(why));
    }
    if values.len() != q.len() {
        let why = format!("has {} points where `q` has {}", values.len(), q.len());
        return Err(value_field.fail(why));
    }
    for (name, value, right) in [("first", q[0], 0.0), ("last", q[q.len() - 1], 1.0)] {
        if value.total_cmp(&right).is_ne() {
            return Err(
                q_field.fail(format!("has {value} as its {name} point; it must be {right}"))
            );
        }
    }
    if let Some(at) = (1..q.len()).find(|&at| q[at] <= q[at - 1]) {
        return Err(q_field.fail(format!("goes from {} to {}; it must ascend", q[at - 1], q[at])));
    }
    if let Some(at) = (1..q.len()).find(|&at| values[at] < values[at - 1]) {
        let why = format!("goes down from {} to {}; it must not", values[at - 1], values[at]);
        return Err(value_field.fail(why));
    }
    if let Some(bad) = values.iter().find(|&&value| value < unit.least || value > unit.most) {
        let why = format!("holds {bad}; a value must be from {} to {}", unit.least, unit.most);
        return Err(value_field.fail(why));
    }
    Ok(q.into_iter().zip(values).collect())
}

/// The value at probability `u`.
pub(super) fn interpolate(grid: &[(f64, f64)], u: f64) -> f64 {
    let right = grid.partition_point(|&(q, _)| q <= u).clamp(1, grid.len() - 1);
    let ((q0, value0), (q1, value1)) = (grid[right - 1], grid[right]);
    value0 + (value1 - value0) * ((u - q0) / (q1 - q0))
}

/// The most values, each of which is a number in memory.
const LIMIT_VALUES: f64 = 2e6;

/// Zipf's law on whole numbers, k with a weight of k^−a, its weights summed up.
#[derive(Clone, Debug)]
pub(super) struct Zipf {
    min: f64,
    /// The share of values up to each.
    shares: Arc<[f64]>,
}

impl Zipf {
    /// Reads `exponent`, `min` and `max`.
    pub(super) fn read(keys: &mut Keys<'_>, unit: Unit) -> Result<Self, WorkloadError> {
        let exponent = keys.need("exponent", "write for example exponent = 1.1")?;
        let exponent = exponent.number_in(0.0, 20.0)?;
        let min_field = keys.get("min");
        let min = min_field.as_ref().map_or(Ok(unit.least), |field| unit.value(field))?;
        let max_field = keys.need("max", "the law needs an end, for example max = 8192")?;
        let max = unit.value(&max_field)?;
        if min > max || max - min >= LIMIT_VALUES {
            let why =
                format!("is {max}; from `min` to `max` there must be 1 to {LIMIT_VALUES} values");
            return Err(max_field.fail(why));
        }
        let mut sum = 0.0;
        let mut shares = Vec::new();
        let mut value = min;
        while value <= max {
            sum += libm::exp(-exponent * libm::log(value));
            shares.push(sum);
            value += 1.0;
        }
        for share in &mut shares {
            *share /= sum;
        }
        Ok(Self { min, shares: shares.into() })
    }

    /// The value at probability `u`.
    pub(super) fn at(&self, u: f64) -> f64 {
        let place = self.shares.partition_point(|&share| share <= u).min(self.shares.len() - 1);
        self.min + place as f64
    }
}
