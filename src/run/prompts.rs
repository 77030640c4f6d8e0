//! The prompts of a run before `t0`: from a file, or in the words that the server counts as one token
//! each; and what a reader of the results has to know of them.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::content::Content;
use super::error::RunError;
use super::events::{Event, Observer};
use super::settings::Settings;
use crate::client::dialect::Api;
use crate::replay::Setup;
use crate::schedule::PlanFacts;
use crate::server::Servers;
use crate::server::prompt_fit::{fit_prompts, prime, prime_timeouts, words_of_file};

/// More than any chat template has by itself: what is allowed for where none was measured.
const TEMPLATE_TOK: u32 = 64;

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Prompts {
    /// One sentence each.
    pub(super) notices: Vec<String>,
    /// The tokenizer, as the manifest tells of it.
    pub(super) tokenizer: Value,
    /// What helps where prompts have another length than asked for.
    pub(super) input_remedy: Option<&'static str>,
    /// Prompt tokens a row that may come from a prefix cache, where no row shares its beginning on
    /// purpose.
    pub(super) cache_unasked_tok: Option<u32>,
}

impl Prompts {
    /// Gives the prompter of `setup` its prompts.
    pub(super) fn prepare(
        settings: &Settings,
        plan: Option<&PlanFacts>,
        content: Content,
        servers: &Servers,
        setup: &mut Setup,
        observer: &mut dyn Observer,
    ) -> Result<Self, RunError> {
        let mut prompts = Self::default();
        let tokenizer = content.tokenizer.as_deref();
        if let Some(tokenizer) = tokenizer {
            let (file, hash) = (tokenizer.name(), tokenizer.hash());
            prompts.notices.push(format!("{file} counts the answers that the server does not"));
            prompts.tokenizer = json!({ "file": file, "fnv1a": hash });
        }
        let prompter = setup.bodies.prompter.clone();
        let all_worded = plan.is_some_and(|plan| plan.worded_rows == plan.rows);
        let shares = plan.is_none_or(|plan| plan.shared_rows > 0) || content.corpus.is_some();
        let mut template_tok = None;
        if content.corpus.is_some() {
            setup.bodies.prompter = prompter.with_corpus(content.corpus);
            prompts.notices.extend(content.notice);
        } else if all_worded {
            prompts.input_remedy =
                Some("the trace gives the words, and its counts are another tokenizer's");
        } else if may_probe(settings, servers) {
            let found = fit_prompts(setup, &servers.tokenize_path(), tokenizer)?;
            template_tok = found.vocabulary.as_ref().map(|words| words.fit.overhead_tok);
            let mut words = found.words;
            if setup.targets.len() > 1 {
                words.push_str("; measured at the first server, taken for all");
            }
            prompts.notices.push(words);
            prompts.input_remedy = Some(match &found.vocabulary {
                None => "they could not be calibrated to this server, as said above",
                Some(words) if !words.fit.is_exact() && tokenizer.is_some() => {
                    "words of one token in the --tokenizer are not so here: is it this model's?"
                }
                Some(words) if !words.fit.is_exact() => "no words are one token each here",
                Some(_) => {
                    "rows that ask for less than the least get that, and given prompts are sent whole"
                }
            });
            setup.bodies.prompter = prompter.with_vocabulary(found.vocabulary.unwrap_or_default());
        } else {
            let of_file = tokenizer.filter(|_| !servers.is_simulated()).and_then(words_of_file);
            if let Some(words) = of_file {
                prompts.notices.push(
                    "prompts are words of one token by the --tokenizer; what the server adds to them is \
                     not known"
                        .to_owned(),
                );
                setup.bodies.prompter = prompter.with_vocabulary(words);
            }
            prompts.input_remedy = Some(
                "they were not calibrated to this server; leave out --no-usage, --no-preflight and \
                 --engine openai",
            );
        }
        let assumed = if settings.server.api == Api::Chat { TEMPLATE_TOK } else { 1 };
        prompts.cache_unasked_tok = (!shares).then(|| template_tok.unwrap_or(assumed));
        for notice in &prompts.notices {
            observer.observe(Event::Note(notice));
        }
        Ok(prompts)
    }

    /// Warms the server up with so many requests.
    pub(super) fn prime(
        &mut self,
        count: u32,
        setup: &Setup,
        observer: &mut dyn Observer,
    ) -> Result<(), RunError> {
        if let Some(limit) = prime_timeouts(setup).total {
            let limit = limit.as_secs_f64();
            let step = format!("priming: {count} requests, {limit} s at the most (--timeout D)");
            observer.observe(Event::Step(&step));
        }
        let outcome = prime(setup, count)?;
        observer.observe(Event::Note(&outcome));
        self.notices.push(outcome);
        Ok(())
    }
}

/// Whether requests may be sent before `t0`. The simulated server counts words, so there is no need;
/// and without usage nothing would be learnt.
fn may_probe(settings: &Settings, servers: &Servers) -> bool {
    !servers.is_simulated() && settings.server.usage && settings.server.may_probe()
}

/// Rows that could not be as short as they asked to be.
pub(super) fn below_least(setup: &Setup) -> Option<String> {
    let rows = setup.bodies.below_least.load(Ordering::Relaxed);
    let least = setup.bodies.prompter.least_tok();
    (rows > 0).then(|| {
        format!(
            "{rows} rows asked for fewer prompt tokens than this server's least, {least}, and got that"
        )
    })
}
