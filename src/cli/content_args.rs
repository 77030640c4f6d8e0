//! What requests say: the arguments, as typed.

use std::path::PathBuf;

use clap::Args;

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
