//! Times for rows that have none of their own, and starts for sessions that have none.
//!
//! Both arrive as a Poisson process; nothing in such files says more. Sessions start so often that their
//! rows come to the wanted rate.

use std::collections::HashMap;
use std::sync::Arc;

use super::Rate;
use super::sampling::{Purpose, uniform};
use crate::trace::Request;
use crate::trace::read::TraceClock;
use crate::units::{NS_PER_S, Nanos};

/// Rows with times, in time order. All rows are held where sessions are to be put in order.
pub fn paced<E>(
    rows: impl Iterator<Item = Result<Request, E>> + Send + 'static,
    clock: TraceClock,
    rate: Rate,
    seed: u64,
) -> Result<Box<dyn Iterator<Item = Result<Request, E>> + Send>, E>
where
    E: Send + 'static,
{
    match clock {
        TraceClock::Common => Ok(Box::new(rows)),
        TraceClock::Absent => {
            let mut starts = Starts::new(rate.per_s(), seed);
            Ok(Box::new(rows.map(move |row| row.map(|row| Request { at: starts.next(), ..row }))))
        }
        TraceClock::PerSession => {
            let rows = sessions(rows.collect::<Result<_, _>>()?, rate, seed);
            Ok(Box::new(rows.into_iter().map(Ok)))
        }
    }
}

/// Starts the sessions one after another, in the order of their first rows.
fn sessions(mut rows: Vec<Request>, rate: Rate, seed: u64) -> Vec<Request> {
    // In the order of the source, which is that of the sessions; all of them begin at one time.
    rows.sort_by_key(|row| row.row);
    let root = |name: &Arc<str>| -> Arc<str> {
        // A sub-agent starts when its session says.
        name.split_once('/').map_or_else(|| Arc::clone(name), |(root, _)| root.into())
    };
    let mut of: HashMap<Arc<str>, usize> = HashMap::new();
    let places: Vec<usize> = rows
        .iter()
        .enumerate()
        .map(|(place, row)| {
            let name = row.session.as_ref().map_or_else(|| place.to_string().into(), root);
            let next = of.len();
            *of.entry(name).or_insert(next)
        })
        .collect();
    let mut starts = Starts::new(rate.per_s() * of.len() as f64 / rows.len().max(1) as f64, seed);
    let starts: Vec<Nanos> = (0..of.len()).map(|_| starts.next()).collect();
    for (row, place) in rows.iter_mut().zip(places) {
        row.at += starts[place];
    }
    rows.sort_by_key(|row| row.at);
    rows
}

/// Poisson arrivals from 0 on.
struct Starts {
    mean_gap_ns: f64,
    seed: u64,
    count: u64,
    at: Nanos,
}

impl Starts {
    fn new(rate: f64, seed: u64) -> Self {
        Self { mean_gap_ns: NS_PER_S as f64 / rate, seed, count: 0, at: Nanos::ZERO }
    }

    fn next(&mut self) -> Nanos {
        if self.count > 0 {
            let gap = -libm::log(uniform(self.seed, Purpose::Pace, self.count)) * self.mean_gap_ns;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "casts of floats saturate"
            )]
            let gap = Nanos(gap.round() as u64);
            self.at = Nanos(self.at.0.saturating_add(gap.0));
        }
        self.count += 1;
        self.at
    }
}
