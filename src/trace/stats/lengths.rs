//! How long prompts or completions are: exact counts per length, percentiles, atoms.

use std::collections::HashMap;

use serde::Serialize;

/// Atoms that are named.
const ATOMS: usize = 3;
/// From what share of the rows on a length is an atom.
const ATOM_SHARE: f64 = 0.01;
/// A cap holds at least this share of the rows within 0.1% of the longest.
const CAP_SHARE: f64 = 0.005;
const CAP_NEAR: f64 = 0.999;

/// Gathers lengths.
#[derive(Clone, Debug, Default)]
pub struct Lengths {
    counts: HashMap<u32, u64>,
    rows: u64,
    sum: u64,
    square_sum: f64,
}

/// Lengths in figures, all in tokens.
#[derive(Clone, Debug, Serialize)]
pub struct LengthFigures {
    /// Mean.
    pub mean: f64,
    /// Standard deviation ÷ mean.
    pub cv: Option<f64>,
    /// Shortest.
    pub min: u32,
    /// Nearest rank, as are the next.
    pub p1: u32,
    /// 10th percentile.
    pub p10: u32,
    /// 25th percentile.
    pub p25: u32,
    /// 50th percentile.
    pub p50: u32,
    /// 75th percentile.
    pub p75: u32,
    /// 90th percentile.
    pub p90: u32,
    /// 95th percentile.
    pub p95: u32,
    /// 99th percentile.
    pub p99: u32,
    /// Longest.
    pub max: u32,
    /// Sum over all rows.
    pub sum: u64,
    /// Lengths that 1% of the rows or more share, the commonest first.
    pub atoms: Vec<Atom>,
    /// Share of rows within 0.1% of the longest, where that is an atom too: a limit cut them.
    pub at_cap: Option<f64>,
}

/// A length that many rows share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Atom {
    /// The length.
    pub tok: u32,
    /// Share of the rows.
    pub share: f64,
}

impl Lengths {
    /// Counts a length.
    pub fn add(&mut self, tok: u32) {
        *self.counts.entry(tok).or_default() += 1;
        self.rows += 1;
        self.sum += u64::from(tok);
        self.square_sum += f64::from(tok) * f64::from(tok);
    }

    /// Lengths and their counts, shortest first.
    #[must_use]
    pub fn sorted(&self) -> Vec<(u32, u64)> {
        let mut sorted: Vec<_> = self.counts.iter().map(|(&tok, &count)| (tok, count)).collect();
        sorted.sort_unstable();
        sorted
    }

    /// Largest distance between the distribution functions of two sets (Kolmogorov and Smirnov);
    /// absent where one is empty.
    #[must_use]
    pub fn distance(&self, other: &Self) -> Option<f64> {
        if self.rows == 0 || other.rows == 0 {
            return None;
        }
        let (ours, theirs) = (self.sorted(), other.sorted());
        let (mut i, mut j, mut a, mut b, mut most) = (0, 0, 0, 0, 0.0_f64);
        while i < ours.len() || j < theirs.len() {
            let next = [ours.get(i), theirs.get(j)].into_iter().flatten().map(|step| step.0).min();
            if ours.get(i).map(|step| step.0) == next {
                a += ours[i].1;
                i += 1;
            }
            if theirs.get(j).map(|step| step.0) == next {
                b += theirs[j].1;
                j += 1;
            }
            most = most.max((a as f64 / self.rows as f64 - b as f64 / other.rows as f64).abs());
        }
        Some(most)
    }

    /// The figures; absent without rows.
    #[must_use]
    pub fn figures(&self) -> Option<LengthFigures> {
        let sorted = self.sorted();
        let (min, max) = (sorted.first()?.0, sorted.last()?.0);
        let rows = self.rows as f64;
        let mean = self.sum as f64 / rows;
        let variance = (self.square_sum / rows - mean * mean).max(0.0);
        let [p1, p10, p25, p50, p75, p90, p95, p99] =
            [1, 10, 25, 50, 75, 90, 95, 99].map(|percent| percentile(&sorted, self.rows, percent));
        let share = |count: u64| count as f64 / rows;
        let mut atoms: Vec<_> =
            sorted.iter().map(|&(tok, count)| Atom { tok, share: share(count) }).collect();
        atoms.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.tok.cmp(&b.tok)));
        atoms.retain(|atom| atom.share >= ATOM_SHARE);
        atoms.truncate(ATOMS);
        let near = f64::from(max) * CAP_NEAR;
        let capped = sorted.iter().rev().take_while(|(tok, _)| f64::from(*tok) >= near);
        let at_cap = share(capped.map(|(_, count)| count).sum());
        Some(LengthFigures {
            mean,
            cv: (mean > 0.0).then(|| variance.sqrt() / mean),
            min,
            p1,
            p10,
            p25,
            p50,
            p75,
            p90,
            p95,
            p99,
            max,
            sum: self.sum,
            atoms,
            at_cap: (at_cap >= CAP_SHARE && min < max).then_some(at_cap),
        })
    }
}

/// Nearest rank.
fn percentile(sorted: &[(u32, u64)], rows: u64, percent: u64) -> u32 {
    let rank = (rows * percent).div_ceil(100).max(1);
    let mut seen = 0;
    let found = sorted.iter().find(|(_, count)| {
        seen += count;
        seen >= rank
    });
    found.map_or(0, |(tok, _)| *tok)
}
