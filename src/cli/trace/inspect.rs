//! `underfire trace inspect`: what a trace is like, in words, a picture, or JSON.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::picture;
use crate::cli::Exit;
use crate::cli::args::{ReadArgs, ShapeArgs};
use crate::cli::console::{print, say};
use crate::cli::fidelity::shown;
use crate::client::dialect::Api;
use crate::report::NONE;
use crate::run::Traffic;
use crate::trace::read::{Trace, TraceClock};
use crate::trace::stats::{
    ArrivalFigures, LengthFigures, ReuseFigures, SessionFigures, Stats, TraceFigures,
};

/// Arguments of `trace inspect`.
#[derive(Debug, Args)]
#[command(mut_arg("concurrency", |arg| arg.hide(true)), mut_arg("max_in_flight", |arg| arg.hide(true)),
          mut_arg("salt", |arg| arg.hide(true)))]
pub(super) struct InspectArgs {
    /// A trace file, a folder of sessions, a workload, or - for stdin
    source: PathBuf,
    #[command(flatten)]
    reading: ReadArgs,
    #[command(flatten)]
    shape: ShapeArgs,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Carries out the command.
pub(super) fn inspect(args: &InspectArgs) -> anyhow::Result<Exit> {
    let traffic = Traffic::open_with(
        &args.source,
        &args.reading.options(),
        &args.shape.settings(),
        Api::Chat,
        false,
    )?;
    let mut stats = Stats::default();
    for row in traffic.shaped_rows()? {
        stats.add(&row?);
    }
    let (figures, shapes) = stats.finish();
    anyhow::ensure!(
        figures.rows > 0,
        "no rows are left of {}\nhint: look at --from, --to and --limit",
        traffic.name()
    );
    let notices = [traffic.notices(), &traffic.late_notices()].concat();
    if args.json {
        let facts = traffic.trace().and_then(Trace::facts);
        let found = json!({
            "format": traffic.trace().map(|trace| trace.format().to_string()),
            "rows_read": facts.map(|facts| facts.rows_read),
            "rows_failed": facts.map(|facts| facts.rows_failed),
            "rows_skipped": facts.map(|facts| facts.rows_skipped),
            "rows_moved": facts.map(|facts| facts.rows_moved),
            "figures": figures,
            "notices": notices,
        });
        print(&format!("{found:#}\n"));
        return Ok(Exit::Ok);
    }
    let mut text = words(&traffic, &figures);
    if traffic.has_times() {
        text.push('\n');
        text.push_str(&picture::rate(&shapes.arrivals));
    }
    for (name, lengths) in
        [("prompt tokens", &shapes.input_tok), ("completion tokens", &shapes.output_tok)]
    {
        text.push('\n');
        text.push_str(&picture::lengths(name, lengths));
    }
    for notice in notices {
        say(&format!("note: {notice}"));
    }
    print(&text);
    Ok(Exit::Ok)
}

fn words(traffic: &Traffic, figures: &TraceFigures) -> String {
    let mut text = format!("{}: {} rows", traffic.describe_source(), figures.rows);
    if let Some(facts) = traffic.trace().and_then(Trace::facts) {
        let left_out = facts.rows_read - figures.rows.min(facts.rows_read);
        let _ = write!(text, " of {} ({left_out} left out)", facts.rows_read);
    }
    if figures.natural_rows > 0 {
        let _ = write!(text, ", {} with no completion length", figures.natural_rows);
    }
    if figures.worded_rows > 0 {
        let _ = write!(text, ", {} with words of their own", figures.worded_rows);
    }
    text.push('\n');
    match traffic.trace().map(Trace::clock) {
        _ if traffic.has_times() => arrivals(&mut text, &figures.arrivals),
        Some(TraceClock::PerSession) => {
            text.push_str("arrivals    each session from its own start\n");
        }
        _ => text.push_str("arrivals    no times\n"),
    }
    lengths(&mut text, "prompt", figures.input_tok.as_ref());
    lengths(&mut text, "completion", figures.output_tok.as_ref());
    if let Some(found) = &figures.correlation {
        let _ = writeln!(
            text,
            "prompt and completion: correlation of ranks {}, of lengths {}",
            shown(found.spearman),
            shown(found.pearson)
        );
    }
    if let Some(found) = &figures.sessions {
        sessions(&mut text, found);
    }
    if let Some(found) = &figures.reuse {
        reuse(&mut text, found);
    }
    text
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

fn arrivals(text: &mut String, found: &ArrivalFigures) {
    let _ = writeln!(
        text,
        "arrivals    {} s to {} s, {} requests/s",
        shown(found.first_s),
        shown(found.last_s),
        shown(found.rate)
    );
    let _ = writeln!(
        text,
        "  gaps      CV {}, p50 {} s, p99 {} s, longest {} s, {} under 1 ms",
        shown(found.gap_cv),
        shown(found.gap_p50_s),
        shown(found.gap_p99_s),
        shown(found.gap_max_s),
        found.gaps_under_1ms.map_or(NONE.to_owned(), percent)
    );
    for scale in &found.scales {
        let _ = writeln!(
            text,
            "  {:>2} s      dispersion {}, peak/mean {}, {} empty",
            scale.window_s,
            shown(scale.idc),
            shown(scale.peak_to_mean),
            scale.empty.map_or(NONE.to_owned(), percent)
        );
    }
    if found.quantised {
        let _ = writeln!(
            text,
            "  rounded   {} different times; --dequantise uniform spreads rows of one time",
            found.distinct_times
        );
    }
}

fn lengths(text: &mut String, name: &str, found: Option<&LengthFigures>) {
    let Some(found) = found else { return };
    let _ = writeln!(
        text,
        "{name:<11} tokens p1 {} p10 {} p25 {} p50 {} p75 {} p90 {} p95 {} p99 {} max {}, mean {:.1}, CV {}",
        found.p1,
        found.p10,
        found.p25,
        found.p50,
        found.p75,
        found.p90,
        found.p95,
        found.p99,
        found.max,
        found.mean,
        shown(found.cv)
    );
    if !found.atoms.is_empty() {
        let atoms =
            found.atoms.iter().map(|atom| format!("{} ({})", atom.tok, percent(atom.share)));
        let _ = writeln!(text, "  often     {}", atoms.collect::<Vec<_>>().join(", "));
    }
    if let Some(share) = found.at_cap {
        let _ = writeln!(
            text,
            "  cap       {} of rows at the longest, {} tokens, or within 0.1% of it",
            percent(share),
            found.max
        );
    }
}

fn sessions(text: &mut String, found: &SessionFigures) {
    let _ = writeln!(
        text,
        "sessions    {} of {} rows; turns mean {:.1}, p50 {}, p90 {}, p99 {}, most {}",
        found.sessions,
        found.rows,
        found.turns_mean,
        found.turns_p50,
        found.turns_p90,
        found.turns_p99,
        found.turns_max
    );
    for (name, pauses) in [("think", &found.think), ("between", &found.between)] {
        if let Some(own) = pauses {
            let _ = writeln!(
                text,
                "  {name:<9} p10 {:.3} s, p50 {:.3} s, p90 {:.3} s, p99 {:.3} s",
                own.p10_s, own.p50_s, own.p90_s, own.p99_s
            );
        }
    }
}

fn reuse(text: &mut String, found: &ReuseFigures) {
    let _ = writeln!(
        text,
        "prefixes    {} blocks, {} of them different; reused at most {} of blocks, {} of prompt tokens",
        found.blocks,
        found.distinct_blocks,
        percent(found.block_hit),
        percent(found.token_hit)
    );
    for cache in &found.caches {
        let _ = writeln!(
            text,
            "  {:>6} blocks held: {} of blocks, {} of prompt tokens",
            cache.blocks,
            percent(cache.block_hit),
            percent(cache.token_hit)
        );
    }
}
