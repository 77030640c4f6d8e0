//! What the summary warns of: lengths other than asked for, a cache that was warm, a window that is too
//! short for rates or has no length, a client that was late.
//!
//! Deliberately absent: colour, and warnings that a run gives while it lasts.

use super::RunFacts;
use crate::metrics::health::{ClientVerdict, HealthFacts};
use crate::metrics::{AskedGot, MEASURED, Percentile, Summary, Tally};
use crate::report::number_format::{decimal, grouped, percent, span};

/// Asked and got may differ by this much before a warning.
const LENGTH_DIFFERENCE: f64 = 0.02;
/// A window that holds fewer answers than this, one after the other, is short: without a warm-up about one
/// in so many of those that fell due in it ends after it.
const ANSWERS_PER_WINDOW: f64 = 5.0;

/// What the figures of a run should not be read without, one sentence each.
pub(super) fn warnings(summary: &Summary, facts: &RunFacts) -> Vec<String> {
    let mut warnings = Vec::new();
    let measured = &summary.measured;
    warnings.extend(output_warning(measured.ok_output, measured.ok_by_tokenizer > 0));
    warnings.extend(input_warning(measured.ok_input, facts.input_remedy.as_deref()));
    warnings.extend(cache_warning(&summary.all, facts.cache_unasked_tok));
    warnings.extend(short_window(summary));
    if facts.client.is_none() {
        // Where a run left no verdict of its own. Whether rows were held back on purpose is not known.
        let known = HealthFacts { stopped: facts.interrupted, ..HealthFacts::default() };
        let verdict = ClientVerdict::of(summary, known);
        let reasons = verdict.limited.into_iter().chain(verdict.warnings);
        warnings.extend(reasons.map(|reason| format!("{reason}: this client's own doing")));
    }
    warnings
}

/// Why there is no rate where rows fell due: nothing lies between the first and the last of them.
pub(super) fn no_window(summary: &Summary) -> Option<String> {
    if summary.window().is_some() || summary.all.due() == 0 {
        return None;
    }
    Some(match summary.measured.due() {
        0 => format!(
            "the warm-up of {} took all requests, so nothing was measured: a shorter --warmup or more rows \
             leave something",
            span(summary.warmup)
        ),
        1 => "a single request makes no window, so there are no rates in it".to_owned(),
        n => format!(
            "all {} measured requests were due at one instant, so the window has no length and there are no \
             rates in it: a closed loop sends as many rows at once as it has slots; give it more rows \
             (--limit, --repeat) or fewer slots (--concurrency)",
            grouped(n)
        ),
    })
}

/// What was under way when the window began and ended counts for much where it holds few answers after
/// one another: less ends inside it than falls due, as if the server could not keep up.
fn short_window(summary: &Summary) -> Option<String> {
    let window = summary.window()?;
    let e2e = summary.line("e2e_ms", MEASURED)?;
    let (ms, which) = match e2e.percentile(Percentile::P50) {
        Some(ms) => (ms, "p50"),
        None => (e2e.mean?, "mean"),
    };
    // A warm-up of an answer's length has filled the server before anything counts.
    let is_filled = summary.warmup.as_millis_f64() >= ms;
    if is_filled || ms * ANSWERS_PER_WINDOW <= window.as_millis_f64() {
        return None;
    }
    Some(format!(
        "the measured window of {} is short beside an answer (E2E {which} {} ms): completed req/s and tok/s in \
         the window leave out much of what was under way at its ends, and look like saturation where there \
         may be none; measure longer (--duration, --limit or --repeat), after a --warmup of an answer's \
         length",
        span(window),
        decimal(ms),
    ))
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
