//! `underfire run`: a source, a server, a run folder.

use std::io::IsTerminal;

use anyhow::Context;
use tokio::sync::watch;

use super::args::RunArgs;
use super::console::{complain, print, print_page, say, say_page, summary_page};
use super::progress::Console;
use super::{Exit, fidelity, signals};
use crate::metrics::Summary;
use crate::replay::drain::Stop;
use crate::report;
use crate::run::{Report, Run, RunError};

/// Carries out the command.
pub(super) fn run(args: &RunArgs, quit: fn(Exit) -> !) -> anyhow::Result<Exit> {
    let mut console = Console::new(args.output.quiet);
    let planned = Run::plan(args.settings()?, &mut console)?;
    if args.output.dry_run {
        let plan = planned.plan()?;
        planned.write_plan()?;
        print(&planned.traffic.describe(plan));
        if let Some(figures) = planned.traffic.planned() {
            print(&fidelity::table(figures, None));
        }
        return Ok(Exit::Ok);
    }
    let prepared = match planned.reach(&mut console) {
        Err(error) if error.is_unreachable() => {
            complain(&error.into());
            return Ok(Exit::NothingSucceeded);
        }
        prepared => prepared?,
    };
    let (stop, _) = watch::channel(Stop::No);
    signals::stop_on_signals(&stop, quit).context("cannot watch for signals")?;
    let report = match prepared.drive(&mut console, &stop) {
        Err(RunError::Interrupted) => return Ok(Exit::Interrupted),
        report => report?,
    };
    show(args, &report);
    finish(args, report)
}

/// How to exit. What went wrong comes after what was measured.
fn finish(args: &RunArgs, report: Report) -> anyhow::Result<Exit> {
    let ok = report.ok();
    if let Some(error) = report.broken {
        return Err(error.into());
    }
    if let Some(error) = report.unwritten {
        if !report.interrupted {
            return Err(error.into());
        }
        complain(&error.into());
    }
    Ok(match ok {
        _ if report.interrupted => Exit::Interrupted,
        0 => Exit::NothingSucceeded,
        _ if args.judgement.strict && report.client.is_limited() => Exit::CannotAnswer,
        _ if report.aborted => Exit::Stopped,
        _ => Exit::Ok,
    })
}

/// The summary for people; with `--json` that goes to stderr, and the data to stdout.
fn show(args: &RunArgs, report: &Report) {
    let Report { summary, facts, .. } = report;
    let no_color = std::env::var_os("NO_COLOR").is_some();
    if args.output.json {
        print(&format!("{:#}\n", report::summary_json(summary, facts)));
    }
    match (args.output.quiet, args.output.json) {
        (true, _) => {
            if report.client.is_limited() {
                say(&format!("warning: the client was {}", report.client));
            }
            if let Some(warning) = failures(summary) {
                say(&warning);
            }
            return;
        }
        (false, true) => {
            let color = std::io::stderr().is_terminal() && !no_color;
            say_page(summary_page(summary, facts, color).trim_end());
        }
        (false, false) => {
            let color = std::io::stdout().is_terminal() && !no_color;
            print_page(&summary_page(summary, facts, color));
        }
    }
    if let Some(planned) = &report.planned {
        say(fidelity::table(planned, report.sent.as_ref()).trim_end());
    }
}

/// One line about the rows that failed, for a run that is otherwise quiet.
fn failures(summary: &Summary) -> Option<String> {
    let all = &summary.all;
    let kinds: Vec<String> = all
        .outcomes
        .iter()
        .filter(|(outcome, _)| outcome.is_error())
        .map(|(outcome, n)| match all.first_errors.get(outcome) {
            Some(error) => format!("{n} {outcome} ({error})"),
            None => format!("{n} {outcome}"),
        })
        .collect();
    let (errors, rows) = (all.errors(), all.rows());
    (errors > 0)
        .then(|| format!("warning: {errors} of {rows} requests failed: {}", kinds.join(", ")))
}
