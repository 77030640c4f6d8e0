//! Whether times were read in the right unit: what the rows themselves say against it, and the question
//! that is asked then.
//!
//! Only strong evidence counts, since a rare trace may be right all the same; so nothing is refused, and
//! who names the unit is asked no more. Deliberately absent: a guess. No time is ever read in another unit
//! than the format's or the one that was named.

use super::facts::Facts;
use super::formats::Format;
use super::number::TimeUnit;
use crate::units::{NS_PER_MS, NS_PER_S};

/// Rows from which on a rate says something.
const LEAST_ROWS: u64 = 100;
/// The same where rows are a long time apart.
const LEAST_RARE_ROWS: u64 = 20;
/// The busiest public traces have some 100 requests a second.
const MOST_ROWS_S: f64 = 2_000.0;
/// And some 100,000 tokens, prompts included.
const MOST_TOK_S: f64 = 2e6;
/// Share of all possible times that rows stand at; of milliseconds, public traces fill 1% at the most.
const MOST_FILLED: f64 = 0.2;
/// Mean gap that nobody records a trace of.
const LONGEST_GAP_S: f64 = 3_600.0;
/// Mean gap at which whole seconds are odd in a format that writes fractions.
const LONG_GAP_S: f64 = 10.0;

/// The question whether times are in another unit, where they are bare numbers read in `unit`.
pub(super) fn question(facts: &Facts, format: Format, unit: TimeUnit) -> Option<String> {
    let rows = facts.rows_kept;
    let span_s = facts.last.since(facts.first).as_secs_f64();
    if span_s <= 0.0 || rows < LEAST_RARE_ROWS {
        return None;
    }
    let (unit_ns, word, coarser, finer) = match unit {
        TimeUnit::S => (NS_PER_S, "s", None, Some("ms")),
        TimeUnit::Ms => (NS_PER_MS, "ms", Some("s"), Some("us")),
        TimeUnit::Us => (1_000, "us", Some("ms"), Some("ns")),
        TimeUnit::Ns => (1, "ns", Some("us"), None),
    };
    let evidence = |found: Option<String>, instead: Option<&str>| {
        found.zip(instead).map(|(found, instead)| {
            format!(
                "WARNING: {found}: are its times in {instead}? They are read in {word}; `--time-unit {word}` \
                 or `--time-unit {instead}` settles it"
            )
        })
    };
    let fast = too_fast(facts, span_s, unit_ns);
    evidence(fast, coarser).or_else(|| evidence(too_slow(facts, format, span_s, unit_ns), finer))
}

/// What says that times are in a coarser unit: more traffic than anybody has.
fn too_fast(facts: &Facts, span_s: f64, unit_ns: u64) -> Option<String> {
    let rows = facts.rows_kept;
    if rows < LEAST_ROWS {
        return None;
    }
    let rows_s = rows as f64 / span_s;
    let tok_s = facts.input_tok.saturating_add(facts.output.limited_tok) as f64 / span_s;
    let is_whole = facts.time_step.0.is_multiple_of(unit_ns);
    let possible = span_s * (NS_PER_S / unit_ns) as f64 + 1.0;
    let filled = facts.distinct_times as f64 / possible;
    if rows_s > MOST_ROWS_S {
        return Some(format!("{rows} rows in {span_s:.3} s are {rows_s:.0} requests a second"));
    }
    if tok_s > MOST_TOK_S {
        return Some(format!("{rows} rows in {span_s:.3} s have {tok_s:.0} tokens a second"));
    }
    (is_whole && facts.distinct_times >= LEAST_ROWS && filled > MOST_FILLED).then(|| {
        format!(
            "{:.0}% of the whole numbers from the first to the last are times of rows",
            filled * 100.0
        )
    })
}

/// What says that times are in a finer unit: gaps of hours, or times that end in three zeros.
fn too_slow(facts: &Facts, format: Format, span_s: f64, unit_ns: u64) -> Option<String> {
    let (rows, times) = (facts.rows_kept, facts.distinct_times);
    let gap_s = span_s / rows as f64;
    if gap_s > LONGEST_GAP_S {
        return Some(format!("{rows} rows are {:.1} hours apart in the mean", gap_s / 3_600.0));
    }
    let step_ns = facts.time_step.0;
    if times >= LEAST_RARE_ROWS && step_ns > 0 && step_ns.is_multiple_of(unit_ns * 1_000) {
        return Some("all gaps are multiples of 1000".to_owned());
    }
    // The others name the unit beside their times, or write whole seconds anyway.
    let has_fractions = matches!(format, Format::TimedTrace | Format::Bailian);
    let is_whole = step_ns.is_multiple_of(unit_ns);
    (has_fractions && is_whole && times >= LEAST_ROWS && gap_s > LONG_GAP_S)
        .then(|| format!("all times are whole numbers, and rows {gap_s:.0} s apart in the mean"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::OutputSum;
    use crate::units::Nanos;

    fn facts(rows: u64, span: Nanos, step: Nanos, tok: u64) -> Facts {
        Facts {
            rows_kept: rows,
            last: span,
            distinct_times: rows,
            time_step: step,
            input_tok: rows * tok,
            output: OutputSum { limited_tok: 0, natural_rows: rows },
            ..Facts::default()
        }
    }

    #[test]
    fn strong_evidence_is_asked_about_with_the_option_that_settles_it() {
        let (s, ms) = (Nanos(NS_PER_S), Nanos(NS_PER_MS));
        let check = |facts: Facts, format, unit, part: &str, instead: &str| {
            let asked = question(&facts, format, unit).unwrap_or_default();
            assert_eq!(asked.is_empty(), part.is_empty(), "{asked}");
            assert!(asked.contains(part), "{asked}");
            assert_eq!(asked.contains(&format!("`--time-unit {instead}`")), !instead.is_empty());
        };
        let (mooncake, native) = (Format::Mooncake, Format::Native);
        // An hour in seconds, read as milliseconds; and the same trace read right.
        let hour = |rows| facts(rows, Nanos(3_600 * NS_PER_MS), ms, 1_000);
        check(hour(12_000), mooncake, TimeUnit::Ms, "3333 requests a second", "s");
        let fine = |tok| facts(7_200, Nanos(3_600 * NS_PER_MS), Nanos(1), tok);
        check(fine(1_000), mooncake, TimeUnit::Ms, "", "");
        check(fine(1_001), mooncake, TimeUnit::Ms, "2002000 tokens a second", "s");
        check(facts(1_200, Nanos(3_600 * NS_PER_MS), ms, 9), mooncake, TimeUnit::Ms, "33%", "s");
        check(facts(1_200, Nanos(3_600 * NS_PER_MS), Nanos(1), 9), mooncake, TimeUnit::Ms, "", "");
        check(facts(12_000, Nanos(3_600 * NS_PER_S), ms, 9_000), mooncake, TimeUnit::Ms, "", "");
        // Nothing is coarser than seconds.
        check(hour(12_000), native, TimeUnit::S, "", "");
        // Milliseconds read as seconds: rounded ones, and rare ones.
        let long = Nanos(11_000 * NS_PER_S);
        check(facts(500, long, Nanos(3_000 * NS_PER_S), 9), native, TimeUnit::S, "1000", "ms");
        check(facts(500, long, Nanos(300 * NS_PER_S), 9), native, TimeUnit::S, "", "");
        check(facts(500, long, s, 9), Format::TimedTrace, TimeUnit::S, "whole numbers", "ms");
        check(facts(500, long, s, 9), Format::BurstGpt, TimeUnit::S, "", "");
        check(facts(500, long, ms, 9), Format::TimedTrace, TimeUnit::S, "", "");
        let days = Nanos(41 * 86_400 * NS_PER_S);
        check(facts(20, days, s, 9), native, TimeUnit::S, "hours apart", "ms");
        check(facts(19, days, s, 9), native, TimeUnit::S, "", "");
    }
}
