//! What the summary warns of: lengths other than asked for, a cache that was warm, a client that was
//! late.
//!
//! Deliberately absent: colour, and warnings that a run gives while it lasts.

use super::RunFacts;
use crate::metrics::{AskedGot, MEASURED, Percentile, Summary, Tally};
use crate::record::Outcome;
use crate::report::words::{decimal, grouped, percent};

/// Asked and got may differ by this much before a warning.
const LENGTH_DIFFERENCE: f64 = 0.02;
/// A p99 lag above this is warned of.
const LAG_WARNING_MS: f64 = 5.0;

/// What the figures of a run should not be read without, one sentence each.
pub(super) fn warnings(summary: &Summary, facts: &RunFacts) -> Vec<String> {
    let mut warnings = Vec::new();
    let measured = &summary.measured;
    warnings.extend(output_warning(measured.ok_output, measured.ok_by_tokenizer > 0));
    warnings.extend(input_warning(measured.ok_input, facts.input_remedy.as_deref()));
    warnings.extend(cache_warning(&summary.all, facts.cache_unasked_tok));
    if facts.client.is_some() {
        // The verdict on the client says it, and knows what was meant to wait.
        return warnings;
    }
    if let Some(lag) = summary.line("lag_ms", MEASURED)
        && let Some(ms) = lag.percentile(Percentile::P99).or(lag.max)
        && ms > LAG_WARNING_MS
    {
        let which = if lag.percentile(Percentile::P99).is_some() { "p99" } else { "max" };
        let ms = decimal(ms);
        warnings.push(format!("requests left late: lag {which} {ms} ms is this client's own"));
    }
    let unsent = summary.all.count(Outcome::Unsent);
    if unsent > 0 {
        let n = grouped(unsent);
        warnings.push(format!("{n} requests fell due and were never sent by this client"));
    }
    warnings
}

fn output_warning(lengths: AskedGot, by_tokenizer: bool) -> Option<String> {
    let difference = lengths.difference().filter(|d| d.abs() > LENGTH_DIFFERENCE)?;
    let (asked, got) = (grouped(lengths.asked_tok), grouped(lengths.got_tok));
    let by = percent(difference.abs());
    Some(if difference < 0.0 {
        format!(
            "answers are {by} shorter than asked for ({got} of {asked} tokens): the server stops by \
             itself; --ignore-eos asks it for the full length"
        )
    } else if by_tokenizer {
        format!(
            "answers are {by} longer than asked for by the --tokenizer ({got} tokens, {asked} asked): \
             is it this model's?"
        )
    } else {
        format!(
            "answers are {by} longer than asked for ({got} tokens, {asked} asked): the server does \
             not keep to the limit (see --max-tokens-key); --ignore-eos would not help"
        )
    })
}

fn input_warning(lengths: AskedGot, remedy: Option<&str>) -> Option<String> {
    let difference = lengths.difference().filter(|d| d.abs() > LENGTH_DIFFERENCE)?;
    let which = if difference < 0.0 { "shorter" } else { "longer" };
    let (asked, got) = (grouped(lengths.asked_tok), grouped(lengths.got_tok));
    let by = percent(difference.abs());
    let remedy = remedy.map_or_else(String::new, |remedy| format!(": {remedy}"));
    Some(format!(
        "prompts are {by} {which} than asked for, by the server's count ({got} tokens, {asked} asked){remedy}"
    ))
}

/// Tokens from the server's prefix cache that no row was meant to find there.
fn cache_warning(all: &Tally, each_tok: Option<u32>) -> Option<String> {
    let meant = u64::from(each_tok?) * all.input_counted;
    let unasked = all.cached_tok.saturating_sub(meant);
    let share = unasked as f64 / all.input_tok as f64;
    (share > LENGTH_DIFFERENCE).then(|| {
        format!(
            "{} prompt tokens ({}) came from the server's prefix cache, though no row asks for that: an \
             earlier run with the same prompts filled it; --salt run makes them new",
            grouped(unasked),
            percent(share)
        )
    })
}
