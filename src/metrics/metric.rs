//! The metrics by name and unit, and what a row has to say about each.
//!
//! This file decides what is measured, what is cut off and what does not apply. It keeps nothing.

use super::distribution::CensoredRank;
use crate::columns::{Unit, words};
use crate::record::{Outcome, Row};
use crate::units::NS_PER_S;

/// Millionths: rates are kept as integers of this many parts.
const MILLION: u64 = 1_000_000;

impl Unit {
    /// How many kept integers make one of the unit: times are kept in nanoseconds, rates in millionths.
    pub(super) fn parts(self) -> f64 {
        match self {
            Self::Ms | Self::TokS => MILLION as f64,
            _ => 1.0,
        }
    }
}

words! {
    /// A metric with one value per request, in the order of `summary.csv`; a metric's place in
    /// [`ALL`](crate::columns::Word::ALL) is its number.
    #[expect(missing_docs, reason = "the names are the columns and words that the README defines")]
    pub enum Metric {
        Lag = "lag_ms",
        Connect = "connect_ms",
        Headers = "headers_ms",
        FirstEvent = "first_event_ms",
        Ttft = "ttft_ms",
        TtftSend = "ttft_send_ms",
        Ttfo = "ttfo_ms",
        Tpot = "tpot_ms",
        E2e = "e2e_ms",
        E2eSend = "e2e_send_ms",
        Close = "close_ms",
        InputTok = "input_tok",
        OutputTok = "output_tok",
        ReasoningTok = "reasoning_tok",
        Chunks = "chunks",
        DecodeTokS = "decode_tok_s",
        E2eTokS = "e2e_tok_s",
        RxDelay = "rx_delay_ms",
    }
}

/// What one row says about one metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// A measured value.
    Value(u64),
    /// We cut the request off before the value was known.
    Cut,
    /// The metric does not apply.
    Absent,
}

impl Metric {
    /// What its values are counted in.
    #[must_use]
    pub fn unit(self) -> Unit {
        match self {
            Self::InputTok | Self::OutputTok | Self::ReasoningTok => Unit::Tok,
            Self::Chunks => Unit::Count,
            Self::DecodeTokS | Self::E2eTokS => Unit::TokS,
            _ => Unit::Ms,
        }
    }

    /// A request cut off would have taken longer, so its per-user rate would have been lower.
    pub(super) fn censored_rank(self) -> CensoredRank {
        match self {
            Self::DecodeTokS | Self::E2eTokS => CensoredRank::Below,
            _ => CensoredRank::Above,
        }
    }

    /// What a row says: `ok` rows are measured, rows cut by us are measured as far as they came and
    /// cut from there on, rows failed by the server or never due say nothing. Lag is our own, so every
    /// row that was sent has one.
    pub(super) fn read(self, row: &Row) -> Reading {
        let measured = self.value(row).map_or(Reading::Absent, Reading::Value);
        match row.outcome {
            Outcome::Ok => measured,
            outcome if outcome.is_censored() => self.read_cut(row, measured),
            Outcome::Skipped => Reading::Absent,
            _ if self.is_ours() => measured,
            _ => Reading::Absent,
        }
    }

    /// Our own doing, whatever became of the request.
    fn is_ours(self) -> bool {
        matches!(self, Self::Lag | Self::RxDelay)
    }

    fn read_cut(self, row: &Row, so_far: Reading) -> Reading {
        match self {
            // A token count of half an answer is neither a value nor a time.
            Self::InputTok | Self::OutputTok | Self::ReasoningTok | Self::Chunks => Reading::Absent,
            // A row without a token has none, and a kernel may not tell.
            Self::RxDelay => so_far,
            Self::Connect if row.conn_reused == Some(true) => Reading::Absent,
            Self::Tpot | Self::DecodeTokS
                if row.output_tok_asked.is_some_and(|asked| asked < 2) =>
            {
                Reading::Absent
            }
            // Known only at the end, which this row did not reach, whatever it has by now.
            Self::Tpot
            | Self::E2e
            | Self::E2eSend
            | Self::Close
            | Self::DecodeTokS
            | Self::E2eTokS => Reading::Cut,
            _ if so_far == Reading::Absent => Reading::Cut,
            _ => so_far,
        }
    }

    fn value(self, row: &Row) -> Option<u64> {
        let ns = match self {
            Self::Lag => row.lag,
            Self::Connect => row.connect,
            Self::Headers => row.headers,
            Self::FirstEvent => row.first_event,
            Self::Ttft => row.ttft,
            Self::TtftSend => row.ttft_send,
            Self::Ttfo => row.ttfo,
            Self::Tpot => row.tpot,
            Self::E2e => row.e2e,
            Self::E2eSend => row.e2e_send,
            Self::Close => row.close,
            Self::RxDelay => row.rx_delay,
            Self::InputTok => return row.input_tok,
            Self::OutputTok => return row.output_tok,
            Self::ReasoningTok => return row.reasoning_tok,
            Self::Chunks => return row.chunks,
            Self::DecodeTokS => return micro_rate(1, row.tpot?.0),
            Self::E2eTokS => return micro_rate(row.output_tok?, row.e2e?.0),
        };
        ns.map(|span| span.0)
    }
}

/// `n` per second over `ns`, in millionths; `None` over no time at all.
fn micro_rate(n: u64, ns: u64) -> Option<u64> {
    let scaled = u128::from(n) * u128::from(MILLION) * u128::from(NS_PER_S);
    Some(u64::try_from(scaled.checked_div(u128::from(ns))?).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Word;
    use crate::record::{Kind, StreamRecord};
    use crate::units::Nanos;

    fn row(outcome: Outcome, tokens_at_ms: &[u64]) -> Row {
        let mut record = StreamRecord {
            sent: (outcome != Outcome::Unsent).then_some(Nanos(7)),
            http_status: Some(200),
            output_tok_asked: Some(9),
            outcome,
            ..StreamRecord::default()
        };
        for ms in tokens_at_ms {
            record.tokens.push(Nanos::from_millis(*ms), Kind::Content, None);
        }
        Row::of(&record, Nanos::ZERO)
    }

    #[test]
    fn a_time_already_seen_stands_and_the_rest_is_cut() {
        let cut = row(Outcome::Incomplete, &[20, 40, 60]);
        let ms = |n| Reading::Value(Nanos::from_millis(n).0);
        assert_eq!(Metric::Lag.read(&cut), Reading::Value(7));
        assert_eq!(Metric::Ttft.read(&cut), ms(20));
        assert_eq!(Metric::Ttfo.read(&cut), Reading::Cut);
        for metric in [Metric::Tpot, Metric::E2e, Metric::E2eSend, Metric::Close, Metric::E2eTokS] {
            assert_eq!(metric.read(&cut), Reading::Cut, "{}", metric.word());
        }
        assert_eq!(Metric::OutputTok.read(&cut), Reading::Absent);
    }

    #[test]
    fn unsent_cuts_every_time() {
        let unsent = row(Outcome::Unsent, &[]);
        for &metric in Metric::ALL {
            let wanted = match metric.unit() {
                Unit::Tok | Unit::Count => Reading::Absent,
                _ if metric == Metric::RxDelay => Reading::Absent,
                _ => Reading::Cut,
            };
            assert_eq!(metric.read(&unsent), wanted, "{}", metric.word());
        }
    }

    #[test]
    fn rows_failed_by_the_server_say_nothing_but_our_lag() {
        for outcome in [Outcome::Http(503), Outcome::Truncated, Outcome::Short, Outcome::Connect] {
            let failed = row(outcome, &[20, 40]);
            for &metric in Metric::ALL {
                let wanted =
                    if metric == Metric::Lag { Reading::Value(7) } else { Reading::Absent };
                assert_eq!(metric.read(&failed), wanted, "{outcome} {}", metric.word());
            }
        }
        assert_eq!(Metric::Lag.read(&row(Outcome::Skipped, &[])), Reading::Absent);
    }

    #[test]
    fn rates_per_user() {
        let ok = row(Outcome::Ok, &[20, 40, 60]);
        assert_eq!(Metric::DecodeTokS.read(&ok), Reading::Value(50_000_000));
        assert_eq!(Metric::E2eTokS.read(&ok), Reading::Value(50_000_000));
        // A burst in one read has no rate.
        assert_eq!(Metric::DecodeTokS.read(&row(Outcome::Ok, &[20, 20])), Reading::Absent);
        assert_eq!(Metric::E2eTokS.read(&row(Outcome::Ok, &[0, 0])), Reading::Absent);
    }
}
