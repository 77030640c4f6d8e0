//! What a stream that was followed to its end came to: an answer, or what else its body was.
//!
//! Deliberately absent: sockets and waiting, and failures within a stream, which name their own outcome.

use super::attempt::Attempt;
use super::dialect;
use super::failure::{Failure, cut_failure, form_of_text, no_events};
use crate::client::control::Cut;
use crate::record::Outcome;

impl Attempt<'_> {
    /// What becomes of a stream that is not followed to its end.
    pub(super) fn cut(&mut self, cut: Cut) -> Result<(), Failure> {
        let deadline = self.stream_deadline();
        if let (Cut::Deadline, Some(deadline)) = (cut, deadline)
            && deadline.is_end_of_answer()
        {
            self.record.error = Some(deadline.describe());
            return Ok(());
        }
        let place = match self.whole {
            Some(_) => "after its finish_reason and usage, before [DONE] or an end",
            None => "in mid-stream",
        };
        let mut failure = cut_failure(cut, deadline, place);
        let said = std::mem::take(&mut self.stray);
        if self.record.first_event.is_none() && !said.trim_ascii().is_empty() {
            failure.error += "; it said: ";
            failure.error += &dialect::error_message(&said);
        }
        Err(failure)
    }

    /// A body without an event was no stream of events, whatever else it was; and one with events may
    /// have said outside of them that it failed.
    pub(super) fn expect_events(&mut self, content_type: &str) -> Result<(), Failure> {
        let has_events = self.done || self.record.first_event.is_some();
        let stray = std::mem::take(&mut self.stray);
        let form = form_of_text(&stray).filter(|_| !has_events);
        let error = match (form, dialect::error_outside(&stray)) {
            (Some(form), _) => no_events(form, &dialect::error_message(&stray)),
            (None, Some(error)) => format!("an error outside of the events: {error}"),
            (None, None) if has_events => return Ok(()),
            (None, None) => return self.expect_any(content_type, &stray),
        };
        let broke = self.record.error.take().map(|broke| format!("; {broke}"));
        Err(Failure::new(Outcome::StreamError, error + &broke.unwrap_or_default()))
    }

    /// A body without an event that is neither JSON nor a page.
    fn expect_any(&mut self, content_type: &str, stray: &[u8]) -> Result<(), Failure> {
        let is_empty = stray.trim_ascii().is_empty();
        let is_named = content_type == "text/event-stream";
        // The verdict has words for these.
        if is_empty && (is_named || self.record.error.is_some()) {
            return Ok(());
        }
        let what = self.record.error.take().unwrap_or_else(|| {
            let named = if content_type.is_empty() { "none" } else { content_type };
            format!("a whole body without an event (content-type: {named})")
        });
        let said = if is_empty { String::new() } else { dialect::error_message(stray) };
        let colon = if is_empty { "" } else { ": " };
        Err(Failure::new(Outcome::Truncated, format!("{what}{colon}{said}")))
    }

    /// The outcome of a stream that was followed to its end.
    pub(super) fn verdict(&mut self) -> Result<Outcome, Failure> {
        let record = &mut self.record;
        if !self.done && record.finish_reason.is_none() {
            let error = record.error.take().unwrap_or_else(|| {
                "the stream ended with neither a finish_reason nor [DONE]".to_owned()
            });
            return Err(Failure::new(Outcome::Truncated, error));
        }
        if record.finish_reason.as_deref() == Some("error") {
            let error =
                record.error.take().unwrap_or_else(|| "finish_reason is `error`".to_owned());
            return Err(Failure::new(Outcome::StreamError, error));
        }
        if record.tokens.count() == 0 {
            return Err(Failure::new(Outcome::Empty, "a whole stream without a token"));
        }
        let got = record.usage.and_then(|usage| usage.output_tok);
        // An answer of no length asked for is never too short.
        match (got, record.output_tok_asked.map(u64::from)) {
            (Some(got), Some(asked)) if self.client.settings.ignore_eos && got < asked => {
                Err(Failure::new(Outcome::Short, format!("asked for {asked} tokens, got {got}")))
            }
            _ => Ok(Outcome::Ok),
        }
    }
}
