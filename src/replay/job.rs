//! A planned row with its request body, ready to be sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use serde_json::value::RawValue;

use super::source::{SessionTurn, Timed};
use crate::client::dialect::{self, Api, BodyError, BodyParams, MaxTokensKey, MergeError, Prompt};
use crate::prompt::{self, PromptContent, Prompter, RowPrompt};
use crate::record::StreamRecord;
use crate::schedule::{Fnv, Planned};
use crate::units::Nanos;

/// A row that only waits for its time.
#[derive(Debug)]
pub struct Job {
    /// The row.
    pub planned: Planned,
    /// The body of its POST.
    pub body: Bytes,
    /// Index of the server that it goes to.
    pub target: u32,
    /// Prompt tokens asked for; `None` where the prompt's length is nobody's choice.
    pub input_tok_asked: Option<u32>,
    /// The words of the answer are kept.
    pub keep_text: bool,
    /// Makes the body of a turn, once it is known when it is due: histories are long, and all turns of
    /// all sessions at once would be too much.
    pub late: Option<Arc<BodyMaker>>,
    /// Why there is no body.
    pub fault: Option<Box<JobError>>,
}

impl Job {
    /// Memory that this job holds while it waits, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let blocks = self.planned.request.prefix.as_ref().map_or(0, |prefix| prefix.blocks.len());
        size_of::<Self>() + self.body.len() + blocks * size_of::<u64>()
    }

    /// The record that its request will fill.
    #[must_use]
    pub fn record(&self, due: Nanos) -> StreamRecord {
        let request = &self.planned.request;
        StreamRecord {
            row: request.row,
            session: request.session.clone(),
            turn: request.turn,
            class: request.class.clone(),
            target: self.target,
            due,
            input_tok_asked: self.input_tok_asked,
            text: self.keep_text.then(Box::default),
            output_tok_asked: request.output_tok,
            ..StreamRecord::default()
        }
    }
}

impl Timed for Job {
    fn due(&self) -> Option<Nanos> {
        self.planned.due
    }

    fn turn(&self) -> Option<SessionTurn<'_>> {
        let request = &self.planned.request;
        let (index, think) = (self.planned.index, request.think);
        request.session.as_ref().map(|session| SessionTurn { index, session, think })
    }

    fn bytes(&self) -> usize {
        self.bytes()
    }

    fn prepare(&mut self) {
        let Some(maker) = self.late.take() else { return };
        match maker.made(&self.planned, self.target) {
            Ok((body, input_tok_asked)) => {
                (self.body, self.input_tok_asked) = (body, input_tok_asked);
            }
            Err(error) => self.fault = Some(Box::new(error)),
        }
    }
}

/// What all bodies of a run have in common.
#[expect(clippy::struct_excessive_bools, reason = "each is one key of a body, or one wish")]
#[derive(Clone, Debug)]
pub struct BodyMaker {
    /// Which API is spoken.
    pub api: Api,
    /// `model` by target; left out when unknown.
    pub models: Vec<Option<String>>,
    /// Ask for usage on the last chunk.
    pub include_usage: bool,
    /// Ask for usage on every chunk: a vendor key.
    pub running_usage: bool,
    /// What the longest answer is called.
    pub max_tokens_key: MaxTokensKey,
    /// Ask the server to ignore the end-of-sequence token, in rows that ask for a length.
    pub ignore_eos: bool,
    /// An object merged into every body, over the defaults.
    pub extra: Option<Arc<RawValue>>,
    /// The words.
    pub prompter: Prompter,
    /// Keep the words of the answers.
    pub keep_text: bool,
    /// Rows that asked for less than the least prompt has, and got that.
    pub below_least: Arc<AtomicU64>,
}

/// A row that cannot be put into words.
#[derive(Debug, thiserror::Error)]
#[error("row {row}: {reason}")]
pub struct JobError {
    /// 0-based row of the source.
    pub row: u64,
    /// Why.
    pub reason: JobFault,
}

/// What is wrong with a row's content.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each carries its own message")]
pub enum JobFault {
    #[error(transparent)]
    Body(#[from] BodyError),
    #[error("`body`: {0}")]
    Merge(#[from] MergeError),
}

impl BodyMaker {
    /// Bodies for one server that names no model and knows no vendor key; they ask for usage.
    #[must_use]
    pub fn new(api: Api, prompter: Prompter) -> Self {
        Self {
            api,
            models: vec![None],
            include_usage: true,
            running_usage: false,
            max_tokens_key: MaxTokensKey::default(),
            ignore_eos: false,
            extra: None,
            prompter,
            keep_text: false,
            below_least: Arc::default(),
        }
    }

    /// A row with its body.
    pub fn job(&self, planned: Planned) -> Result<Job, JobError> {
        let target = target(&planned, self.models.len());
        let (body, input_tok_asked) = self.made(&planned, target)?;
        let keep_text = self.keep_text;
        Ok(Job { planned, body, target, input_tok_asked, keep_text, late: None, fault: None })
    }

    /// The same, but that a dependent turn gets its body once it is known when it is due.
    pub fn job_in_time(self: &Arc<Self>, planned: Planned) -> Result<Job, JobError> {
        if planned.request.think.is_none() {
            return self.job(planned);
        }
        let target = target(&planned, self.models.len());
        let (body, keep_text, late) = (Bytes::new(), self.keep_text, Some(Arc::clone(self)));
        Ok(Job { planned, body, target, input_tok_asked: None, keep_text, late, fault: None })
    }

    /// The body of a row, and the prompt tokens that it asks for.
    fn made(&self, planned: &Planned, target: u32) -> Result<(Bytes, Option<u32>), JobError> {
        let request = &planned.request;
        let asked = self.prompter.prompt_of(request);
        if asked.is_below_least {
            self.below_least.fetch_add(1, Ordering::Relaxed);
        }
        let own = prompt::own_body(request);
        let body = self
            .body(&asked, target, request.output_tok, own)
            .map_err(|reason| JobError { row: request.row, reason })?;
        Ok((body, asked.input_tok))
    }

    /// The body of a request to the first target that is no row: `pieces` pieces of prompt, another
    /// text for each `id`.
    pub fn probe(&self, id: u64, pieces: u32, output_tok: u32) -> Result<Bytes, JobFault> {
        let content = self.prompter.probe(id, pieces);
        let asked = RowPrompt { content, body: None, input_tok: None, is_below_least: false };
        self.body(&asked, 0, Some(output_tok), None)
    }

    fn body(
        &self,
        asked: &RowPrompt<'_>,
        target: u32,
        output_tok: Option<u32>,
        own: Option<&RawValue>,
    ) -> Result<Bytes, JobFault> {
        let params = BodyParams {
            api: self.api,
            model: self.models.get(target as usize).and_then(Option::as_deref),
            max_tokens: output_tok,
            max_tokens_key: self.max_tokens_key,
            include_usage: self.include_usage,
            running_usage: self.running_usage,
            // An answer that ignored its end and had no limit would go on to the server's.
            ignore_eos: self.ignore_eos && output_tok.is_some(),
        };
        let prompt = match &asked.content {
            PromptContent::Text(text) => Prompt::Text(text),
            PromptContent::Messages(messages) => Prompt::Messages(messages),
            PromptContent::Ids(ids) => Prompt::Ids(ids),
        };
        let mut body = dialect::body(&params, prompt)?;
        for over in [self.extra.as_deref(), asked.body, own].into_iter().flatten() {
            body = dialect::merge(&body, over)?;
        }
        Ok(body.into())
    }
}

/// The index of the server that a row goes to, of `targets` (at least one): the rows of a session all go to one, so
/// that its cache is of use; the others in turn. A plan is so sent the same way by any number of workers.
fn target(planned: &Planned, targets: usize) -> u32 {
    let targets = targets.max(1) as u64;
    let key = match &planned.request.session {
        Some(session) => session_key(session),
        None => planned.index,
    };
    u32::try_from(key % targets).unwrap_or_default()
}

/// A number for a session: FNV-1a, folded, since its low bits alone follow the last letter too closely.
pub(super) fn session_key(session: &str) -> u64 {
    let Fnv(hash) = Fnv::of(session.as_bytes());
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Request;

    fn planned(index: u64, session: Option<&str>) -> Planned {
        let request = Request { session: session.map(Into::into), ..Request::default() };
        Planned { index, due: None, request }
    }

    #[test]
    fn rows_go_in_turn_and_sessions_stay() {
        let in_turn: Vec<u32> = (0..6).map(|index| target(&planned(index, None), 3)).collect();
        assert_eq!(in_turn, [0, 1, 2, 0, 1, 2]);
        let mut counts = [0; 3];
        for session in 0..3000 {
            let name = format!("user-{session}");
            let first = target(&planned(0, Some(&name)), 3);
            assert_eq!(first, target(&planned(17, Some(&name)), 3));
            counts[first as usize] += 1;
        }
        assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");
        assert_eq!(target(&planned(5, Some("x")), 1), 0);
    }
}
