//! What requests say: the arguments, as typed, and what they mean.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use serde_json::value::RawValue;

use super::body_keys;
use crate::client::dialect::{self, Api};
use crate::prompt::corpus::Corpus;
use crate::prompt::tokenizer::Tokenizer;

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
    /// JSON object merged into every body: over the defaults and a workload's `request` section, under a row's
    /// own `body`
    #[arg(long, value_name = "JSON")]
    pub(super) extra: Option<String>,
    /// Write what the answers say, one JSON object a row: row, outcome, text, reasoning
    #[arg(long, value_name = "FILE.jsonl")]
    pub(super) save_text: Option<PathBuf>,
    /// The model's own `tokenizer.json`: counts the answers of a server that tells no usage, after each has
    /// ended, and says which words are one token each in prompts of an exact length
    #[arg(long, value_name = "FILE")]
    pub(super) tokenizer: Option<PathBuf>,
    /// Send N requests of this program's own before the first row is due, all at once; they are in no
    /// result
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) prime: Option<u32>,
}

/// The same, read and checked.
#[derive(Debug, Default)]
pub(super) struct Given {
    /// Prompts for rows that bring none.
    pub(super) corpus: Option<Arc<Corpus>>,
    /// What is to be said of them.
    pub(super) words: Option<String>,
    /// An object merged into every body.
    pub(super) extra: Option<Arc<RawValue>>,
    /// The model's own tokenizer.
    pub(super) tokenizer: Option<Arc<Tokenizer>>,
}

impl ContentArgs {
    /// Reads the file of prompts and the JSON; `request` is what the workload wants in every body.
    pub(super) fn read(
        &self,
        api: Api,
        seed: u64,
        request: Option<&RawValue>,
    ) -> anyhow::Result<Given> {
        let extra = self.extra(request)?;
        let tokenizer = self.tokenizer.as_deref().map(Tokenizer::load).transpose()?.map(Arc::new);
        let given = Given { extra, tokenizer, ..Given::default() };
        if let Some(text) = &self.prompt {
            anyhow::ensure!(!text.is_empty(), "--prompt has no text in it\nhint: give some");
            let corpus = Some(Arc::new(Corpus::of_text(text)));
            return Ok(Given { corpus, ..given });
        }
        let Some(path) = &self.prompts else { return Ok(given) };
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
        Ok(Given { corpus: Some(Arc::new(corpus)), words: Some(words), ..given })
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
        let typed = typed.transpose()?;
        typed.as_deref().map_or(Ok(()), |typed| body_keys::check("--extra", typed))?;
        let merged = match (request, typed) {
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
