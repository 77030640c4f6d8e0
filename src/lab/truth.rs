//! The client's figures held against the simulated server's own log: how wrong are ours?

use std::collections::HashMap;

use crate::record::{Outcome, Row};
use crate::sim::truth::TruthRow;
use crate::units::Nanos;

/// How far the client's figures are from the server's log.
#[derive(Clone, Debug, Default)]
pub struct TruthCheck {
    /// Rows found in the log by their request id.
    pub matched: u64,
    /// Rows with a response that the log does not have.
    pub missing: u64,
    /// Rows whose token count is not the log's.
    pub miscounted: u64,
    /// Arrival at the server − due: absolute, no offset taken out.
    pub arrival: Agreement,
    /// Reported first token − the log's, both from due.
    pub ttft: Agreement,
    /// Reported median chunk gap − the log's, by request.
    pub gap_p50: Agreement,
    /// Reported p99 of the chunk gaps − the log's, by request.
    pub gap_p99: Agreement,
}

/// Differences over all requests, by size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    sizes: Vec<u64>,
}

impl Agreement {
    fn add(&mut self, reported: Nanos, truth: Nanos) {
        self.sizes.push(reported.0.abs_diff(truth.0));
    }

    /// Nearest-rank percentile of the absolute difference, `percent` of 100.
    #[must_use]
    pub fn percentile(&self, percent: usize) -> Option<Nanos> {
        let rank = (self.sizes.len() * percent).div_ceil(100);
        Some(Nanos(*self.sizes.get(rank.checked_sub(1)?)?))
    }
}

/// Compares the rows of a run that began at `t0` with the server's log.
#[must_use]
pub fn check(rows: &[Row], t0: Nanos, truth: &[TruthRow]) -> TruthCheck {
    let log: HashMap<&str, &TruthRow> =
        truth.iter().map(|row| (row.request_id.as_str(), row)).collect();
    let mut check = TruthCheck::default();
    for row in rows {
        let Some(id) = &row.request_id else {
            continue;
        };
        match log.get(id.as_str()) {
            Some(logged) => check.add(row, t0, logged),
            None => check.missing += 1,
        }
    }
    for agreement in [&mut check.arrival, &mut check.ttft, &mut check.gap_p50, &mut check.gap_p99] {
        agreement.sizes.sort_unstable();
    }
    check
}

impl TruthCheck {
    fn add(&mut self, row: &Row, t0: Nanos, logged: &TruthRow) {
        self.matched += 1;
        let Some(due) = row.scheduled.map(|due| t0 + due) else {
            return;
        };
        self.arrival.add(logged.arrival, due);
        if row.outcome != Outcome::Ok {
            return;
        }
        if row.output_tok != Some(logged.output_tok) {
            self.miscounted += 1;
        }
        if let (Some(reported), Some(first)) = (row.ttft, logged.first) {
            self.ttft.add(due + reported, first);
        }
        for (reported, logged, agreement) in [
            (row.gap_p50, logged.gap_p50, &mut self.gap_p50),
            (row.gap_p99, logged.gap_p99, &mut self.gap_p99),
        ] {
            if let (Some(reported), Some(logged)) = (reported, logged) {
                agreement.add(reported, logged);
            }
        }
    }
}
