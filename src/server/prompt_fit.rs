//! Before `t0`: how this server counts prompts, so that every row has the length that it asks for.
//!
//! A few small requests that are no rows: the server's tokenizer is asked which words are one token
//! each, where it has one, and three prompts of different lengths show what is added to them. What was
//! found is said, and how many requests it took. Deliberately absent: any of this for a server that
//! must not be probed, and for prompts that are given.

use std::rc::Rc;

use bytes::Bytes;
use tokio::task::LocalSet;

use super::error::ServerError;
use crate::client::dialect::Api;
use crate::client::{AttemptControl, Client, Dial, Settings, Timeouts};
use crate::clock::Clock;
use crate::prompt::tokenized::{self, Before};
use crate::prompt::tokenizer::Tokenizer;
use crate::prompt::{CANDIDATES, COMMON_IDS, Fit, Prompter, SLOTS, Vocabulary};
use crate::record::{Outcome, StreamRecord};
use crate::replay::Setup;
use crate::replay::job::BodyMaker;
use crate::server::tokenize::tokenize;
use crate::units::Nanos;

/// Lengths of the three prompts, in pieces.
const LENGTHS: [u32; 3] = [4, 16, 64];
/// A prompt of 64 pieces is answered within this time or the prompts are not fitted to the server.
const LIMIT: Nanos = Nanos::from_secs(30);
/// Words that are tried together where there is no tokenizer to ask.
const GROUP: usize = 8;
/// Lengths of the two prompts of a group, in pieces: the longer has every word of it, and more than once.
const GROUP_LENGTHS: [u32; 2] = [8, 72];

/// A request of `--prime`: pieces of its prompt, tokens of its answer.
const PRIME_INPUT: u32 = 128;
const PRIME_OUTPUT_TOK: u32 = 16;
/// Their prompts are those of no probe.
const PRIME_FIRST_ID: u64 = 1 << 32;
/// A server that is cold may take this long, unless `--timeout` says otherwise.
const PRIME_LIMIT: Nanos = Nanos::from_secs(300);

/// What was found, and what it took.
#[derive(Debug)]
pub struct Fitted {
    /// What prompts are to be drawn from; `None` where the server does not count.
    pub vocabulary: Option<Vocabulary>,
    /// One sentence.
    pub words: String,
}

/// Asks the server of a run. That nothing was found is a sentence too; the common words are used then.
pub fn fit_prompts(
    setup: &Setup,
    tokenize_path: &str,
    tokenizer: Option<&Tokenizer>,
) -> Result<Fitted, ServerError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    LocalSet::new().block_on(&runtime, async {
        let client = client(setup, Timeouts { total: Some(LIMIT), ..Timeouts::default() })?;
        let bodies = &setup.bodies;
        let mut probes =
            Probes { client, bodies, tokenizer, posts: 0, questions: 0, failure: None };
        let vocabulary = probes.vocabulary(tokenize_path).await;
        let words = probes.words(vocabulary.as_ref());
        Ok(Fitted { vocabulary, words })
    })
}

/// A client of the first server for requests before `t0`, each of which ends within these limits.
fn client(setup: &Setup, timeouts: Timeouts) -> Result<Rc<Client>, ServerError> {
    let clock = Clock::real()?;
    let endpoint = setup.targets.first().expect("a run has a server");
    let settings = Settings { timeouts, ignore_eos: false, ..endpoint.settings.clone() };
    let t0 = clock.now();
    Ok(Client::new(Dial::route(&endpoint.route), clock, t0, settings))
}

/// The limits on a request of `--prime`: those of the run, and one on the whole in any case.
#[must_use]
pub fn prime_timeouts(setup: &Setup) -> Timeouts {
    let of_run = setup.targets.first().map(|endpoint| endpoint.settings.timeouts);
    let of_run = of_run.unwrap_or_default();
    Timeouts { total: of_run.total.or(Some(PRIME_LIMIT)), ..of_run }
}

/// Sends `count` requests at once, so that the server is warm, and waits for their ends; says what
/// became of them.
pub fn prime(setup: &Setup, count: u32) -> Result<String, ServerError> {
    let prompter = setup.bodies.prompter.clone();
    let maker = BodyMaker { prompter, ignore_eos: false, ..setup.bodies.clone() };
    let bodies: Result<Vec<Bytes>, _> = (0..u64::from(count))
        .map(|id| maker.probe(PRIME_FIRST_ID + id, PRIME_INPUT, PRIME_OUTPUT_TOK))
        .collect();
    let bodies = bodies?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let records = LocalSet::new().block_on(&runtime, async {
        let client = client(setup, prime_timeouts(setup))?;
        let sent = bodies.into_iter().map(|body| {
            let client = client.clone();
            async move {
                client.perform(StreamRecord::default(), body, &AttemptControl::default()).await
            }
        });
        Ok::<_, ServerError>(futures_util::future::join_all(sent).await)
    })?;
    let ok = records.iter().filter(|record| record.outcome == Outcome::Ok).count();
    let mut words = format!("{count} requests to prime the server, {ok} ok; in no result");
    if let Some(record) = records.iter().find(|record| record.outcome != Outcome::Ok) {
        let why = record.error.as_deref().unwrap_or("no reason");
        words = format!("{words}; the first other one: {}: {why}", record.outcome);
    }
    Ok(words)
}

/// The words that a tokenizer's file has one token for, unchecked by any server. What a chat template
/// adds to them is not in the file.
pub fn words_of_file(tokenizer: &Tokenizer) -> Option<Vocabulary> {
    let [later, first] =
        [Before::Space, Before::Break].map(|before| single_words(tokenizer, before));
    holding_words(&later, &first)
}

fn single_words(tokenizer: &Tokenizer, before: Before) -> Vec<(&'static str, u32)> {
    let tokens = tokenizer.ids(&tokenized::question(before));
    tokenized::single_words(&tokens.unwrap_or_default(), before)
}

/// Words that are one token each behind a space; those that are so both ways come first.
fn holding_words(
    later: &[(&'static str, u32)],
    first: &[(&'static str, u32)],
) -> Option<Vocabulary> {
    let names =
        |words: &[(&'static str, u32)]| words.iter().map(|(word, _)| *word).collect::<Vec<_>>();
    let (later, first) = (names(later), names(first));
    let first: Vec<_> = first.into_iter().filter(|word| later.contains(word)).collect();
    Vocabulary::of_words(&later, &first)
}

struct Probes<'a> {
    client: Rc<Client>,
    bodies: &'a BodyMaker,
    /// The model's own, asked instead of the server's.
    tokenizer: Option<&'a Tokenizer>,
    /// Requests for a completion.
    posts: u32,
    /// Requests to the tokenizer.
    questions: u32,
    /// Why the last one had no count.
    failure: Option<String>,
}

impl Probes<'_> {
    /// What this server's prompts can be drawn from, and how it counts them; `None`: it does not count.
    async fn vocabulary(&mut self, tokenize_path: &str) -> Option<Vocabulary> {
        let later = self.single_words(tokenize_path, Before::Space).await;
        let first = if later.is_empty() {
            Vec::new()
        } else {
            self.single_words(tokenize_path, Before::Break).await
        };
        if self.bodies.api == Api::Completions
            && let Some(vocabulary) = self.ids(&later).await
        {
            return Some(vocabulary);
        }
        let asked = holding_words(&later, &first);
        let is_asked = asked.is_some();
        // Nobody knows of the common words: the first is always the same, so that the overhead absorbs it.
        let common = Vocabulary::of_words(&CANDIDATES[..SLOTS], &[])?;
        let vocabulary = self.fitted(asked.unwrap_or(common)).await?;
        if vocabulary.fit.is_exact() || is_asked {
            return Some(vocabulary);
        }
        Some(self.in_groups().await.unwrap_or(vocabulary))
    }

    async fn single_words(&mut self, path: &str, before: Before) -> Vec<(&'static str, u32)> {
        if let Some(tokenizer) = self.tokenizer {
            return single_words(tokenizer, before);
        }
        self.questions += 1;
        let question = tokenized::question(before);
        let model = self.bodies.models.first().and_then(Option::as_deref);
        let tokens = tokenize(&self.client, path, model, &question).await;
        tokenized::single_words(&tokens.unwrap_or_default(), before)
    }

    /// Token ids, where the server takes them and counts each as one.
    async fn ids(&mut self, known: &[(&'static str, u32)]) -> Option<Vocabulary> {
        let known: Vec<u32> = known.iter().map(|(_, id)| *id).collect();
        let common: Vec<u32> = COMMON_IDS.collect();
        let vocabulary = Vocabulary::ids(&known).or_else(|| Vocabulary::ids(&common))?;
        self.fitted(vocabulary).await.filter(|vocabulary| vocabulary.fit.is_exact())
    }

    /// The line through three counts.
    async fn fitted(&mut self, vocabulary: Vocabulary) -> Option<Vocabulary> {
        let mut points = Vec::new();
        for length in LENGTHS {
            points.push((length, self.count(&vocabulary, length).await?));
        }
        let fit = Fit::through(&points);
        if fit.is_none() {
            self.failure = Some(format!("its counts are {points:?} for (pieces, tokens)"));
        }
        Some(vocabulary.fitted(fit?))
    }

    /// The groups of common words that are one token each, told by what each adds to a prompt; `None`
    /// where they are too few or do not hold together.
    async fn in_groups(&mut self) -> Option<Vocabulary> {
        let mut hold: Vec<&'static str> = Vec::new();
        for group in CANDIDATES[..SLOTS].chunks_exact(GROUP) {
            // Slot after slot the same few words; what they add per word must be one.
            let few = group.repeat(2);
            let vocabulary = Vocabulary::of_words(&few, &[])?;
            let low = self.count(&vocabulary, GROUP_LENGTHS[0]).await?;
            let high = self.count(&vocabulary, GROUP_LENGTHS[1]).await?;
            let added = GROUP_LENGTHS[1] - GROUP_LENGTHS[0];
            if high.checked_sub(low) == Some(u64::from(added)) {
                hold.extend_from_slice(group);
            }
        }
        let vocabulary = self.fitted(Vocabulary::of_words(&hold, &[])?).await?;
        vocabulary.fit.is_exact().then_some(vocabulary)
    }

    /// The server's count of a prompt of so many pieces.
    async fn count(&mut self, vocabulary: &Vocabulary, pieces: u32) -> Option<u64> {
        // A salt of its own: no row may find its beginning in the cache.
        let prompter = Prompter::new(0, "probe").with_vocabulary(vocabulary.clone());
        let maker = BodyMaker { prompter, ignore_eos: false, ..self.bodies.clone() };
        let body: Bytes = match maker.probe(u64::from(pieces), pieces, 1) {
            Ok(body) => body,
            Err(fault) => {
                self.failure = Some(fault.to_string());
                return None;
            }
        };
        self.posts += 1;
        let record =
            self.client.perform(StreamRecord::default(), body, &AttemptControl::default()).await;
        let counted = record.usage.and_then(|usage| usage.input_tok);
        self.failure = match (counted, record.outcome) {
            (Some(_), _) => None,
            (None, Outcome::Ok) => Some("it tells no usage".to_owned()),
            (None, outcome) => {
                Some(format!("{outcome}: {}", record.error.as_deref().unwrap_or("no reason")))
            }
        };
        counted
    }

    fn words(&self, vocabulary: Option<&Vocabulary>) -> String {
        let asked = match self.questions {
            0 => String::new(),
            n => format!(" and {n} to /tokenize"),
        };
        let file = self.tokenizer.map(Tokenizer::name);
        let by_file = file.map_or_else(String::new, |file| format!("; words by {file}"));
        let took = format!("{} requests{asked} before t0, not in the results{by_file}", self.posts);
        let Some(vocabulary) = vocabulary else {
            let why = self.failure.as_deref().unwrap_or("it does not count");
            return format!(
                "prompt lengths are not calibrated ({took}): the server's answer to a probe: {why}"
            );
        };
        let Fit { overhead_tok, rise, run } = vocabulary.fit;
        let what = if vocabulary.is_ids() { "token ids" } else { "words of one token" };
        if vocabulary.fit.is_exact() {
            format!(
                "prompts are {what}, {overhead_tok} tokens of each are the server's own ({took})"
            )
        } else {
            let no_words = match file {
                Some(_) => "its words of one token are not so here (is it this model's?)",
                None => "no words are one token each here",
            };
            format!(
                "prompt lengths are approximate ({took}): {no_words}; {run} words \
                 are {rise} tokens, and {overhead_tok} tokens of each prompt are the server's own"
            )
        }
    }
}
