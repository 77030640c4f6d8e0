//! One line of `requests.csv` as typed values: the definitions of the per-request metrics.
//!
//! A [`Row`] is computed from a [`StreamRecord`] once, and read back from the file by later programs;
//! both ways give the same values, since every time is integer nanoseconds.

use std::sync::Arc;

use super::{Outcome, ReaderPace, StreamRecord};
use crate::columns::{csv_row, words};
use crate::units::Nanos;

words! {
    /// Which part of the run a row belongs to, by its due time.
    pub enum Phase: "phase" {
        /// Due before the measured window.
        Warmup = "warmup",
        /// Due inside the measured window.
        Measured = "measured",
    }
}

words! {
    /// Where `output_tok` comes from.
    pub enum TokenSource: "token source" {
        /// The server's final usage.
        Usage = "usage",
        /// The server's last running usage; no final one came.
        Running = "running",
        /// A local tokenizer, on the whole text.
        Tokenizer = "tokenizer",
        /// The number of token events: an estimate, since a chunk may carry several tokens.
        Events = "events",
    }
}

csv_row! {
    /// One row of `requests.csv`. `None` is an empty cell: a value that does not apply.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Row {
        /// 0-based row of the source.
        pub row: u64 => "row",
        /// Session, as the trace names it. Empty: the trace has none.
        pub session: Option<Arc<str>> => "session",
        /// Turn in its session, from 1. Empty: the trace has no sessions.
        pub turn: Option<u32> => "turn",
        /// Traffic class. Empty: the trace has none.
        pub class: Option<Arc<str>> => "class",
        /// Part of the run by due time: `warmup` or `measured`.
        pub phase: Phase => "phase",
        /// 0-based index of the `--url` that it went to.
        pub target: u32 => "target",
        /// Shard of the client. Empty: always, for now.
        pub shard: Option<u32> => "shard",
        /// When it was due, from the start of the run. Empty: it never fell due (`skipped`).
        pub scheduled: Option<Nanos> => "scheduled_s" in S,
        /// Sent − due: the client's fault, never the server's. Empty: it was never sent.
        pub lag: Option<Nanos> => "lag_ms" in Ms,
        /// DNS, TCP and TLS of a new connection. Empty: an old one was used, or none was had.
        pub connect: Option<Nanos> => "connect_ms" in Ms,
        /// Whether the connection was there before the request. Empty: none was had.
        pub conn_reused: Option<bool> => "conn_reused",
        /// Response head complete − due. Empty: no response came.
        pub headers: Option<Nanos> => "headers_ms" in Ms,
        /// First SSE event of any kind − due. Empty: none came.
        pub first_event: Option<Nanos> => "first_event_ms" in Ms,
        /// First event with generated text of any kind − **due**. Empty: none came.
        pub ttft: Option<Nanos> => "ttft_ms" in Ms,
        /// The same − sent: what most other tools call TTFT. Empty: none came.
        pub ttft_send: Option<Nanos> => "ttft_send_ms" in Ms,
        /// First event of the *answer* (content, refusal, tool call; not reasoning) − due. Empty: none came.
        pub ttfo: Option<Nanos> => "ttfo_ms" in Ms,
        /// (Last − first token event) ÷ (N − k): N output tokens, k of them in the first event (1 where unknown). Empty: fewer than two events, or N ≤ k.
        pub tpot: Option<Nanos> => "tpot_ms" in Ms,
        /// Median time between token events, nearest rank; a chunk may carry several tokens. Empty: fewer than two events.
        pub gap_p50: Option<Nanos> => "gap_p50_ms" in Ms,
        /// The same, 99th percentile. Empty: fewer than two events.
        pub gap_p99: Option<Nanos> => "gap_p99_ms" in Ms,
        /// The longest. Empty: fewer than two events.
        pub gap_max: Option<Nanos> => "gap_max_ms" in Ms,
        /// How long a reader at `--reader-pace` waits after the first token. Empty: no token came, or more than are kept apart.
        pub stall: Option<Nanos> => "stall_ms" in Ms,
        /// How often that reader waits. Empty: as `stall_ms`.
        pub stalls: Option<u64> => "stalls",
        /// Last token event − due. Empty: none came.
        pub e2e: Option<Nanos> => "e2e_ms" in Ms,
        /// The same − sent. Empty: none came.
        pub e2e_send: Option<Nanos> => "e2e_send_ms" in Ms,
        /// End of the stream, whatever ended it − due. Empty: it was never sent.
        pub close: Option<Nanos> => "close_ms" in Ms,
        /// Prompt tokens asked for. Empty: the prompt came from a file and nobody counted it.
        pub input_tok_asked: Option<u32> => "input_tok_asked" in Tok,
        /// Prompt tokens as the server counted them. Empty: it did not say.
        pub input_tok: Option<u64> => "input_tok" in Tok,
        /// Of these, from the server's prefix cache. Empty: it did not say.
        pub cached_tok: Option<u64> => "cached_tok" in Tok,
        /// Completion tokens asked for. Empty: the answer ends by itself.
        pub output_tok_asked: Option<u32> => "output_tok_asked" in Tok,
        /// Completion tokens got, never taken from what was asked. Empty: there was no answer to count.
        pub output_tok: Option<u64> => "output_tok" in Tok,
        /// Of these, reasoning. Empty: none came and the server did not say.
        pub reasoning_tok: Option<u64> => "reasoning_tok" in Tok,
        /// Where `output_tok` comes from: `usage` (the server's last count), `running` (its last count in mid-stream), `tokenizer` (`--tokenizer FILE`, on the whole text after its end) or `events` (token events, an estimate). Empty: as `output_tok`.
        pub token_source: Option<TokenSource> => "token_source",
        /// Token events. Empty: no answer with status 200 came.
        pub chunks: Option<u64> => "chunks",
        /// Why the answer ended, in the server's word. Empty: it did not say.
        pub finish_reason: Option<String> => "finish_reason",
        /// How the request ended, in one word.
        pub outcome: Outcome => "outcome",
        /// Status code. Empty: no response came.
        pub http_status: Option<u16> => "http_status",
        /// What went wrong, in the server's words or ours. Empty: nothing did.
        pub error: Option<String> => "error",
        /// Whether it kept its SLOs. Empty: always, for now.
        pub slo_ok: Option<bool> => "slo_ok",
        /// The longest that one of its token events lay in the kernel before it was read; in no latency, since arrivals are the kernel's. Empty: the kernel does not tell (Linux and TCP only), or `--no-rx-time`.
        pub rx_delay: Option<Nanos> => "rx_delay_ms" in Ms,
        /// The id that the server gave the response. Empty: it gave none.
        pub request_id: Option<String> => "request_id",
        /// Times that it was sent; the column is there with `--retries`. Empty: it was never sent.
        pub attempts: Option<u32> => "attempts",
    }
}

impl Row {
    /// Computes the row of a finished record; due before `warmup` is phase warm-up.
    #[must_use]
    pub fn of(record: &StreamRecord, warmup: Nanos) -> Self {
        Self::paced(record, warmup, ReaderPace::default())
    }

    /// The same, with the waits of a reader at this pace.
    #[must_use]
    pub fn paced(record: &StreamRecord, warmup: Nanos, pace: ReaderPace) -> Self {
        let from_due = |at: Option<Nanos>| at.map(|at| at.since(record.due));
        let from_sent = |at: Option<Nanos>| Some(at?.since(record.sent?));
        let tokens = &record.tokens;
        let counted = Counted::of(record);
        let [gap_p50, gap_p99, gap_max] = gap_ranks(record);
        let stalls = pace.stalls(tokens, counted.output);
        Self {
            row: record.row,
            session: record.session.clone(),
            turn: record.turn,
            class: record.class.clone(),
            phase: if record.due < warmup { Phase::Warmup } else { Phase::Measured },
            target: record.target,
            shard: None,
            scheduled: (record.outcome != Outcome::Skipped).then_some(record.due),
            lag: from_due(record.sent),
            connect: record.connect,
            conn_reused: record.conn_reused,
            headers: from_due(record.headers),
            first_event: from_due(record.first_event),
            ttft: from_due(tokens.first()),
            ttft_send: from_sent(tokens.first()),
            ttfo: from_due(record.first_answer),
            tpot: tpot(record, counted.output),
            gap_p50,
            gap_p99,
            gap_max,
            stall: stalls.map(|stalls| stalls.time),
            stalls: stalls.map(|stalls| stalls.count),
            e2e: from_due(tokens.last()),
            e2e_send: from_sent(tokens.last()),
            close: from_due(record.close),
            input_tok_asked: record.input_tok_asked,
            input_tok: record.usage.and_then(|usage| usage.input_tok),
            cached_tok: record.usage.and_then(|usage| usage.cached_tok),
            output_tok_asked: record.output_tok_asked,
            output_tok: counted.output,
            reasoning_tok: counted.reasoning,
            token_source: counted.source,
            chunks: (record.http_status == Some(200)).then(|| tokens.count()),
            finish_reason: record.finish_reason.clone(),
            outcome: record.outcome,
            http_status: record.http_status,
            error: record.error.clone(),
            slo_ok: None,
            rx_delay: record.rx_delay,
            request_id: record.request_id.clone(),
            attempts: record.attempts,
        }
    }

    /// Whether each token event bore one token: the count is the number of events, and no estimate from it.
    #[must_use]
    pub fn has_token_per_event(&self, record: &StreamRecord) -> bool {
        let counted = self.token_source.is_some_and(|source| source != TokenSource::Events);
        counted && self.output_tok == Some(record.tokens.count())
    }
}

/// Token counts of a record and where they come from.
struct Counted {
    output: Option<u64>,
    reasoning: Option<u64>,
    source: Option<TokenSource>,
}

impl Counted {
    fn of(record: &StreamRecord) -> Self {
        let events = record.tokens.count();
        let usage = record.usage.unwrap_or_default();
        let (output, source) = match (usage.output_tok, record.tokens.running_total()) {
            (Some(n), _) if usage.running => (Some(n), Some(TokenSource::Running)),
            (Some(n), _) => (Some(n), Some(TokenSource::Usage)),
            (None, Some(n)) => (Some(n), Some(TokenSource::Running)),
            (None, None) if record.text_tok.is_some() => {
                (record.text_tok.map(|text| text.output_tok), Some(TokenSource::Tokenizer))
            }
            (None, None) if record.http_status == Some(200) => {
                (Some(events), Some(TokenSource::Events))
            }
            (None, None) => (None, None),
        };
        let reasoning_events = record.tokens.reasoning_count();
        let reasoning = match (usage.reasoning_tok, output) {
            (Some(n), _) if n > 0 => Some(n),
            _ if source == Some(TokenSource::Tokenizer) && reasoning_events > 0 => {
                record.text_tok.map(|text| text.reasoning_tok)
            }
            // Servers report 0 for answers that are all reasoning, so our own share decides.
            (_, Some(n)) if reasoning_events > 0 => Some(share(reasoning_events, events, n)),
            (reported, _) => reported,
        };
        Self { output, reasoning, source }
    }
}

/// `n × part ÷ whole`, rounded to nearest.
fn share(part: u64, whole: u64, n: u64) -> u64 {
    let scaled =
        (u128::from(n) * u128::from(part) * 2 + u128::from(whole)) / (2 * u128::from(whole));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// `(last − first token event) ÷ (N − k₁)`, k₁ the tokens of the first token event (1 where unknown).
fn tpot(record: &StreamRecord, output: Option<u64>) -> Option<Nanos> {
    let tokens = &record.tokens;
    let first_step = tokens.running_steps().and_then(|mut steps| steps.next()).unwrap_or(1);
    let rest = output?.checked_sub(u64::from(first_step)).filter(|rest| *rest > 0)?;
    if tokens.count() < 2 {
        return None;
    }
    let span = tokens.last()?.since(tokens.first()?);
    Some(Nanos((span.0 + rest / 2) / rest))
}

/// Nearest-rank p50, p99 and the maximum of the chunk gaps.
fn gap_ranks(record: &StreamRecord) -> [Option<Nanos>; 3] {
    let mut gaps: Vec<u64> = record.tokens.gaps().map(|gap| gap.0).collect();
    if gaps.is_empty() {
        return [None; 3];
    }
    let mut rank = |percent: usize| {
        let index = (gaps.len() * percent).div_ceil(100) - 1;
        Some(Nanos(*gaps.select_nth_unstable(index).1))
    };
    [rank(50), rank(99), rank(100)]
}

#[cfg(test)]
mod tests {
    use super::super::{Kind, TextTok, Usage};
    use super::*;

    /// A stream due at 1 s, sent at 1.001 s, with a token event at each of `at_ms` after due.
    fn record(at_ms: &[u64], usage: Option<Usage>) -> StreamRecord {
        let due = Nanos::from_secs(1);
        let mut record = StreamRecord {
            due,
            sent: Some(due + Nanos::from_millis(1)),
            http_status: Some(200),
            outcome: Outcome::Ok,
            usage,
            ..StreamRecord::default()
        };
        for ms in at_ms {
            record.tokens.push(due + Nanos::from_millis(*ms), Kind::Content, None);
        }
        record
    }

    fn usage(output: u64) -> Usage {
        Usage { output_tok: Some(output), ..Usage::default() }
    }

    #[test]
    fn latency_counts_from_due_and_from_sent() {
        let row = Row::of(&record(&[200, 250, 300], Some(usage(3))), Nanos::ZERO);
        assert_eq!(row.ttft, Some(Nanos::from_millis(200)));
        assert_eq!(row.ttft_send, Some(Nanos::from_millis(199)));
        assert_eq!(row.lag, Some(Nanos::from_millis(1)));
        assert_eq!(row.e2e, Some(Nanos::from_millis(300)));
        assert_eq!(row.tpot, Some(Nanos::from_millis(50)));
        assert_eq!(row.token_source, Some(TokenSource::Usage));
    }

    #[test]
    fn chunks_are_not_tokens() {
        // 40 tokens in 10 chunks, 40 ms apart: TPOT is over tokens, the gap over chunks.
        let at: Vec<u64> = (0..10).map(|i| 100 + 40 * i).collect();
        let row = Row::of(&record(&at, Some(usage(40))), Nanos::ZERO);
        assert_eq!(row.output_tok, Some(40));
        assert_eq!(row.chunks, Some(10));
        assert_eq!(row.gap_p50, Some(Nanos::from_millis(40)));
        assert_eq!(row.tpot, Some(Nanos((360_000_000 + 19) / 39)));
    }

    #[test]
    fn a_tokenizer_counts_where_the_server_does_not() {
        let counted = |usage, running: Option<u64>| {
            let mut record = record(&[], usage);
            let first = running.map(|_| 2);
            record.tokens.push(Nanos::from_secs(2), Kind::Content, first);
            record.tokens.push(Nanos::from_secs(3), Kind::Reasoning, running);
            record.text_tok = Some(TextTok { output_tok: 40, reasoning_tok: 30 });
            let row = Row::of(&record, Nanos::ZERO);
            (row.output_tok, row.reasoning_tok, row.token_source)
        };
        assert_eq!(counted(None, None), (Some(40), Some(30), Some(TokenSource::Tokenizer)));
        assert_eq!(counted(None, Some(6)), (Some(6), Some(3), Some(TokenSource::Running)));
        assert_eq!(counted(Some(usage(8)), None), (Some(8), Some(4), Some(TokenSource::Usage)));
    }

    #[test]
    fn degenerate_lengths_leave_cells_empty() {
        let none = Row::of(&record(&[], None), Nanos::ZERO);
        assert_eq!((none.ttft, none.tpot, none.gap_max), (None, None, None));
        assert_eq!(none.output_tok, Some(0));
        let one = Row::of(&record(&[70], Some(usage(5))), Nanos::ZERO);
        assert_eq!((one.ttft, one.tpot, one.gap_p50), (Some(Nanos::from_millis(70)), None, None));
        let unsent = Row::of(&StreamRecord::default(), Nanos::ZERO);
        assert_eq!((unsent.output_tok, unsent.chunks, unsent.lag), (None, None, None));
    }

    #[test]
    fn reasoning_share_where_the_server_says_zero() {
        let mut all = record(
            &[],
            Some(Usage { output_tok: Some(16), reasoning_tok: Some(0), ..Usage::default() }),
        );
        for ms in 0..8 {
            all.tokens.push(Nanos::from_secs(1) + Nanos::from_millis(ms), Kind::Reasoning, None);
        }
        assert_eq!(Row::of(&all, Nanos::ZERO).reasoning_tok, Some(16));
        assert_eq!(Row::of(&record(&[1, 2], Some(usage(2))), Nanos::ZERO).reasoning_tok, None);
    }

    #[test]
    fn nearest_rank_over_gaps() {
        let at: Vec<u64> = std::iter::once(0).chain((1..=100).map(|i| i * (i + 1) / 2)).collect();
        let row = Row::of(&record(&at, None), Nanos::ZERO);
        let ms = |n| Some(Nanos::from_millis(n));
        assert_eq!((row.gap_p50, row.gap_p99, row.gap_max), (ms(50), ms(99), ms(100)));
    }
}
