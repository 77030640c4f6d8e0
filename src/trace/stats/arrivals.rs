//! When rows arrive: rate, gaps, and how counts scatter at three scales of time.
//!
//! Index of dispersion: IDC(w) = variance ÷ mean of the counts in windows of w seconds, counted from the
//! first row, the last, partial window left out (Cox and Lewis, "The Statistical Analysis of Series of
//! Events", 1966). 1 for Poisson arrivals at any scale; a gap's CV alone cannot tell bursts from noise.

use std::collections::HashMap;

use serde::Serialize;

use crate::units::{NS_PER_S, Nanos};

/// Seconds of the windows in which rows are counted.
pub const SCALES_S: [u64; 3] = [1, 10, 60];
/// Bins of the picture at most; they are joined in pairs when there are more.
const BINS: usize = 4096;
/// Sizes of gaps that are told apart for percentiles: 32 to an octave, and 0.
const GAP_STEPS: usize = 64 * 32 + 1;
/// Different gaps that are counted one by one.
const GAP_VALUES: usize = 1 << 16;

/// Gathers arrivals in time order.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    rows: u64,
    first: Nanos,
    last: Nanos,
    distinct: u64,
    /// Smallest gap that is not 0.
    least_gap: Option<Nanos>,
    longest_gap: Nanos,
    gap_sum_s: f64,
    gap_square_sum_s2: f64,
    under_ms: u64,
    /// Gaps and their counts, as long as there are not too many different ones.
    gap_values: Option<HashMap<u64, u64>>,
    /// Gaps by size, on a logarithmic scale.
    gap_counts: Vec<u64>,
    windows: [Windows; 3],
    /// Rows by time, for a picture; the width of a bin doubles as time goes on.
    bins: Vec<u64>,
    bin: Nanos,
}

/// Counts in windows of one width.
#[derive(Clone, Copy, Debug, Default)]
struct Windows {
    /// The window that is open, and its rows.
    open: u64,
    count: u64,
    sum: u64,
    square_sum: u128,
    peak: u64,
    empty: u64,
}

impl Windows {
    fn add(&mut self, window: u64) {
        if window > self.open {
            self.close();
            self.empty += window - self.open - 1;
            (self.open, self.count) = (window, 0);
        }
        self.count += 1;
    }

    fn close(&mut self) {
        self.sum += self.count;
        self.square_sum += u128::from(self.count) * u128::from(self.count);
        self.peak = self.peak.max(self.count);
        self.empty += u64::from(self.count == 0);
    }
}

/// When rows arrive, in figures.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ArrivalFigures {
    /// Trace time of the first row.
    pub first_s: Option<f64>,
    /// Trace time of the last row.
    pub last_s: Option<f64>,
    /// From the first row to the last.
    pub span_s: Option<f64>,
    /// Rows per second between the first and the last.
    pub rate: Option<f64>,
    /// Different times.
    pub distinct_times: u64,
    /// Whether the recorder rounded times so that fewer than half of them differ.
    pub quantised: bool,
    /// Coefficient of variation of the gaps between rows.
    pub gap_cv: Option<f64>,
    /// Median gap (to 2% where more than 65,536 gaps differ, as the next).
    pub gap_p50_s: Option<f64>,
    /// 99th percentile of the gaps.
    pub gap_p99_s: Option<f64>,
    /// Longest gap.
    pub gap_max_s: Option<f64>,
    /// Share of gaps under a millisecond.
    pub gaps_under_1ms: Option<f64>,
    /// By width of the window.
    pub scales: Vec<ScaleFigures>,
}

/// How counts scatter at one scale.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ScaleFigures {
    /// Width of the windows.
    pub window_s: u64,
    /// Index of dispersion of the counts; absent where fewer than two windows fit.
    pub idc: Option<f64>,
    /// Largest count ÷ mean count.
    pub peak_to_mean: Option<f64>,
    /// Share of windows without a row.
    pub empty: Option<f64>,
}

impl Arrivals {
    /// Counts a row. Rows come in time order; one that does not counts as coming with the row before it.
    pub fn add(&mut self, at: Nanos) {
        let at = at.max(self.last);
        if self.rows == 0 {
            self.first = at;
            self.distinct = 1;
            self.bin = Nanos(NS_PER_S / 8);
            self.gap_counts = vec![0; GAP_STEPS];
            self.gap_values = Some(HashMap::new());
        } else {
            self.gap(at.since(self.last));
        }
        self.rows += 1;
        self.last = at;
        let since = at.since(self.first);
        for (windows, width_s) in self.windows.iter_mut().zip(SCALES_S) {
            windows.add(since.0 / (width_s * NS_PER_S));
        }
        self.picture(since);
    }

    fn gap(&mut self, gap: Nanos) {
        if gap > Nanos::ZERO {
            self.distinct += 1;
            self.least_gap = Some(self.least_gap.map_or(gap, |least| least.min(gap)));
        }
        self.longest_gap = self.longest_gap.max(gap);
        let gap_s = gap.as_secs_f64();
        self.gap_sum_s += gap_s;
        self.gap_square_sum_s2 += gap_s * gap_s;
        self.under_ms += u64::from(gap < Nanos(NS_PER_S / 1000));
        self.gap_counts[step_of(gap.0)] += 1;
        if let Some(values) = &mut self.gap_values {
            *values.entry(gap.0).or_default() += 1;
            if values.len() > GAP_VALUES {
                self.gap_values = None;
            }
        }
    }

    fn picture(&mut self, since: Nanos) {
        let mut bin = since.0 / self.bin.0;
        while bin >= BINS as u64 {
            self.bins = self.bins.chunks(2).map(|pair| pair.iter().sum()).collect();
            self.bin = Nanos(self.bin.0.saturating_mul(2));
            bin = since.0 / self.bin.0;
        }
        let bin = usize::try_from(bin).unwrap_or(BINS - 1);
        if bin >= self.bins.len() {
            self.bins.resize(bin + 1, 0);
        }
        self.bins[bin] += 1;
    }

    /// Rows so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The smallest gap between different times: where a recorder rounded, the grain it rounded to.
    #[must_use]
    pub fn least_gap(&self) -> Option<Nanos> {
        self.least_gap
    }

    /// First and last arrival; absent without rows.
    #[must_use]
    pub fn span(&self) -> Option<(Nanos, Nanos)> {
        (self.rows > 0).then_some((self.first, self.last))
    }

    /// Rows per second in `columns` stretches of equal length, for a picture.
    #[must_use]
    pub fn rates(&self, columns: usize) -> Vec<f64> {
        let columns = columns.min(self.bins.len()).max(1);
        let width_s = self.last.since(self.first).as_secs_f64() / columns as f64;
        let mut rates = vec![0.0; columns];
        for (place, &count) in self.bins.iter().enumerate() {
            rates[place * columns / self.bins.len()] += count as f64;
        }
        if width_s > 0.0 {
            for rate in &mut rates {
                *rate /= width_s;
            }
        }
        rates
    }

    /// The figures so far.
    #[must_use]
    pub fn figures(&self) -> ArrivalFigures {
        if self.rows == 0 {
            return ArrivalFigures::default();
        }
        let gaps = (self.rows - 1) as f64;
        let span_s = self.last.since(self.first).as_secs_f64();
        let has_gaps = self.rows > 1;
        let mean_s = self.gap_sum_s / gaps;
        let variance_s2 = (self.gap_square_sum_s2 / gaps - mean_s * mean_s).max(0.0);
        ArrivalFigures {
            first_s: Some(self.first.as_secs_f64()),
            last_s: Some(self.last.as_secs_f64()),
            span_s: Some(span_s),
            rate: (span_s > 0.0).then(|| gaps / span_s),
            distinct_times: self.distinct,
            quantised: has_gaps && self.distinct * 2 < self.rows,
            gap_cv: (mean_s > 0.0).then(|| variance_s2.sqrt() / mean_s),
            gap_p50_s: has_gaps.then(|| self.gap_percentile_s(0.5)),
            gap_p99_s: has_gaps.then(|| self.gap_percentile_s(0.99)),
            gap_max_s: has_gaps.then(|| self.longest_gap.as_secs_f64()),
            gaps_under_1ms: has_gaps.then(|| self.under_ms as f64 / gaps),
            scales: self.windows.iter().zip(SCALES_S).map(|(w, s)| scale(w, s)).collect(),
        }
    }

    /// Nearest rank, over the gaps themselves or over the logarithmic counts.
    fn gap_percentile_s(&self, share: f64) -> f64 {
        let rank = (share * (self.rows - 1) as f64).ceil().max(1.0);
        let mut seen = 0;
        if let Some(values) = &self.gap_values {
            let mut values: Vec<_> = values.iter().collect();
            values.sort_unstable();
            let found = values.into_iter().find(|(_, count)| {
                seen += **count;
                seen as f64 >= rank
            });
            return Nanos(found.map_or(0, |(gap, _)| *gap)).as_secs_f64();
        }
        for (step, &count) in self.gap_counts.iter().enumerate() {
            seen += count;
            if seen as f64 >= rank {
                return size_of_step_ns(step).min(self.longest_gap.0 as f64) / NS_PER_S as f64;
            }
        }
        self.longest_gap.as_secs_f64()
    }
}

/// Figures over the windows that are full: the open one is not.
fn scale(windows: &Windows, width_s: u64) -> ScaleFigures {
    let full = windows.open;
    let mean = windows.sum as f64 / full as f64;
    let has = full > 0 && windows.sum > 0;
    #[expect(clippy::cast_precision_loss, reason = "sums of squared counts, for printing")]
    let variance = windows.square_sum as f64 / full as f64 - mean * mean;
    ScaleFigures {
        window_s: width_s,
        idc: (has && full > 1).then(|| variance.max(0.0) / mean),
        peak_to_mean: has.then(|| windows.peak as f64 / mean),
        empty: has.then(|| windows.empty as f64 / full as f64),
    }
}

/// 32 steps to an octave: 2.2% a step; 0 is a step of its own.
fn step_of(ns: u64) -> usize {
    let Some(octave) = ns.checked_ilog2() else { return 0 };
    let within = if octave >= 5 { (ns >> (octave - 5)) & 31 } else { (ns << (5 - octave)) & 31 };
    1 + octave as usize * 32 + usize::try_from(within).unwrap_or(0)
}

fn size_of_step_ns(step: usize) -> f64 {
    let Some(step) = step.checked_sub(1) else { return 0.0 };
    let octave = i32::try_from(step / 32).unwrap_or(0);
    libm::scalbn(1.0 + ((step % 32) as f64 + 0.5) / 32.0, octave)
}
