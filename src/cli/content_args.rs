//! What requests say: the arguments, as typed, and what they mean.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use serde_json::value::RawValue;

use crate::client::dialect::{self, Api};
use crate::prompt::corpus::Corpus;

/// Arguments of `run` about prompts and bodies.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Content")]
pub(super) struct ContentArgs {
    /// Real prompts for the rows, in turn: JSON Lines or a JSON array of objects with `prompt`,
    /// `messages`, `conversations` (as in `ShareGPT`) or `body` (`OpenAI` batch input). Rows that bring their
    /// own words keep them
    #[arg(long, value_name = "FILE")]
    pub(super) prompts: Option<PathBuf>,
    /// Take the prompts of the file in an order drawn from the seed
    #[arg(long, requires = "prompts")]
    pub(super) shuffle_prompts: bool,
    /// The same prompt for every row
    #[arg(long, value_name = "TEXT", conflicts_with = "prompts")]
    pub(super) prompt: Option<String>,
    /// JSON object merged into every body: over the defaults and a workload's [request], under a row's
    /// own `body`
    #[arg(long, value_name = "JSON")]
    pub(super) extra: Option<String>,
}

impl ContentArgs {
    /// The prompts of the file, or the one that was typed; with what is to be said of them.
    pub(super) fn corpus(
        &self,
        api: Api,
        seed: u64,
    ) -> anyhow::Result<Option<(Arc<Corpus>, Option<String>)>> {
        if let Some(text) = &self.prompt {
            anyhow::ensure!(!text.is_empty(), "--prompt has no text in it\nhint: give some");
            return Ok(Some((Arc::new(Corpus::of_text(text)), None)));
        }
        let Some(path) = &self.prompts else { return Ok(None) };
        let mut corpus = Corpus::load(path)?;
        if api == Api::Completions {
            corpus = corpus.without_messages()?;
        }
        let order =
            if self.shuffle_prompts { "in an order drawn from the seed" } else { "in turn" };
        let mut words = format!(
            "{} prompts of {}, {order} and over again; their lengths are their own, so input_tok_asked \
             is empty",
            corpus.count(),
            path.display()
        );
        if corpus.left_out() > 0 {
            words = format!("{words}; {} without a human turn left out", corpus.left_out());
        }
        if self.shuffle_prompts {
            corpus = corpus.shuffled(seed);
        }
        Ok(Some((Arc::new(corpus), Some(words))))
    }

    /// What goes into every body: the workload's `[request]` and over it `--extra`.
    pub(super) fn extra(
        &self,
        request: Option<&RawValue>,
    ) -> anyhow::Result<Option<Arc<RawValue>>> {
        let typed = self.extra.as_ref().map(|text| {
            RawValue::from_string(text.clone())
                .ok()
                .filter(|json| json.get().starts_with('{'))
                .context("--extra is no JSON object\nhint: --extra '{\"temperature\": 0.7}'")
        });
        let merged = match (request, typed.transpose()?) {
            (None, None) => return Ok(None),
            (Some(request), None) => request.to_owned(),
            (None, Some(typed)) => typed,
            (Some(request), Some(typed)) => {
                let merged = dialect::merge(request.get().as_bytes(), &typed).context("--extra")?;
                let merged = String::from_utf8(merged).context("--extra")?;
                RawValue::from_string(merged).context("--extra")?
            }
        };
        Ok(Some(Arc::from(merged)))
    }
}
