//! `underfire trace convert`: a trace, whole or shaped, as another file.

use std::io::Write;
use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, ValueEnum};

use crate::cli::Exit;
use crate::cli::args::{ReadArgs, ShapeArgs};
use crate::cli::console::say;
use crate::cli::trace::place::Place;
use crate::cli::trace::say_notices;
use crate::client::dialect::Api;
use crate::run::Traffic;
use crate::trace::write::{Anonymiser, WriteFormat, Writer};

/// Arguments of `trace convert`.
#[derive(Debug, Args)]
#[command(mut_arg("concurrency", |arg| arg.hide(true)), mut_arg("max_in_flight", |arg| arg.hide(true)),
          mut_arg("salt", |arg| arg.hide(true)))]
pub(super) struct ConvertArgs {
    /// A trace file, a folder of sessions, a workload, or - for stdin
    source: PathBuf,
    /// The file to write, or - for stdout; its name tells the format: .csv or .jsonl
    #[arg(default_value = "-")]
    out: PathBuf,
    /// What to write, where the name of the file does not tell
    #[arg(long, value_name = "FORMAT")]
    to_format: Option<ToFormat>,
    /// New ids under a key that is kept nowhere, and no words
    #[arg(long)]
    anonymise: bool,
    /// Replace the file where it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    reading: ReadArgs,
    #[command(flatten)]
    shape: ShapeArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ToFormat {
    /// Native, CSV
    Csv,
    /// Native, JSONL
    Jsonl,
    /// Mooncake's JSONL
    Mooncake,
}

/// Carries out the command.
pub(super) fn convert(args: &ConvertArgs) -> anyhow::Result<Exit> {
    if args.shape.concurrency.is_some() || args.shape.max_in_flight.is_some() {
        bail!("--concurrency and --max-in-flight belong to `run`: a trace holds times");
    }
    let traffic =
        Traffic::open(&args.source, &args.reading.options(), &args.shape.settings(), Api::Chat)?;
    say_notices(&traffic);
    let dress = dress(args)?;
    let place = Place { source: &args.source, out: &args.out, force: args.force };
    let rows = place.save(|out| write(args, &traffic, dress, out))?;
    for notice in traffic.late_notices() {
        say(&format!("note: {notice}"));
    }
    if let Some(rows) = rows {
        say(&format!("{rows} rows written to {}", args.out.display()));
    }
    Ok(Exit::Ok)
}

/// The format by `--to-format`, else by the name.
fn dress(args: &ConvertArgs) -> anyhow::Result<WriteFormat> {
    Ok(match args.to_format {
        Some(ToFormat::Csv) => WriteFormat::Csv,
        Some(ToFormat::Jsonl) => WriteFormat::Jsonl,
        Some(ToFormat::Mooncake) => WriteFormat::Mooncake,
        None => match args.out.extension().and_then(|ending| ending.to_str()) {
            Some("csv") => WriteFormat::Csv,
            Some("jsonl") | None => WriteFormat::Jsonl,
            Some(other) => bail!(
                "`.{other}` does not tell what to write\nhint: name the file .csv or .jsonl, or give \
                 --to-format csv, jsonl or mooncake"
            ),
        },
    })
}

fn write(
    args: &ConvertArgs,
    traffic: &Traffic,
    dress: WriteFormat,
    out: impl Write,
) -> anyhow::Result<u64> {
    let mut writer = Writer::new(out, dress)?;
    let anonymiser = args.anonymise.then(Anonymiser::default);
    let mut rows = 0;
    for request in traffic.shaped_rows()? {
        let mut request = request?;
        if let Some(anonymiser) = &anonymiser {
            request = anonymiser.row(request);
        }
        writer.row(&request)?;
        rows += 1;
    }
    writer.finish()?;
    if rows == 0 {
        bail!("no rows are left of {}\nhint: look at --from, --to and --limit", traffic.name());
    }
    Ok(rows)
}
