//! How a server is recognised and asked before a run: the arguments, as typed.

use std::str::FromStr;

use clap::Args;

use super::link_args::LinkArgs;
use crate::client::dialect::MaxTokensKey;
use crate::run::MetricsPages;
use crate::server::{Engine, Switch, UnknownEngine};
use crate::units::{Nanos, UnitError};

/// `--engine`: one by name, or (`None`) whichever is found.
#[derive(Clone, Copy, Debug)]
pub(super) struct EngineChoice(pub(super) Option<Engine>);

impl FromStr for EngineChoice {
    type Err = UnknownEngine;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        if word == "auto" { Ok(Self(None)) } else { word.parse().map(|engine| Self(Some(engine))) }
    }
}

fn switch(word: &str) -> Result<Switch, String> {
    match word {
        "auto" => Ok(Switch::Auto),
        "on" => Ok(Switch::On),
        "off" => Ok(Switch::Off),
        _ => Err(format!("`{word}` is none of auto, on and off")),
    }
}

/// Arguments of `run` about reaching servers.
#[derive(Debug, Args)]
#[command(next_help_heading = "Reaching the server")]
pub(super) struct ReachArgs {
    /// Engine of the server, where it is not found or found wrong; decides which vendor keys are
    /// sent. `openai` sends none and asks nothing but /v1/models
    #[arg(long, value_name = "ENGINE", default_value = "auto")]
    pub(super) engine: EngineChoice,
    /// Send no small request ahead, and ask nothing but /v1/models (and that only without --model)
    #[arg(long)]
    pub(super) no_preflight: bool,
    /// Metrics page of the server, in the place of its own (repeatable: servers add up); `off`: none is
    /// read. The server's count of tokens is held against the run's
    #[arg(long, value_name = "URL|off")]
    pub(super) metrics: Vec<String>,
    /// Ask until the server answers, for D at the most
    #[arg(long, value_name = "D", value_parser = duration)]
    pub(super) wait_ready: Option<Nanos>,
    /// Token counts on every chunk: auto (where the engine is known to give them), on, off
    #[arg(long, value_name = "WHEN", default_value = "auto", value_parser = switch)]
    pub(super) running_usage: Switch,
    /// Cut prompts (and completions) that are together too long for the server, and count them
    #[arg(long)]
    pub(super) clip_to_server: bool,
    /// What the body calls the longest answer: `max_tokens` or `max_completion_tokens`
    #[arg(long, value_name = "KEY", default_value = "max_tokens")]
    pub(super) max_tokens_key: MaxTokensKey,
    #[command(flatten)]
    pub(super) link: LinkArgs,
}

impl ReachArgs {
    /// Whose metrics pages are read.
    pub(super) fn metrics_pages(&self) -> anyhow::Result<MetricsPages> {
        let off = self.metrics.iter().any(|url| url == "off");
        anyhow::ensure!(
            !off || self.metrics.len() == 1,
            "--metrics off takes no other --metrics beside it"
        );
        Ok(match &self.metrics[..] {
            [] => MetricsPages::Own,
            _ if off => MetricsPages::Off,
            urls => MetricsPages::Given(urls.to_vec()),
        })
    }
}

fn duration(text: &str) -> Result<Nanos, UnitError> {
    Nanos::parse_duration(text)
}
