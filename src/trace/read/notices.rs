//! What a person should know about a trace before it is replayed, a line each.
//!
//! Nothing is changed, dropped or doubted without one of these. They are words only: the numbers behind
//! them are in [`Facts`].

use super::facts::{Facts, TraceClock};
use super::formats::Format;
use super::options::{Failed, ReadOptions};
use super::rows::Tally;
use super::scan::Scan;
use super::unit_question::question;
use crate::units::{NS_PER_MS, NS_PER_S, Nanos};

/// Names listed in one line.
const NAMES_SHOWN: usize = 8;
const YEAR: Nanos = Nanos(365 * 86_400 * NS_PER_S);

/// All there is to say after the validating pass.
pub(super) fn of_scan(scan: &Scan, format: Format, options: &ReadOptions) -> Vec<String> {
    let facts = &scan.facts;
    let mut notices = of_options(format, options);
    notices.extend(of_ignored(&scan.ignored, format));
    if facts.rows_moved > 0 {
        notices.push(format!(
            "{} of {} rows are earlier than a row before them; rows are sorted by time, those of equal \
             time stay in the order of the file",
            facts.rows_moved, facts.rows_kept
        ));
    }
    let tally = Tally {
        rows_read: facts.rows_read,
        rows_failed: facts.rows_failed,
        rows_natural: facts.output.natural_rows,
        rows_raised: facts.rows_raised,
        first_raised_line: scan.first_raised_line,
    };
    notices.extend(of_tally(&tally, options.failed));
    // One of the two lines that a request leaves in SGLang's log is none by itself.
    if format != Format::SgLang {
        notices.extend(of_skipped(facts.rows_skipped, facts.rows_read));
    }
    notices.extend_from_slice(&scan.remarks);
    // What times of another clock come to is for whoever gives them one to say.
    if facts.clock == TraceClock::Common {
        notices.extend(of_times(facts, format));
        // Who named the unit has settled it, and in a replay file only sessions have times.
        let unit = format.unit().filter(|_| options.time_unit.is_none() && has_row_times(format));
        notices.extend(unit.and_then(|unit| question(facts, format, unit)));
    }
    notices
}

/// Entries that are no request.
pub(super) fn of_skipped(skipped: u64, read: u64) -> Option<String> {
    (skipped > 0).then(|| {
        format!("{skipped} of {read} entries are no request that generates text, and are left out")
    })
}

/// What became of rows. Also said after a pass over a stream, where it cannot be known before.
pub(super) fn of_tally(tally: &Tally, failed: Failed) -> Vec<String> {
    let mut notices = Vec::new();
    if tally.rows_failed > 0 {
        let fate = match failed {
            Failed::Drop => "were dropped; `--failed keep` sends them, each asking for 1 token",
            Failed::Keep => "are kept, each asking for 1 token",
        };
        notices.push(format!(
            "{} of {} rows are recorded with output 0 (failed requests) and {fate}",
            tally.rows_failed, tally.rows_read
        ));
    }
    if tally.rows_natural > 0 {
        notices.push(format!(
            "{} of {} rows have no `output_tok`: no length is asked for, and their answers end by themselves",
            tally.rows_natural, tally.rows_read
        ));
    }
    if tally.rows_raised > 0 {
        notices.push(format!(
            "{} of {} rows have a prompt of 0 tokens, the first on line {}; they are sent with 1, since an \
             empty prompt crashes some servers",
            tally.rows_raised, tally.rows_read, tally.first_raised_line
        ));
    }
    notices
}

/// Columns or keys that are not replayed.
pub(super) fn of_ignored(ignored: &[String], format: Format) -> Vec<String> {
    let mut notices = Vec::new();
    if ignored.iter().any(|name| name == "NumImages" && format == Format::Azure) {
        notices.push("column `NumImages` is ignored: images are not replayed".to_owned());
    }
    let unknown: Vec<_> = ignored
        .iter()
        .filter(|name| *name != "NumImages" || format != Format::Azure)
        .map(|name| format!("`{name}`"))
        .collect();
    if !unknown.is_empty() {
        let more = unknown.len().saturating_sub(NAMES_SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let shown = unknown[..unknown.len().min(NAMES_SHOWN)].join(", ");
        notices.push(format!("columns unknown to the {format} format are ignored: {shown}{more}"));
    }
    notices
}

/// Options that say nothing about this format.
pub(super) fn of_options(format: Format, options: &ReadOptions) -> Vec<String> {
    let mut notices = Vec::new();
    if options.time_unit.is_some() && format.unit().is_none() {
        notices.push(format!("`--time-unit` is ignored: {format} rows hold dates"));
    }
    if options.block_tok.is_some() && !format.definition().has_blocks {
        notices.push(format!("`--block-tok` is ignored: {format} rows hold no blocks"));
    }
    notices
}

/// Whether every row has a time of its own; in a replay file only sessions do.
fn has_row_times(format: Format) -> bool {
    format != Format::TraceLabReplay
}

/// Times that were rounded, or read in the wrong unit, or from the wrong zero.
fn of_times(facts: &Facts, format: Format) -> Vec<String> {
    let mut notices = Vec::new();
    if has_row_times(format) && facts.rows_kept > 1 && facts.distinct_times * 2 < facts.rows_kept {
        notices.push(format!(
            "time stamps are quantised: {} rows have {} distinct times, and rows of one time are sent at \
             once, as recorded; `--dequantise uniform` spreads them",
            facts.rows_kept, facts.distinct_times
        ));
    }
    let remedy = match format.unit() {
        None => "check the dates",
        Some(_) => "check the unit of its times and name it with `--time-unit s|ms|us|ns`",
    };
    let length = facts.last.since(facts.first);
    if facts.distinct_times > 1 && length < Nanos(NS_PER_MS) {
        notices.push(format!(
            "WARNING: the whole trace lasts {} ms; {remedy}",
            length.0 as f64 / NS_PER_MS as f64
        ));
    }
    if length > Nanos(40 * YEAR.0) {
        notices.push(format!("WARNING: the trace lasts {} years; {remedy}", length.0 / YEAR.0));
    }
    if format == Format::Native && facts.first > Nanos(10 * YEAR.0) {
        notices.push(format!(
            "WARNING: the first row comes {} years after trace time 0; at_s counts from the start of the \
             trace, not from 1970: subtract the first time, or name the start with `--from`",
            facts.first.0 / YEAR.0
        ));
    }
    notices
}
