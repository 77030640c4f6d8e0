//! `underfire trace generate`: the rows of a workload as a native trace.
//!
//! What a run of the workload would send is what a run of the trace sends, under the same `--seed` and
//! `--salt`: so the keys of `[request]` go into every row's `body`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Args;
use serde_json::value::RawValue;

use super::place::Place;
use crate::cli::Exit;
use crate::cli::console::say;
use crate::client::dialect;
use crate::trace::Request;
use crate::trace::write::{WriteFormat, Writer};
use crate::units::{Nanos, UnitError};
use crate::workload::{self, Workload};

/// Arguments of `trace generate`.
#[derive(Debug, Args)]
pub(super) struct GenerateArgs {
    /// A workload file (.toml)
    workload: PathBuf,
    /// The file to write, or - for stdout; .csv, or .jsonl, which a workload whose requests say more than
    /// their lengths needs
    #[arg(default_value = "-")]
    out: PathBuf,
    /// Seed of everything that is drawn at random
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Write rows before this time
    #[arg(long, value_name = "D", value_parser = duration)]
    duration: Option<Nanos>,
    /// Write at most this many rows
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Replace the file where it exists
    #[arg(long)]
    force: bool,
}

fn duration(text: &str) -> Result<Nanos, UnitError> {
    Nanos::parse_duration(text)
}

/// Carries out the command.
pub(super) fn generate(args: &GenerateArgs) -> anyhow::Result<Exit> {
    let workload = workload::load(&args.workload)?;
    let times = args.duration.is_some() && workload.closed().is_none();
    ensure!(
        workload.has_rows_end() || args.limit.is_some() || times,
        "{} has no end of its own\nhint: give --limit 1000{}",
        args.workload.display(),
        if workload.closed().is_some() {
            "; the rows of a closed loop have no times"
        } else {
            " or --duration 60s"
        }
    );
    let is_csv = match args.out.extension().and_then(|ending| ending.to_str()) {
        Some("csv") => true,
        Some("jsonl") => false,
        _ => !workload.has_content(),
    };
    let place = Place { source: &args.workload, out: &args.out, force: args.force };
    let dress = if is_csv { WriteFormat::Csv } else { WriteFormat::Jsonl };
    let rows = place.save(|out| write(args, &workload, dress, out))?;
    if let Some(closed) = workload.closed() {
        say(&format!(
            "note: the workload is a closed loop, which a trace cannot say: run it with --concurrency {}",
            closed.slots
        ));
    }
    if let Some(rows) = rows {
        say(&format!("{rows} rows written to {}", args.out.display()));
    }
    Ok(Exit::Ok)
}

fn write(
    args: &GenerateArgs,
    workload: &Workload,
    dress: WriteFormat,
    out: &mut dyn Write,
) -> anyhow::Result<u64> {
    let mut writer = Writer::new(out, dress)?;
    let end = args.duration.unwrap_or(Nanos::MAX);
    let limit = usize::try_from(args.limit.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let mut rows = 0;
    for row in workload.rows(args.seed).take_while(|row| row.at < end).take(limit) {
        writer.row(&with_request(row, workload.request())?)?;
        rows += 1;
    }
    writer.finish()?;
    Ok(rows)
}

/// The row with what the workload wants in every body.
fn with_request(mut row: Request, request: Option<&RawValue>) -> anyhow::Result<Request> {
    let Some(request) = request else { return Ok(row) };
    let content = row.content.get_or_insert_default();
    let merged = match &content.body {
        None => request.to_owned(),
        Some(own) => dialect::merged(request, own).context("[request]")?,
    };
    content.body = Some(merged);
    Ok(row)
}
