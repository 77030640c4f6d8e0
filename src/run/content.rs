//! What requests of a run say, read and checked: prompts of a file, keys of every body, a tokenizer.
//!
//! Deliberately absent: the words of synthetic prompts (see [`crate::prompt`]).

use std::path::Path;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::error::RunError;
use super::settings::ContentSettings;
use crate::client::dialect::{self, Api};
use crate::prompt::corpus::Corpus;
use crate::prompt::tokenizer::Tokenizer;
use crate::server::body_keys;

/// Content, read and checked.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    /// Prompts for rows that bring none.
    pub(super) corpus: Option<Arc<Corpus>>,
    /// What is to be said of them.
    pub(super) notice: Option<String>,
    /// An object merged into every body.
    pub(super) extra: Option<Arc<RawValue>>,
    /// The model's own tokenizer.
    pub(super) tokenizer: Option<Arc<Tokenizer>>,
}

impl Content {
    /// Reads the files and the JSON; `request` is what the workload wants in every body.
    pub(super) fn read(
        settings: &ContentSettings,
        api: Api,
        seed: u64,
        request: Option<&RawValue>,
    ) -> Result<Self, RunError> {
        let extra = extra(settings.extra.as_deref(), request)?;
        let tokenizer = settings.tokenizer.as_deref().map(Tokenizer::load).transpose()?;
        let mut content = Self { extra, tokenizer: tokenizer.map(Arc::new), ..Self::default() };
        if let Some(text) = &settings.prompt {
            if text.is_empty() {
                let problem = "--prompt has no text in it\nhint: give some";
                return Err(RunError::Settings(problem.to_owned()));
            }
            content.corpus = Some(Arc::new(Corpus::of_text(text)));
        } else if let Some(path) = &settings.prompts {
            let shuffled = settings.shuffle_prompts.then_some(seed);
            let (corpus, notice) = corpus(path, api, shuffled)?;
            content.corpus = Some(Arc::new(corpus));
            content.notice = Some(notice);
        }
        Ok(content)
    }
}

/// The prompts of a file, in an order drawn from a seed where there is one; and what is to be said.
fn corpus(path: &Path, api: Api, seed: Option<u64>) -> Result<(Corpus, String), RunError> {
    let mut corpus = Corpus::load(path)?;
    if api == Api::Completions {
        corpus = corpus.without_messages()?;
    }
    let order = if seed.is_some() { "in an order drawn from the seed" } else { "in turn" };
    let mut notice = format!(
        "{} prompts of {}, {order} and over again; their lengths are their own, so input_tok_asked is \
         empty",
        corpus.count(),
        path.display()
    );
    if corpus.left_out() > 0 {
        notice = format!("{notice}; {} without a human turn left out", corpus.left_out());
    }
    if let Some(seed) = seed {
        corpus = corpus.shuffled(seed);
    }
    Ok((corpus, notice))
}

/// What goes into every body: the workload's `[request]` and over it `--extra`.
fn extra(
    typed: Option<&str>,
    request: Option<&RawValue>,
) -> Result<Option<Arc<RawValue>>, RunError> {
    let wrong = |problem: String| RunError::Settings(problem);
    let typed = typed.map(|text| {
        let json = RawValue::from_string(text.to_owned()).ok();
        json.filter(|json| json.get().starts_with('{')).ok_or_else(|| {
            wrong("--extra is no JSON object\nhint: --extra '{\"temperature\": 0.7}'".to_owned())
        })
    });
    let typed = typed.transpose()?;
    typed.as_deref().map_or(Ok(()), |typed| body_keys::check("--extra", typed))?;
    let merged = match (request, typed) {
        (None, None) => return Ok(None),
        (Some(request), None) => request.to_owned(),
        (None, Some(typed)) => typed,
        (Some(request), Some(typed)) => {
            dialect::merged(request, &typed).map_err(|error| wrong(format!("--extra: {error}")))?
        }
    };
    Ok(Some(Arc::from(merged)))
}
