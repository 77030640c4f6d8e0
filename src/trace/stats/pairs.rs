//! How prompt and completion lengths go together.
//!
//! Ranks need all rows at once, so they are taken over at most a million of them, evenly spread; the
//! product-moment figure is over all.

use serde::Serialize;

/// Pairs that are held.
const LIMIT: usize = 1 << 20;

/// Gathers pairs of lengths.
#[derive(Clone, Debug)]
pub(super) struct Pairs {
    held: Vec<(u32, u32)>,
    /// One of so many pairs is held.
    stride: u64,
    rows: u64,
    sums: [f64; 5],
}

impl Default for Pairs {
    fn default() -> Self {
        Self { held: Vec::new(), stride: 1, rows: 0, sums: [0.0; 5] }
    }
}

/// Correlation of prompt and completion lengths; a side that is constant has none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Correlation {
    /// Product-moment (Pearson), over all rows.
    pub pearson: Option<f64>,
    /// Of ranks (Spearman), ties at their mean rank.
    pub spearman: Option<f64>,
    /// Rows that the ranks are of.
    pub ranked_rows: u64,
}

impl Pairs {
    pub(super) fn add(&mut self, input_tok: u32, output_tok: u32) {
        let (x, y) = (f64::from(input_tok), f64::from(output_tok));
        for (sum, term) in self.sums.iter_mut().zip([x, y, x * x, y * y, x * y]) {
            *sum += term;
        }
        if self.rows.is_multiple_of(self.stride) {
            if self.held.len() == LIMIT {
                let mut place = 0;
                self.held.retain(|_| {
                    place += 1;
                    place % 2 == 1
                });
                self.stride *= 2;
            }
            if self.rows.is_multiple_of(self.stride) {
                self.held.push((input_tok, output_tok));
            }
        }
        self.rows += 1;
    }

    pub(super) fn correlation(&self) -> Option<Correlation> {
        if self.rows < 2 {
            return None;
        }
        let (inputs, outputs): (Vec<u32>, Vec<u32>) = self.held.iter().copied().unzip();
        let (x, y) = (ranks(&inputs), ranks(&outputs));
        let mut sums = [0.0; 5];
        for (x, y) in x.iter().zip(&y) {
            for (sum, term) in sums.iter_mut().zip([*x, *y, x * x, y * y, x * y]) {
                *sum += term;
            }
        }
        Some(Correlation {
            pearson: pearson(self.sums, self.rows as f64),
            spearman: pearson(sums, x.len() as f64),
            ranked_rows: x.len() as u64,
        })
    }
}

fn pearson([x, y, xx, yy, xy]: [f64; 5], n: f64) -> Option<f64> {
    let (vx, vy) = (xx - x * x / n, yy - y * y / n);
    // A constant side leaves nothing but the error of rounding.
    (vx > xx * 1e-12 && vy > yy * 1e-12)
        .then(|| ((xy - x * y / n) / (vx.sqrt() * vy.sqrt())).clamp(-1.0, 1.0))
}

/// Ranks from 0, ties at their mean; centred, so that sums stay exact.
fn ranks(values: &[u32]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by_key(|&place| values[place]);
    let mut ranks = vec![0.0; values.len()];
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let mut begin = 0;
    for tie in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let rank = begin as f64 + (tie.len() as f64 - 1.0) / 2.0 - middle;
        for &place in tie {
            ranks[place] = rank;
        }
        begin += tie.len();
    }
    ranks
}
