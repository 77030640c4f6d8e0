//! `underfire trace lint`: all faults of a trace, a line each.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::Exit;
use crate::cli::args::ReadArgs;
use crate::cli::console::print;
use crate::trace::lint;
use crate::trace::read::Input;

/// Arguments of `trace lint`.
#[derive(Debug, Args)]
pub(super) struct LintArgs {
    /// A trace file, a folder of sessions, or - for stdin
    source: PathBuf,
    #[command(flatten)]
    reading: ReadArgs,
    /// List at most N faults; all are counted
    #[arg(long, value_name = "N", default_value_t = 100)]
    most: usize,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Carries out the command.
pub(super) fn lint(args: &LintArgs) -> anyhow::Result<Exit> {
    let is_stdin = args.source == Path::new("-");
    let input = if is_stdin { Input::Stdin } else { Input::File(args.source.clone()) };
    let found = lint::lint(&input, &args.reading.options(), args.most)?;
    let exit = if found.fault_count > 0 || found.rows == 0 { Exit::Usage } else { Exit::Ok };
    if args.json {
        print(&format!("{:#}\n", serde_json::to_value(&found)?));
        return Ok(exit);
    }
    let mut text = String::new();
    for fault in &found.faults {
        text.push_str(&fault.problem);
        text.push('\n');
    }
    let unlisted = found.fault_count - found.faults.len() as u64;
    if unlisted > 0 {
        let _ = writeln!(text, "… and {unlisted} more; --most lists them");
    }
    for (count, what) in [
        (found.moved_rows, "rows are earlier than a row before them; they are sorted by time"),
        (
            found.failed_rows,
            "rows are recorded with output 0; they are dropped, or kept by --failed keep",
        ),
        (found.natural_rows, "rows ask for no completion length; their answers end by themselves"),
        (found.empty_prompts, "rows have a prompt of 0 tokens; they are sent with 1"),
    ] {
        if count > 0 {
            let _ = writeln!(text, "note: {count} {what}");
        }
    }
    let faults = match found.fault_count {
        0 if found.rows == 0 => "no rows".to_owned(),
        0 => "no faults".to_owned(),
        count => format!("{count} faults"),
    };
    let _ = writeln!(text, "{} rows of a {} trace: {faults}", found.rows, found.format);
    print(&text);
    Ok(exit)
}
