//! On which requests a fault falls. Pure; the random draw is handed in.

use super::FaultError;
use crate::units::Nanos;

/// Conditions, all of which must hold. The default is always.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct When {
    /// First and last of each run of numbers; `None`: any number.
    rows: Option<Vec<(u64, u64)>>,
    /// From 0 to 1.
    rate: Option<f64>,
    /// From, inclusive, and to, exclusive.
    time: Option<(Nanos, Nanos)>,
}

impl When {
    pub(super) fn parse<'a>(parts: impl Iterator<Item = &'a str>) -> Result<Self, FaultError> {
        let mut when = Self::default();
        for part in parts {
            let bad = || FaultError::When(part.to_owned());
            match part.split_once('=').ok_or_else(bad)? {
                ("rows", rows) => {
                    let rows: Option<Vec<_>> = rows.split(',').map(run).collect();
                    when.rows = Some(rows.ok_or_else(bad)?);
                }
                ("rate", rate) => when.rate = Some(share(rate).ok_or_else(bad)?),
                ("time", span) => when.time = Some(time(span).ok_or_else(bad)?),
                _ => return Err(bad()),
            }
        }
        Ok(when)
    }

    /// Whether it holds for a number at a time; `draw` is uniform in [0, 1).
    pub(super) fn holds(&self, number: u64, at: Nanos, draw: impl FnOnce() -> f64) -> bool {
        let in_rows = |rows: &Vec<(u64, u64)>| {
            rows.iter().any(|(first, last)| (*first..=*last).contains(&number))
        };
        self.rows.as_ref().is_none_or(in_rows)
            && self.time.is_none_or(|(from, to)| from <= at && at < to)
            && self.rate.is_none_or(|rate| draw() < rate)
    }
}

/// `7` or `3-7`.
fn run(text: &str) -> Option<(u64, u64)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first <= last).then_some((first, last))
}

/// `1%` or `0.01`.
fn share(text: &str) -> Option<f64> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok()? / 100.0,
        None => text.trim().parse().ok()?,
    };
    (0.0..=1.0).contains(&share).then_some(share)
}

/// `10s-20s`, `10s-` or `-20s`.
fn time(text: &str) -> Option<(Nanos, Nanos)> {
    let (from, to) = text.split_once('-')?;
    let end = |text: &str, open| match text.trim() {
        "" => Some(open),
        text => Nanos::parse_duration(text).ok(),
    };
    let (from, to) = (end(from, Nanos::ZERO)?, end(to, Nanos::MAX)?);
    (from < to).then_some((from, to))
}
