//! A long calibration piece by piece, in order of due times: whether the client's error or its memory
//! grows with the time that it runs.
//!
//! Deliberately absent: a verdict. What grows is seen, and why is for a person to say.

use serde_json::{Value, json};

use crate::lab::{self, Agreement, Load, TruthCheck};
use crate::record::Row;
use crate::sim::truth::TruthRow;
use crate::units::Nanos;

/// A calibration is cut into so many pieces when it is at least so long.
const PIECES: u64 = 10;
const LEAST: Nanos = Nanos::from_secs(60);

/// A piece.
#[derive(Debug)]
pub struct Piece {
    /// Its beginning, from `t0`.
    pub from: Nanos,
    /// Its end.
    pub to: Nanos,
    /// The rows that were due in it, against the log.
    pub check: TruthCheck,
    /// The most memory in RAM that was seen in it.
    rss_bytes: Option<u64>,
}

/// Cuts the steady state of a long load; nothing of a short one. `rows` are those of the steady state,
/// `memory` what was seen when.
pub(super) fn pieces(
    load: &Load,
    mut rows: Vec<Row>,
    log: &[TruthRow],
    memory: &[(Nanos, u64)],
    t0: Nanos,
) -> Vec<Piece> {
    if load.span < LEAST {
        return Vec::new();
    }
    rows.sort_by_key(|row| row.scheduled);
    let mut rest = &rows[..];
    let ends = (1..=PIECES).map(|i| load.ramp() + Nanos(load.span.0 / PIECES * i));
    let mut from = load.ramp();
    ends.map(|to| {
        let (inside, after) = rest.split_at(rest.partition_point(|row| row.scheduled < Some(to)));
        rest = after;
        let seen = memory.iter().filter(|(at, _)| (from..to).contains(at));
        let rss_bytes = seen.map(|(_, bytes)| *bytes).max();
        let check = lab::check(inside, t0, log);
        Piece { from: std::mem::replace(&mut from, to), to, check, rss_bytes }
    })
    .collect()
}

impl Piece {
    /// Arrival, TTFT, gap p99 and memory.
    #[must_use]
    pub fn figures(&self) -> [Option<f64>; 4] {
        let check = &self.check;
        let [arrival, ttft, gap] =
            [&check.arrival, &check.ttft, &check.gap_p99].map(Agreement::bound_ms);
        [arrival, ttft, gap, self.rss_bytes.map(|bytes| bytes as f64 / 1e6)]
    }
}

/// All pieces, for programs.
pub(super) fn json(pieces: &[Piece]) -> Value {
    let object = |piece: &Piece| {
        let [arrival_ms, ttft_ms, gap_p99_ms, rss_max_mb] = piece.figures();
        json!({
            "from_s": piece.from.as_secs_f64(),
            "to_s": piece.to.as_secs_f64(),
            "n": piece.check.ttft.n(),
            "arrival_ms": arrival_ms,
            "ttft_ms": ttft_ms,
            "gap_p99_ms": gap_p99_ms,
            "client_rss_max_mb": rss_max_mb,
        })
    };
    pieces.iter().map(object).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::Setup;

    #[test]
    fn pieces_hold_every_row_once_and_the_memory_of_their_time() {
        let load = Load {
            interval: Nanos::from_millis(100),
            streams: 20,
            gap: Nanos::from_millis(50),
            span: LEAST,
        };
        let outcome = lab::replay(load.plan(), &Setup::chat(load.server())).expect("it ends");
        let mut rows = outcome.rows;
        rows.retain(|row| row.scheduled >= Some(load.ramp()));
        let memory = [(load.ramp(), 5), (load.ramp() + Nanos(1), 7), (load.ramp() + LEAST, 9)];
        let pieces = pieces(&load, rows, &outcome.truth, &memory, Nanos::ZERO);
        let n: Vec<u64> = pieces.iter().map(|piece| piece.check.ttft.n()).collect();
        assert_eq!(n, [60; 10]);
        assert_eq!(pieces[0].rss_bytes, Some(7));
        assert!(pieces[1..].iter().all(|piece| piece.rss_bytes.is_none()));
        assert_eq!(json(&pieces)[9]["to_s"], 61.0);
        assert!(
            super::pieces(&Load { span: Nanos(1), ..load }, Vec::new(), &[], &[], Nanos::ZERO)
                .is_empty()
        );
    }
}
