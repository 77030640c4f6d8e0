//! Arrivals: bursts where most seconds are silent, else an envelope over a renewal process.

use std::fmt::Write as _;

use super::text::number;
use crate::trace::stats::ArrivalFigures;
use crate::units::{NS_PER_S, Nanos};

/// A gap longer than this ends a burst.
const BURST_GAP_S: f64 = 5.0;
/// A burst of fewer gaps does not tell its pace.
const LEAST_GAPS: usize = 10;
/// From this share of silent seconds on, at more than a request a second, there are bursts.
const SILENT: f64 = 0.3;
/// A step of an envelope.
const STEP: u64 = 60 * NS_PER_S;
/// Steps that an envelope has at the most; longer traces get longer steps.
const LIMIT_STEPS: u64 = 2_000;
/// Below this dispersion of minutes there is nothing for an envelope to say.
const LEAST_IDC: f64 = 1.5;

/// When rows arrive, or sessions begin.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// Rows that begin a session, or belong to none.
    starts: Vec<u64>,
    /// Later turns.
    later: Vec<u64>,
    last: u64,
}

impl Times {
    pub(super) fn add(&mut self, at: Nanos, is_start: bool) {
        self.last = self.last.max(at.0);
        if is_start { &mut self.starts } else { &mut self.later }.push(at.0);
    }

    /// Later turns come by themselves only where their pauses are known; else each arrives.
    pub(super) fn without_turns(&mut self) {
        self.starts.append(&mut self.later);
        self.starts.sort_unstable();
    }

    pub(super) fn count(&self) -> usize {
        self.starts.len() + self.later.len()
    }

    /// In how many nanoseconds all arrives.
    pub(super) fn span(&self) -> u64 {
        let ends = (self.starts.first(), self.starts.last());
        let last = if self.begin_together() { Some(&self.last) } else { ends.1 };
        ends.0.zip(last).map_or(0, |(first, last)| last.saturating_sub(*first))
    }

    /// Whether most sessions begin in one instant, as they do where each counts from its own start: then
    /// nothing says how they arrive.
    pub(super) fn begin_together(&self) -> bool {
        let first = self.starts.first();
        let together = self.starts.iter().take_while(|at| Some(*at) == first).count();
        !self.later.is_empty() && together >= 2 && together * 2 > self.starts.len()
    }

    fn gaps(&self) -> impl Iterator<Item = u64> {
        self.starts.windows(2).map(|pair| pair[1].saturating_sub(pair[0]))
    }

    /// `[arrival]`.
    pub(super) fn text(&self, figures: &ArrivalFigures) -> String {
        let silent = figures.scales.first().and_then(|scale| scale.empty).unwrap_or(0.0);
        let rate = self.rate();
        if self.begin_together() {
            return process(rate, 1.0);
        }
        let may_burst = !figures.quantised && silent >= SILENT && rate > 1.0;
        if let Some(text) = may_burst.then(|| self.bursts()).flatten() {
            return text;
        }
        let idc = figures.scales.last().and_then(|scale| scale.idc).unwrap_or(1.0);
        let factors = if idc >= LEAST_IDC { self.factors(idc) } else { Vec::new() };
        let cv = if figures.quantised { 1.0 } else { self.cv_within(&factors) };
        let mut text = process(rate, cv);
        if factors.len() > 1 {
            let step = Nanos(self.step()).as_secs_f64();
            let _ = write!(
                text,
                "\n[arrival.envelope]\nkind = \"steps\"\nevery = \"{}s\"\nrepeat = true\nfactors = {}",
                number(step),
                super::text::list(factors.iter().map(|factor| format!("{factor:.3}")))
            );
        }
        text
    }

    fn rate(&self) -> f64 {
        let span_s = Nanos(self.span()).as_secs_f64();
        if span_s > 0.0 { self.starts.len() as f64 / span_s } else { 1.0 }
    }

    fn step(&self) -> u64 {
        STEP * self.span().div_ceil(STEP * LIMIT_STEPS).max(1)
    }

    /// The rate of each whole step as a share of the mean, drawn in by the noise that counts have by
    /// themselves: what is generated adds it again.
    fn factors(&self, idc: f64) -> Vec<f64> {
        let step = self.step();
        let steps = usize::try_from(self.span() / step).unwrap_or(0);
        let mut counts = vec![0.0; steps];
        let first = self.starts.first().copied().unwrap_or(0);
        for at in &self.starts {
            let place = usize::try_from((at - first) / step).unwrap_or(usize::MAX);
            if let Some(count) = counts.get_mut(place) {
                *count += 1.0;
            }
        }
        let mean = counts.iter().sum::<f64>() / counts.len().max(1) as f64;
        let keep = libm::sqrt((1.0 - 1.0 / idc).max(0.0));
        counts.into_iter().map(|count| (1.0 + (count / mean - 1.0) * keep).max(0.0)).collect()
    }

    /// The CV of gaps in the process's own time, which the envelope makes run evenly.
    fn cv_within(&self, factors: &[f64]) -> f64 {
        let first = self.starts.first().copied().unwrap_or(0);
        let factor = |at: u64| {
            let place = usize::try_from((at - first) / self.step()).unwrap_or(usize::MAX);
            factors.get(place).copied().unwrap_or(1.0)
        };
        let gaps: Vec<f64> =
            self.gaps().zip(&self.starts).map(|(gap, at)| gap as f64 * factor(*at)).collect();
        cv(&gaps)
    }

    /// Bursts: how many requests, how fast, how long the silence.
    fn bursts(&self) -> Option<String> {
        let gaps_s: Vec<f64> = self.gaps().map(|gap| gap as f64 / NS_PER_S as f64).collect();
        let bursts: Vec<&[f64]> = gaps_s.split(|gap| *gap > BURST_GAP_S).collect();
        let offs: Vec<f64> = gaps_s.iter().copied().filter(|gap| *gap > BURST_GAP_S).collect();
        let inside: f64 = bursts.iter().map(|gaps| gaps.len() as f64).sum();
        if bursts.len() < 5 || inside < 20.0 {
            return None;
        }
        let sizes: Vec<f64> = bursts.iter().map(|gaps| gaps.len() as f64 + 1.0).collect();
        // Each burst has a pace of its own; within one, gaps scatter around it.
        let long = bursts.iter().filter(|gaps| gaps.len() >= LEAST_GAPS);
        let paces: Vec<f64> = long
            .clone()
            .map(|gaps| gaps.len() as f64 / gaps.iter().sum::<f64>().max(1e-9))
            .collect();
        let even: Vec<f64> = long
            .zip(&paces)
            .flat_map(|(gaps, pace)| gaps.iter().map(move |gap| gap * pace))
            .collect();
        let ((size_mu, size_sigma), (off_mu, off_sigma)) = (logs(&sizes), logs(&offs));
        let (_, pace_sigma) = logs(&paces);
        // The mean of 1 ÷ pace is e^(σ²/2): so much longer the gaps would become.
        let rate = inside / bursts.iter().copied().flatten().sum::<f64>().max(1e-9);
        let mut text = process(rate * libm::exp(0.5 * pace_sigma * pace_sigma), cv(&even));
        let _ = write!(
            text,
            "\n[arrival.bursts]\n\
             size = {{ distribution = \"lognormal\", mu = {size_mu:.3}, sigma = {size_sigma:.3} }}\n\
             off = {{ distribution = \"lognormal\", mu = {off_mu:.3}, sigma = {off_sigma:.3} }}\n\
             pace = {{ distribution = \"lognormal\", mu = 0, sigma = {pace_sigma:.3} }}\n"
        );
        Some(text)
    }
}

/// A renewal process with this rate and CV.
fn process(rate: f64, cv: f64) -> String {
    let rate = number(rate.clamp(1e-6, 1e6));
    if (0.9..=1.1).contains(&cv) || !cv.is_finite() {
        return format!("[arrival]\nprocess = \"poisson\"\nrate = {rate}\n");
    }
    let cv = number(cv.clamp(0.01, 100.0));
    format!("[arrival]\nprocess = \"gamma\"\nrate = {rate}\ncv = {cv}\n")
}

fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / n;
    (mean, libm::sqrt(variance))
}

fn cv(values: &[f64]) -> f64 {
    let (mean, deviation) = mean_and_deviation(values);
    deviation / mean
}

/// Mean and deviation of the logarithms.
pub(super) fn logs(values: &[f64]) -> (f64, f64) {
    let logs: Vec<f64> = values.iter().map(|value| libm::log(value.max(1e-9))).collect();
    mean_and_deviation(&logs)
}
