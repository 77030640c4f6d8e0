//! Another rate for each client by itself, stretch by stretch of trace time.
//!
//! Within a stretch, a client's arrivals are compressed by the factor and run through again until the
//! stretch is full (or stretched, and cut where it ends). So each client keeps its share, its bursts and
//! the CV of its gaps, and the trace its curve from one stretch to the next; only what is longer than a
//! stretch divided by the factor repeats. A stretch's rows are held, no more.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::sampling::copy_of;
use crate::trace::Request;
use crate::units::{NS_PER_S, Nanos};

/// Length of a stretch: rates of real clients hold for about ten minutes.
const STRETCH: Nanos = Nanos(600 * NS_PER_S);
/// Rows that a stretch may come to.
const LIMIT_ROWS: usize = 4_000_000;

/// Why rows cannot be scaled by client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A row that names none.
    #[error(
        "row {row} names no class, and --scale per-client needs one on every row to tell clients apart; \
         use compress, thin or clone"
    )]
    NoClient {
        /// The row's number.
        row: u64,
    },
    /// Too many rows at a time.
    #[error("ten minutes of the trace come to more than {limit} rows; use compress, thin or clone")]
    TooMany {
        /// The limit.
        limit: usize,
    },
}

/// Rows of another rate, client by client. The class is the client. `first_copy` as for
/// [`super::cloned`].
pub fn per_client<I, E>(rows: I, factor: f64, first_copy: u64) -> PerClient<I>
where
    I: Iterator<Item = Result<Request, E>>,
    E: From<ClientError>,
{
    PerClient {
        rows,
        factor,
        next_copy: first_copy,
        stretch: 0,
        held: BTreeMap::new(),
        ready: VecDeque::new(),
        ahead: None,
        is_over: false,
    }
}

/// See [`per_client`].
#[derive(Debug)]
pub struct PerClient<I> {
    rows: I,
    factor: f64,
    next_copy: u64,
    stretch: u64,
    /// Rows of the stretch, by client.
    held: BTreeMap<Arc<str>, Vec<Request>>,
    ready: VecDeque<Request>,
    /// The first row of the next stretch.
    ahead: Option<Request>,
    is_over: bool,
}

impl<I, E> PerClient<I>
where
    I: Iterator<Item = Result<Request, E>>,
    E: From<ClientError>,
{
    /// Reads a stretch and makes its rows.
    fn fill(&mut self) -> Result<(), E> {
        let mut count = 0_u64;
        loop {
            let next = self.ahead.take().map(Ok).or_else(|| self.rows.next()).transpose()?;
            let Some(row) = next else {
                self.is_over = true;
                break;
            };
            let stretch = row.at.0 / STRETCH.0;
            if stretch > self.stretch && count > 0 {
                self.ahead = Some(row);
                break;
            }
            self.stretch = stretch;
            count += 1;
            let client = row.class.clone().ok_or(ClientError::NoClient { row: row.row })?;
            self.held.entry(client).or_default().push(row);
            if count as f64 * self.factor.max(1.0) > LIMIT_ROWS as f64 {
                return Err(ClientError::TooMany { limit: LIMIT_ROWS }.into());
            }
        }
        let start = Nanos(self.stretch * STRETCH.0);
        let mut made = Vec::new();
        for rows in std::mem::take(&mut self.held).into_values() {
            self.run_through(&rows, start, &mut made);
        }
        // Rows of equal time stay in the order of the file.
        made.sort_by_key(|row| (row.at, row.source_row.unwrap_or(row.row), row.row));
        self.ready = made.into();
        Ok(())
    }

    fn run_through(&mut self, rows: &[Request], start: Nanos, made: &mut Vec<Request>) {
        let round_ns = STRETCH.0 as f64 / self.factor;
        for round in 0_u64.. {
            for row in rows {
                let since_ns = row.at.since(start).0 as f64 / self.factor;
                let at_ns = (round as f64).mul_add(round_ns, since_ns).round();
                if at_ns >= STRETCH.0 as f64 {
                    return;
                }
                let mut request =
                    if round == 0 { row.clone() } else { copy_of(row, round, &mut self.next_copy) };
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "from 0 to the length of a stretch"
                )]
                let since = Nanos(at_ns as u64);
                request.at = start + since;
                made.push(request);
            }
        }
    }
}

impl<I, E> Iterator for PerClient<I>
where
    I: Iterator<Item = Result<Request, E>>,
    E: From<ClientError>,
{
    type Item = Result<Request, E>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.ready.pop_front() {
                return Some(Ok(row));
            }
            if self.is_over {
                return None;
            }
            if let Err(error) = self.fill() {
                self.is_over = true;
                return Some(Err(error));
            }
        }
    }
}
