//! A page, as the figures of its engine: which engine it is, and what each of its series says.
//!
//! Figures stay apart by series (engine, replica, finish reason), so that a restart of one of several is
//! seen; ranks that repeat one figure are folded into it. Deliberately absent: time between readings.

use std::collections::{BTreeMap, BTreeSet};

use super::exposition::{Exposition, Sample};
use super::histogram::{Bound, Histogram};
use super::models::models;
use super::reading_error::{ReadingError, SHOWN_CHARS};
use super::rules::{Counter, Gauge, Latency, Rules, Selector, Stepping, TABLE};

/// One series of a figure: its labels, sorted, without those that repeat.
pub type Series = Vec<(String, String)>;

/// The figures of one page.
#[derive(Clone, Debug)]
pub struct Reading {
    /// By which rules they were read.
    pub rules: &'static Rules,
    /// Seconds since 1970 at which the server's process started, where the page says so.
    pub started: Option<f64>,
    /// Counters by series. One that the page declares and has no series of has not moved yet; one that
    /// the page does not have is not here.
    pub counters: BTreeMap<Counter, BTreeMap<Series, f64>>,
    /// Gauges over all series: added up, or the largest where they are shares.
    pub gauges: BTreeMap<Gauge, f64>,
    /// Histograms by series.
    pub latencies: BTreeMap<Latency, BTreeMap<Series, Histogram>>,
    /// Tokens by what else grows with them, where no count of tokens does while requests run.
    pub stepped: Option<Stepped>,
    /// Models whose figures are added up here; none where the page does not name them.
    pub models: BTreeSet<String>,
    /// Figures that are left out, and why.
    pub faults: Vec<ReadingError>,
}

/// Tokens, those of running requests too, counted by way of something else.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stepped {
    /// So many.
    pub tok: f64,
    /// How far that may be off for the digits that a page prints.
    pub error_tok: f64,
}

/// No figure is larger: beyond it not every whole number is an [`f64`], so that one more would not be seen.
const LARGEST: f64 = 9_007_199_254_740_992.0;

/// The rules by which a page is read.
pub fn recognise(page: &Exposition<'_>) -> Result<&'static Rules, ReadingError> {
    let has = |rules: &Rules| {
        rules.prefixes.iter().any(|prefix| {
            page.samples.iter().any(|sample| sample.name.starts_with(prefix))
                || page.kinds.keys().any(|name| name.starts_with(prefix))
        })
    };
    TABLE.iter().find(|rules| has(rules)).ok_or_else(|| {
        let known: Vec<&str> = TABLE.iter().map(|rules| rules.name).collect();
        let mut names: Vec<&str> = page.samples.iter().map(|sample| sample.name.as_ref()).collect();
        names.dedup();
        names.truncate(3);
        let seen = if names.is_empty() {
            "; it is empty".to_owned()
        } else {
            format!("; it begins with {}", names.join(", "))
        };
        ReadingError::UnknownEngine { known: known.join(", "), seen }
    })
}

/// Reads a page by the rules of its engine.
#[must_use]
pub fn read(page: &Exposition<'_>, rules: &'static Rules) -> Reading {
    let mut by_name: BTreeMap<&str, Vec<&Sample<'_>>> = BTreeMap::new();
    for sample in &page.samples {
        by_name.entry(sample.name.as_ref()).or_default().push(sample);
    }
    let names = Names { by_name, page, repeats: rules.repeats };
    let mut reading = Reading {
        rules,
        started: names.started(),
        counters: BTreeMap::new(),
        gauges: BTreeMap::new(),
        latencies: BTreeMap::new(),
        stepped: None,
        models: models(page, rules),
        faults: Vec::new(),
    };
    let faults = &mut reading.faults;
    for (counter, selector) in rules.counters {
        keep(&mut reading.counters, faults, *counter, names.counter(selector));
    }
    for (gauge, selector) in rules.gauges {
        keep(&mut reading.gauges, faults, *gauge, names.gauge(*gauge, selector));
    }
    for (latency, selector) in rules.latencies {
        let series = names.histograms(selector).map(|all| (!all.is_empty()).then_some(all));
        keep(&mut reading.latencies, faults, *latency, series);
    }
    reading.stepped = stepped(&reading);
    reading
}

/// Keeps a figure where the page has it, or why it cannot be read.
fn keep<K: Ord, V>(
    figures: &mut BTreeMap<K, V>,
    faults: &mut Vec<ReadingError>,
    key: K,
    found: Result<Option<V>, ReadingError>,
) {
    match found {
        Ok(found) => figures.extend(found.map(|figure| (key, figure))),
        Err(fault) => faults.push(fault),
    }
}

fn stepped(reading: &Reading) -> Option<Stepped> {
    match reading.rules.stepping? {
        Stepping::BusyPlaces => {
            let steps: f64 = reading.counters.get(&Counter::Steps)?.values().sum();
            let mean = *reading.gauges.get(&Gauge::MeanBatch)?;
            // Half of the sixth digit.
            let digit = if mean > 0.0 { 10_f64.powf(mean.log10().floor() - 5.0) } else { 0.0 };
            Some(Stepped { tok: steps * mean, error_tok: steps * digit / 2.0 })
        }
        Stepping::TokenGaps => {
            let count = |latency| -> Option<f64> {
                let series = reading.latencies.get(&latency)?;
                Some(series.values().map(|histogram| histogram.count).sum())
            };
            let tok = count(Latency::Ttft)? + count(Latency::Itl)?;
            Some(Stepped { tok, error_tok: 0.0 })
        }
    }
}

struct Names<'a> {
    by_name: BTreeMap<&'a str, Vec<&'a Sample<'a>>>,
    page: &'a Exposition<'a>,
    repeats: &'static [&'static str],
}

impl<'a> Names<'a> {
    fn of(&self, name: &str) -> &[&'a Sample<'a>] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }

    /// The samples under the first name that is there, with and without `_total`.
    fn found(
        &self,
        selector: &'static Selector,
    ) -> (&'static str, impl Iterator<Item = &'a Sample<'a>> + '_) {
        let is = |sample: &Sample<'_>, (label, values): (&str, &[&str])| {
            sample.label(label).is_some_and(|value| values.contains(&value))
        };
        let (name, samples) = selector
            .names
            .iter()
            .map(|name| match self.of(&format!("{name}_total")) {
                [] => (*name, self.of(name)),
                total => (*name, total),
            })
            .find(|(_, samples)| !samples.is_empty())
            .unwrap_or((selector.names[0], &[]));
        let wanted = samples.iter().copied().filter(move |sample| {
            selector.only.is_none_or(|only| is(sample, only))
                && !selector.except.is_some_and(|except| is(sample, except))
        });
        (name, wanted)
    }

    fn is_declared(&self, selector: &Selector) -> bool {
        let kinds = &self.page.kinds;
        selector.names.iter().any(|name| {
            kinds.contains_key(name) || kinds.contains_key(format!("{name}_total").as_str())
        })
    }

    /// `None` where the page does not have it.
    fn counter(
        &self,
        selector: &'static Selector,
    ) -> Result<Option<BTreeMap<Series, f64>>, ReadingError> {
        let (name, samples) = self.found(selector);
        let mut seen = BTreeSet::new();
        let mut series = BTreeMap::new();
        for sample in samples {
            let value = count(name, sample.value)?;
            once(name, &mut seen, key(sample, &[]))?;
            let kept: &mut f64 = series.entry(key(sample, self.repeats)).or_default();
            *kept = kept.max(value);
        }
        Ok((!series.is_empty() || self.is_declared(selector)).then_some(series))
    }

    /// `None` where the page does not have it, or calls it NaN as what a server does not know yet.
    fn gauge(
        &self,
        gauge: Gauge,
        selector: &'static Selector,
    ) -> Result<Option<f64>, ReadingError> {
        let (name, samples) = self.found(selector);
        let mut series: BTreeMap<Series, f64> = BTreeMap::new();
        for sample in samples.filter(|sample| !sample.value.is_nan()) {
            if !is_amount(sample.value) {
                let (name, value) = (name.to_owned(), said(sample.value));
                return Err(ReadingError::NoAmount { name, value });
            }
            let kept = series.entry(key(sample, self.repeats)).or_insert(sample.value);
            *kept = kept.max(sample.value);
        }
        Ok(match gauge {
            Gauge::Running | Gauge::Waiting => series.into_values().reduce(|a, b| a + b),
            Gauge::KvUse | Gauge::CacheHitRate | Gauge::AcceptanceRate | Gauge::MeanBatch => {
                series.into_values().reduce(f64::max)
            }
        })
    }

    /// When the process started; `None` where the page gives no time.
    fn started(&self) -> Option<f64> {
        let started = self.of("process_start_time_seconds").first()?.value;
        is_amount(started).then_some(started)
    }

    fn histograms(
        &self,
        selector: &'static Selector,
    ) -> Result<BTreeMap<Series, Histogram>, ReadingError> {
        let Some(name) =
            selector.names.iter().find(|name| !self.of(&format!("{name}_count")).is_empty())
        else {
            return Ok(BTreeMap::new());
        };
        let without_le = [self.repeats, &["le"]].concat();
        let mut series: BTreeMap<Series, Histogram> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for sample in self.of(&format!("{name}_bucket")) {
            let bound = bound(name, sample.label("le").unwrap_or_default())?;
            let value = count(name, sample.value)?;
            once(name, &mut seen, key(sample, &[]))?;
            let histogram = series.entry(key(sample, &without_le)).or_default();
            let kept = histogram.up_to.entry(Bound(bound)).or_default();
            *kept = kept.max(value);
        }
        for sample in self.of(&format!("{name}_count")) {
            let histogram = series.entry(key(sample, self.repeats)).or_default();
            histogram.count = histogram.count.max(count(name, sample.value)?);
        }
        for sample in self.of(&format!("{name}_sum")) {
            let histogram = series.entry(key(sample, self.repeats)).or_default();
            histogram.sum = histogram.sum.max(count(name, sample.value)?);
        }
        Ok(series)
    }
}

/// The labels of a sample in one order, without some.
fn key(sample: &Sample<'_>, without: &[&str]) -> Series {
    let mut labels: Series = sample
        .labels
        .iter()
        .filter(|(label, _)| !without.contains(&label.as_ref()))
        .map(|(label, value)| (label.to_string(), value.to_string()))
        .collect();
    labels.sort_unstable();
    labels
}

fn count(name: &str, value: f64) -> Result<f64, ReadingError> {
    if is_amount(value) {
        return Ok(value);
    }
    Err(ReadingError::NoCount { name: name.to_owned(), value: said(value) })
}

/// Not for NaN.
fn is_amount(value: f64) -> bool {
    (0.0..=LARGEST).contains(&value)
}

/// Short, however large.
fn said(value: f64) -> String {
    if value.abs() > LARGEST { format!("{value:e}") } else { value.to_string() }
}

/// A bucket's upper bound, in seconds.
fn bound(name: &str, le: &str) -> Result<f64, ReadingError> {
    match le.parse::<f64>() {
        Ok(bound) if is_amount(bound) || bound == f64::INFINITY => Ok(bound),
        _ => {
            let le = le.chars().take(SHOWN_CHARS).collect();
            Err(ReadingError::NoBound { name: name.to_owned(), le })
        }
    }
}

fn once(name: &str, seen: &mut BTreeSet<Series>, key: Series) -> Result<(), ReadingError> {
    if seen.insert(key) { Ok(()) } else { Err(ReadingError::Twice { name: name.to_owned() }) }
}
