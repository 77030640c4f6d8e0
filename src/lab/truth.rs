//! The client's figures held against the simulated server's own log: how wrong are ours?

use std::collections::HashMap;

use crate::metrics::Percentile;
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
    /// Reported last token − the log's, both from due.
    pub e2e: Agreement,
    /// Reported median chunk gap − the log's, by request.
    pub gap_p50: Agreement,
    /// Reported p99 of the chunk gaps − the log's, by request.
    pub gap_p99: Agreement,
    /// Reported longest chunk gap − the log's, by request.
    pub gap_max: Agreement,
    /// Reported decode tok/s − the log's, by request, in millionths of the log's (no times).
    pub decode_ppm: Agreement,
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

    /// How many differences there are.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.sizes.len() as u64
    }

    /// Nearest-rank percentile of the absolute difference, `percent` of 100.
    #[must_use]
    pub fn percentile(&self, percent: usize) -> Option<Nanos> {
        let rank = (self.sizes.len() * percent).div_ceil(100);
        Some(Nanos(*self.sizes.get(rank.checked_sub(1)?)?))
    }

    /// The 99th percentile, where there are differences enough to bound it.
    #[must_use]
    pub fn bounded_p99(&self) -> Option<Nanos> {
        self.percentile(99).filter(|_| self.n() >= Percentile::P99.least_n())
    }

    /// A bound on nearly all differences: the p99, or the largest where they are too few for that.
    #[must_use]
    pub fn bound(&self) -> Option<Nanos> {
        self.bounded_p99().or_else(|| self.percentile(100))
    }

    /// The same in milliseconds.
    #[must_use]
    pub fn bound_ms(&self) -> Option<f64> {
        self.bound().map(Nanos::as_millis_f64)
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
    for agreement in check.agreements() {
        agreement.sizes.sort_unstable();
    }
    check
}

impl TruthCheck {
    fn agreements(&mut self) -> [&mut Agreement; 7] {
        [
            &mut self.arrival,
            &mut self.ttft,
            &mut self.e2e,
            &mut self.gap_p50,
            &mut self.gap_p99,
            &mut self.gap_max,
            &mut self.decode_ppm,
        ]
    }

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
        for (reported, logged, agreement) in [
            (row.ttft.map(|ttft| due + ttft), logged.first, &mut self.ttft),
            (row.e2e.map(|e2e| due + e2e), logged.last, &mut self.e2e),
            (row.gap_p50, logged.gap_p50, &mut self.gap_p50),
            (row.gap_p99, logged.gap_p99, &mut self.gap_p99),
            (row.gap_max, logged.gap_max, &mut self.gap_max),
        ] {
            if let (Some(reported), Some(logged)) = (reported, logged) {
                agreement.add(reported, logged);
            }
        }
        if let (Some(reported), Some(logged)) = (row.tpot, tpot(logged)) {
            self.decode_ppm.sizes.push(rate_error_ppm(reported, logged));
        }
    }
}

/// Time per token after the first, which the server sends alone.
fn tpot(logged: &TruthRow) -> Option<Nanos> {
    let span = logged.last?.since(logged.first?);
    Some(Nanos(span.0.checked_div(logged.output_tok.checked_sub(1)?)?))
}

/// Of a reported time of zero: its rate has no bound.
pub const UNBOUNDED_PPM: u64 = u64::MAX;

/// `|1/reported − 1/logged| ÷ (1/logged)` of two times per token, in millionths.
fn rate_error_ppm(reported: Nanos, logged: Nanos) -> u64 {
    let off = u128::from(reported.0.abs_diff(logged.0)) * 1_000_000;
    off.checked_div(u128::from(reported.0))
        .map_or(UNBOUNDED_PPM, |ppm| u64::try_from(ppm).unwrap_or(UNBOUNDED_PPM))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::StreamRecord;
    use crate::sim::truth::Ended;

    fn logged(first: u64, last: u64, output_tok: u64) -> TruthRow {
        TruthRow {
            request_id: "a".to_owned(),
            arrival: Nanos(1_010),
            first: Some(Nanos(first)),
            last: Some(Nanos(last)),
            output_tok,
            prompt_tok: None,
            gap_p50: None,
            gap_p99: None,
            gap_max: Some(Nanos(70)),
            queued: None,
            ended: Ended::Done,
            fault: String::new(),
        }
    }

    #[test]
    fn every_difference_is_from_the_same_instants() {
        let record = StreamRecord { due: Nanos(1_000), outcome: Outcome::Ok, ..Default::default() };
        let row = Row {
            request_id: Some("a".to_owned()),
            ttft: Some(Nanos(205)),
            e2e: Some(Nanos(610)),
            tpot: Some(Nanos(50)),
            gap_max: Some(Nanos(77)),
            output_tok: Some(9),
            ..Row::of(&record, Nanos::ZERO)
        };
        let lost = Row { request_id: Some("b".to_owned()), ..row.clone() };
        // t0 is 0; 9 tokens between 1,200 and 1,600: 50 each after the first.
        let mut check = check(&[row, lost], Nanos::ZERO, &[logged(1_200, 1_600, 9)]);
        assert_eq!((check.matched, check.missing, check.miscounted), (1, 1, 0));
        let sizes = check.agreements().map(|agreement| agreement.sizes.clone());
        assert_eq!(sizes, [vec![10], vec![5], vec![10], vec![], vec![], vec![7], vec![0]]);
    }

    #[test]
    fn a_rate_is_wrong_by_a_share_of_the_true_one() {
        // 25 ms a token reported for 20: 40 tok/s for 50.
        assert_eq!(rate_error_ppm(Nanos(25), Nanos(20)), 200_000);
        assert_eq!(rate_error_ppm(Nanos(0), Nanos(20)), UNBOUNDED_PPM);
        assert_eq!(tpot(&logged(5, 5, 1)), None);
    }

    #[test]
    fn a_99th_percentile_needs_values_to_bound_it() {
        let of = |n: u64| Agreement { sizes: (1..=n).collect() };
        assert_eq!(of(367).bounded_p99(), None);
        assert_eq!(of(400).bounded_p99(), Some(Nanos(396)));
    }
}
