//! The events of an answer, from the bytes of its body to what the record keeps of them.
//!
//! Deliberately absent: what became of the answer (see `verdict`).

use std::task::Poll;

use super::attempt::Attempt;
use super::dialect::{self, Parsed};
use super::failure::{Failure, one_line};
use super::sse;
use crate::client::control::Step;
use crate::client::wire::Exchange;
use crate::record::{Outcome, Usage};
use crate::units::Nanos;

/// After so many reads a stream lets the others have a turn: one that always has bytes must not hold
/// up a send that is due.
const READS_AT_ONCE: u32 = 4;

impl Attempt<'_> {
    /// Reads events until `[DONE]`, the end of the body, or a failure.
    pub(super) async fn events(&mut self, exchange: &mut Exchange) -> Result<(), Failure> {
        let mut decoder = sse::Decoder::new();
        let mut reads = 0;
        let (control, clock) = (self.control, &self.client.clock);
        let followed = control.follow(clock, |context| {
            loop {
                let mut outcome = Ok(());
                let read = exchange.poll_read(context, |bytes, arrival| {
                    self.control.saw_byte(arrival.at);
                    if outcome.is_ok() && !self.done {
                        self.rx_delay = arrival.rx_delay;
                        outcome = self.decode(&mut decoder, Some(bytes), arrival.at);
                    }
                });
                match read {
                    Poll::Pending => return Step::Waiting(self.wait_until()),
                    Poll::Ready(_) if outcome.is_err() || self.done => return Step::Ready(outcome),
                    Poll::Ready(Some(Ok(()))) => {}
                    Poll::Ready(ended) => {
                        let at = exchange.last_read();
                        let outcome = self.decode(&mut decoder, None, at);
                        self.record.close.get_or_insert(self.client.offset(at));
                        if let Some(Err(error)) = ended {
                            self.broke = true;
                            self.record.error = Some(format!("connection broke: {error}"));
                        }
                        return Step::Ready(outcome);
                    }
                }
                reads += 1;
                if reads % READS_AT_ONCE == 0 {
                    context.waker().wake_by_ref();
                    return Step::Waiting(self.wait_until());
                }
            }
        });
        let followed = followed.await;
        // The line that was under way when the stream was cut may be all that was said.
        decoder.finish(|_| ());
        self.stray = decoder.into_stray();
        followed.unwrap_or_else(|cut| self.cut(cut))
    }

    /// Decodes bytes of one read, or (`None`) what is pending at the end of the stream.
    fn decode(
        &mut self,
        decoder: &mut sse::Decoder,
        bytes: Option<&[u8]>,
        at: Nanos,
    ) -> Result<(), Failure> {
        let at = self.client.offset(at);
        let mut result = Ok(());
        let mut on_event = |event: sse::Event<'_>| {
            if result.is_ok() && !self.done {
                result = self.event(&event, at);
            }
        };
        match bytes {
            Some(bytes) => decoder
                .feed(bytes, &mut on_event)
                .map_err(|error| Failure::new(Outcome::StreamError, error.to_string()))?,
            None => {
                decoder.finish(&mut on_event);
            }
        }
        result?;
        // A gateway may hold the stream open after a `[DONE]` that no empty line follows.
        if decoder.holds_done() && !self.done {
            self.done = true;
            self.record.first_event.get_or_insert(at);
            self.record.close = Some(at);
        }
        Ok(())
    }

    fn event(&mut self, event: &sse::Event<'_>, at: Nanos) -> Result<(), Failure> {
        let record = &mut self.record;
        record.first_event.get_or_insert(at);
        let chunk = match dialect::parse_event(event.name, event.data) {
            Ok(Parsed::Done) => {
                self.done = true;
                record.close = Some(at);
                return Ok(());
            }
            Ok(Parsed::Chunk(chunk)) => chunk,
            Err(error) => return Err(Failure::new(Outcome::StreamError, error.to_string())),
        };
        if chunk.is_answer() {
            record.first_answer.get_or_insert(at);
        }
        if let (Some(_), Some(saved)) = (chunk.kind, &mut record.text) {
            dialect::append_text(event.data, saved);
        }
        if let Some(kind) = chunk.kind {
            record.tokens.push(at, kind, chunk.usage.and_then(|usage| usage.output_tok));
            record.tokens.set_rx_delay(self.rx_delay);
            record.rx_delay = record.rx_delay.max(self.rx_delay);
        }
        if record.request_id.is_none() {
            record.request_id = chunk.id.map(|id| one_line(&id));
        }
        if let Some(reason) = chunk.finish_reason {
            record.finish_reason = Some(one_line(&reason));
        }
        self.whole = match (chunk.kind, chunk.usage.and_then(|usage| usage.output_tok)) {
            (None, Some(_)) if record.finish_reason.is_some() => Some(at),
            (None, _) => self.whole,
            // Another choice goes on.
            (Some(_), _) => None,
        };
        if let Some(usage) = chunk.usage {
            // After a finish reason no count is a running one, a count of zero included.
            let running = usage.running && record.finish_reason.is_none();
            record.usage = Some(latest(record.usage, Usage { running, ..usage }));
        }
        // Last, so that a token that came with the error is still counted.
        chunk.error.map_or(Ok(()), |error| Err(Failure::new(Outcome::StreamError, error)))
    }
}

/// The last count seen wins; what it leaves out keeps its earlier value.
fn latest(before: Option<Usage>, last: Usage) -> Usage {
    let before = before.unwrap_or_default();
    Usage {
        input_tok: last.input_tok.or(before.input_tok),
        output_tok: last.output_tok.or(before.output_tok),
        cached_tok: last.cached_tok.or(before.cached_tok),
        reasoning_tok: last.reasoning_tok.or(before.reasoning_tok),
        running: last.running,
    }
}
