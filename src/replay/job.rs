//! A planned row with its request body, ready to be sent.

use bytes::Bytes;

use super::source::Timed;
use super::spread;
use crate::client::dialect::{self, Api, BodyError, BodyParams, MaxTokensKey, MergeError, Prompt};
use crate::prompt::{self, Prompter, Words};
use crate::record::StreamRecord;
use crate::schedule::Planned;
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
}

impl Job {
    /// Memory that this job holds while it waits, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.body.len()
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
            input_tok_asked: request.input_tok,
            output_tok_asked: request.output_tok,
            ..StreamRecord::default()
        }
    }
}

impl Timed for Job {
    fn due(&self) -> Option<Nanos> {
        self.planned.due
    }
}

/// What all bodies of a run have in common.
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
    /// Ask the server to ignore the end-of-sequence token.
    pub ignore_eos: bool,
    /// The words.
    pub prompter: Prompter,
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
    /// Makes the body of a row.
    pub fn job(&self, planned: Planned) -> Result<Job, JobError> {
        let row = planned.request.row;
        let target = spread::target(&planned, self.models.len());
        let body = self.body(&planned, target).map_err(|reason| JobError { row, reason })?;
        Ok(Job { planned, body, target })
    }

    fn body(&self, planned: &Planned, target: u32) -> Result<Bytes, JobFault> {
        let request = &planned.request;
        let params = BodyParams {
            api: self.api,
            model: self.models.get(target as usize).and_then(Option::as_deref),
            max_tokens: request.output_tok,
            max_tokens_key: self.max_tokens_key,
            include_usage: self.include_usage,
            running_usage: self.running_usage,
            ignore_eos: self.ignore_eos,
        };
        let words = self.prompter.words(request);
        let prompt = match &words {
            Words::Text(text) => Prompt::Text(text),
            Words::Messages(messages) => Prompt::Messages(messages),
        };
        let body = dialect::body(&params, prompt)?;
        Ok(match prompt::own_body(request) {
            Some(own) => dialect::merge(&body, own)?.into(),
            None => body.into(),
        })
    }
}
