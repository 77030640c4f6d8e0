//! Tokens of answers that the server did not count, by the model's own tokenizer.
//!
//! On the thread that writes the rows, once an answer has ended; never where a stream runs. A thread
//! that falls far behind would in the end hold up the streams, so it then stops counting: those rows
//! say that their count is of events. Deliberately absent: the cutting of text itself.

use std::sync::Arc;

use crate::prompt::tokenizer::Tokenizer;
use crate::record::{SavedText, StreamRecord, TextTok};
use crate::units::Nanos;

/// An answer that has waited this long is not counted. The queue of ended rows holds as much at 16,000
/// rows a second.
const LATE: Nanos = Nanos::from_secs(4);

/// Counts the answers of one run.
#[derive(Debug)]
pub(super) struct TextCounter {
    tokenizer: Arc<Tokenizer>,
    late: u64,
}

impl TextCounter {
    pub(super) fn new(tokenizer: Arc<Tokenizer>) -> Self {
        Self { tokenizer, late: 0 }
    }

    /// Counts the text of a record that no server counted, at `now` from `t0`.
    pub(super) fn count(&mut self, record: &mut StreamRecord, now: Nanos) {
        let is_counted = record.usage.is_some_and(|usage| usage.output_tok.is_some())
            || record.tokens.running_total().is_some();
        let Some(text) = record.text.as_deref().filter(|text| !is_counted && !text.is_cut) else {
            return;
        };
        let is_silent =
            [&text.text, &text.reasoning, &text.tool].iter().all(|text| text.is_empty());
        // Tokens without a text of theirs: there is nothing to count them by.
        if record.http_status != Some(200) || (is_silent && record.tokens.count() > 0) {
            return;
        }
        if now.since(record.close.unwrap_or(now)) > LATE {
            self.late += 1;
        } else {
            record.text_tok = self.text_tok(text);
        }
    }

    fn text_tok(&self, text: &SavedText) -> Option<TextTok> {
        let reasoning_tok = self.tokenizer.count(&text.reasoning)?;
        let rest = self.tokenizer.count(&text.text)? + self.tokenizer.count(&text.tool)?;
        Some(TextTok { output_tok: reasoning_tok + rest, reasoning_tok })
    }

    /// What a reader of the results should know.
    pub(super) fn notice(&self) -> Option<String> {
        (self.late > 0).then(|| {
            format!(
                "{} answers waited longer than {} s for {}, and their events were counted instead",
                self.late,
                LATE.as_secs_f64(),
                self.tokenizer.name()
            )
        })
    }
}
