//! The prompts of a run before `t0`: from a file, or in the words that the server counts as one token
//! each; what a reader of the results has to know of them; and the client's own error, where asked for.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use tokio::sync::watch;

use super::args::RunArgs;
use super::calibrate::{UNKNOWN_ANSWER_TOK, mean_answer_tok, of_plan};
use super::calibration::{Scratch, measure};
use super::calibration_words::own_error;
use super::console::say;
use super::content_args::Given;
use super::prompt_fit::{fit_prompts, prime, prime_timeouts, words_of_file};
use super::server::Server;
use crate::client::dialect::Api;
use crate::replay::drain::Stop;
use crate::replay::{Mode, Setup};
use crate::report::OwnError;
use crate::schedule::PlanFacts;

/// More than any chat template has by itself: what is allowed for where none was measured.
const TEMPLATE_TOK: u32 = 64;

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    /// One sentence each.
    pub(super) notices: Vec<String>,
    /// What the manifest tells of it.
    pub(super) settings: Value,
    /// What helps where prompts have another length than asked for.
    pub(super) input_remedy: Option<&'static str>,
    /// Prompt tokens a row that may come from a prefix cache, where no row shares its beginning on
    /// purpose.
    pub(super) cache_unasked_tok: Option<u32>,
    /// The client's own error here, where that was asked.
    pub(super) own_error: Option<OwnError>,
}

impl Prepared {
    /// Gives the prompter of `setup` its prompts.
    pub(super) fn prepare(
        args: &RunArgs,
        facts: Option<&PlanFacts>,
        given: Given,
        server: &Server,
        setup: &mut Setup,
    ) -> anyhow::Result<Self> {
        let mut prepared = Self::default();
        let tokenizer = given.tokenizer.as_deref();
        if let Some(tokenizer) = tokenizer {
            let (file, hash) = (tokenizer.name(), tokenizer.hash());
            prepared.notices.push(format!("{file} counts the answers that the server does not"));
            prepared.settings = json!({ "tokenizer": { "file": file, "fnv1a": hash } });
        }
        let prompter = setup.bodies.prompter.clone();
        let all_worded = facts.is_some_and(|facts| facts.worded_rows == facts.rows);
        let shares = facts.is_none_or(|facts| facts.shared_rows > 0) || given.corpus.is_some();
        let mut template_tok = None;
        if given.corpus.is_some() {
            setup.bodies.prompter = prompter.with_corpus(given.corpus);
            prepared.notices.extend(given.words);
        } else if all_worded {
            prepared.input_remedy =
                Some("the trace gives the words, and its counts are another tokenizer's");
        } else if may_probe(args, server) {
            let found = fit_prompts(setup, &server.tokenize_path(), tokenizer)?;
            template_tok = found.vocabulary.as_ref().map(|words| words.fit.overhead_tok);
            let mut words = found.words;
            if setup.targets.len() > 1 {
                words.push_str("; measured at the first server, taken for all");
            }
            prepared.notices.push(words);
            prepared.input_remedy = Some(match &found.vocabulary {
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
            let of_file = tokenizer.filter(|_| !server.is_simulated()).and_then(words_of_file);
            if let Some(words) = of_file {
                prepared.notices.push(
                    "prompts are words of one token by the --tokenizer; what the server adds to them is \
                     not known"
                        .to_owned(),
                );
                setup.bodies.prompter = prompter.with_vocabulary(words);
            }
            prepared.input_remedy = Some(
                "they were not calibrated to this server; leave out --no-usage, --no-preflight and \
                 --engine openai",
            );
        }
        let assumed = if args.target.api == Api::Chat { TEMPLATE_TOK } else { 1 };
        prepared.cache_unasked_tok = (!shares).then(|| template_tok.unwrap_or(assumed));
        if !args.output.quiet {
            for notice in &prepared.notices {
                say(&format!("note: {notice}"));
            }
        }
        Ok(prepared)
    }

    /// Warms the server up as `--prime` says.
    pub(super) fn prime(&mut self, args: &RunArgs, setup: &Setup) -> anyhow::Result<()> {
        if let Some(count) = args.content.prime {
            if !args.output.quiet
                && let Some(limit) = prime_timeouts(setup).total
            {
                let limit = limit.as_secs_f64();
                say(&format!("priming: {count} requests, {limit} s at the most (--timeout D)"));
            }
            let words = prime(setup, count)?;
            if !args.output.quiet {
                say(&format!("note: {words}"));
            }
            self.notices.push(words);
        }
        Ok(())
    }

    /// Measures this client's own error under the plan's load, where that is known ahead.
    pub(super) fn calibrate(
        &mut self,
        facts: Option<&PlanFacts>,
        setup: &Setup,
        stop: &watch::Sender<Stop>,
    ) -> anyhow::Result<()> {
        let Some(facts) = facts else {
            let words = "not calibrated: a stream's rate is not known ahead (underfire calibrate takes \
                         one)";
            say(&format!("warning: {words}"));
            self.notices.push(words.to_owned());
            return Ok(());
        };
        let slots = match setup.mode {
            Mode::Closed { slots, .. } => Some(slots),
            Mode::Open | Mode::Capped { .. } => None,
        };
        if mean_answer_tok(facts).is_none() {
            say(&format!(
                "note: how long answers will be is unknown; calibrated as for {UNKNOWN_ANSWER_TOK} tokens each"
            ));
        }
        let load = of_plan(facts, slots);
        let scratch = Scratch::make()?;
        match own_error(&measure(load, setup.workers, scratch.folder(), stop)?) {
            Ok(own_error) => self.own_error = Some(own_error),
            Err(words) => {
                say(&format!("warning: {words}"));
                self.notices.push(words);
            }
        }
        Ok(())
    }
}

/// Whether requests may be sent before `t0`. The simulated server counts words, so there is no need;
/// and without usage nothing would be learnt.
fn may_probe(args: &RunArgs, server: &Server) -> bool {
    !server.is_simulated() && !args.target.no_usage && args.reach.may_probe()
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
