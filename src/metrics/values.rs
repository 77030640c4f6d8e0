//! The values behind a distribution: a list as long as they are few, a histogram beyond.

use hdrhistogram::Histogram;

use super::pool::LARGEST;
use crate::columns::words;

/// Largest relative error of a percentile on the basis `histogram` (three significant digits).
pub const HISTOGRAM_ERROR: f64 = 0.001;

words! {
    /// How percentiles were found.
    #[derive(Default)]
    pub enum Basis {
        /// From the values themselves.
        #[default]
        Exact = "exact",
        /// From a histogram, within [`HISTOGRAM_ERROR`].
        Histogram = "histogram",
    }
}

/// Values by rank.
#[derive(Clone, Debug)]
pub(super) enum Values {
    /// Every one of them.
    Exact {
        /// In order when `sorted`.
        list: Vec<u64>,
        /// Whether the list is in order.
        sorted: bool,
    },
    /// Counts in buckets of three significant digits.
    Histogram(Box<Histogram<u64>>),
}

impl Default for Values {
    fn default() -> Self {
        Self::Exact { list: Vec::new(), sorted: true }
    }
}

impl Values {
    /// None yet, and buckets for those to come.
    pub(super) fn histogram() -> Self {
        let histogram =
            Histogram::new(3).expect("three significant digits are within the crate's range");
        Self::Histogram(Box::new(histogram))
    }

    pub(super) fn basis(&self) -> Basis {
        match self {
            Self::Exact { .. } => Basis::Exact,
            Self::Histogram(_) => Basis::Histogram,
        }
    }

    /// Turns to a histogram when `more` values would make a longer list than `limit`.
    pub(super) fn make_room(&mut self, more: u64, limit: usize) {
        let Self::Exact { list, .. } = self else { return };
        if (list.len() as u64).saturating_add(more) > limit as u64 {
            let list = std::mem::take(list);
            *self = Self::histogram();
            for value in list {
                self.put(value, 1);
            }
        }
    }

    pub(super) fn put(&mut self, value: u64, count: u64) {
        match self {
            Self::Exact { list, sorted } => {
                *sorted &= list.last().is_none_or(|last| *last <= value);
                for _ in 0..count {
                    list.push(value);
                }
            }
            Self::Histogram(histogram) => put(histogram, value, count),
        }
    }

    /// Takes in the values of another; room was made for them.
    pub(super) fn absorb(&mut self, other: Self) {
        match (self, other) {
            (Self::Exact { list, sorted }, Self::Exact { list: more, .. }) => {
                *sorted = false;
                list.extend(more);
            }
            (Self::Histogram(mine), Self::Exact { list, .. }) => put_all(mine, &list),
            (Self::Histogram(mine), Self::Histogram(theirs)) => {
                mine.add(theirs.as_ref()).expect("both resize and have one precision");
            }
            (mine, Self::Histogram(mut theirs)) => {
                if let Self::Exact { list, .. } = mine {
                    put_all(&mut theirs, list);
                }
                *mine = Self::Histogram(theirs);
            }
        }
    }

    /// How many are zero.
    pub(super) fn zeros(&self) -> u64 {
        match self {
            Self::Exact { list, .. } => list.iter().filter(|value| **value == 0).count() as u64,
            Self::Histogram(histogram) => histogram.count_at(0),
        }
    }

    /// The value of a rank, from 1.
    pub(super) fn at(&mut self, rank: u64) -> Option<u64> {
        match self {
            Self::Exact { list, sorted } => {
                if !*sorted {
                    list.sort_unstable();
                    *sorted = true;
                }
                list.get(usize::try_from(rank.checked_sub(1)?).ok()?).copied()
            }
            Self::Histogram(histogram) => bucket_at(histogram, rank),
        }
    }
}

fn put(histogram: &mut Histogram<u64>, value: u64, count: u64) {
    histogram.record_n(value.min(LARGEST), count).expect("the histogram resizes up to LARGEST");
}

fn put_all(histogram: &mut Histogram<u64>, list: &[u64]) {
    for value in list {
        put(histogram, *value, 1);
    }
}

/// The middle of the bucket that holds a rank, so that the error is half a bucket's width.
fn bucket_at(histogram: &Histogram<u64>, rank: u64) -> Option<u64> {
    let mut below = 0;
    histogram.iter_recorded().find_map(|step| {
        below += step.count_since_last_iteration();
        (below >= rank).then(|| histogram.median_equivalent(step.value_iterated_to()))
    })
}
