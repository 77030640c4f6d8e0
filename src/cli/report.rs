//! `underfire report`: the figures of a run again, from the files in its folder.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::Args;

use super::Exit;
use super::console::{complain, print, print_page, summary_page};
use crate::metrics::health::ClientVerdict;
use crate::report::{self, Folder, Manifest, RunFacts, Target};

/// Arguments of `report`.
#[derive(Debug, Args)]
pub(super) struct ReportArgs {
    /// Run folders
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
}

/// Carries out the command: each folder by itself, so that a bad one keeps no other from its figures.
#[expect(clippy::unnecessary_wraps, reason = "one shape for all commands")]
pub(super) fn report(args: &ReportArgs) -> anyhow::Result<Exit> {
    let mut exit = Exit::Ok;
    for (place, path) in args.folders.iter().enumerate() {
        if place > 0 {
            print("\n");
        }
        if let Err(error) = one(path) {
            complain(&error);
            exit = Exit::Usage;
        }
    }
    Ok(exit)
}

fn one(path: &Path) -> anyhow::Result<()> {
    let folder = Folder::at(path);
    let rebuilt = report::rebuild(&folder)?;
    report::save_summary(&rebuilt.summary, &folder.file("summary.csv"))?;
    let mut facts = facts(&folder);
    facts.notices.extend(rebuilt.notices);
    let color = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    print_page(&summary_page(&rebuilt.summary, &facts, color));
    Ok(())
}

/// What the manifest says of the run, or why it says nothing.
fn facts(folder: &Folder) -> RunFacts {
    let name = folder.path().canonicalize().ok();
    let name = name.as_deref().and_then(Path::file_name).map(|n| n.to_string_lossy().into_owned());
    let facts = RunFacts {
        name: name.unwrap_or_default(),
        target: "an unknown server".to_owned(),
        folder: Some(folder.path().display().to_string()),
        ..RunFacts::default()
    };
    let manifest = match Manifest::read(&folder.file("run.json")) {
        Ok(manifest) => manifest,
        Err(error) => {
            let notice = format!("what was run is not known: {error}");
            return RunFacts { notices: vec![notice], ..facts };
        }
    };
    let mut notices = manifest.notices;
    if manifest.window.is_none() {
        notices.push(
            "the run did not come to its end (killed, or its last files could not be written): these \
             are the figures of the rows that it left"
                .to_owned(),
        );
    }
    let client = client_words(&manifest.verdicts["client"]);
    let target = match manifest.target {
        Some(Target::Server { urls }) => urls.join(", "),
        Some(Target::Simulated { .. }) => "built-in simulated server (no real model)".to_owned(),
        None => facts.target,
    };
    let interrupted = manifest.interrupted;
    let stopped = manifest.stopped.filter(|_| !interrupted);
    let (model, own_error) = (manifest.model, manifest.calibration);
    RunFacts { target, model, interrupted, stopped, own_error, client, notices, ..facts }
}

/// The verdict on the client with its reasons, as the run said it.
fn client_words(verdict: &serde_json::Value) -> Option<String> {
    verdict["verdict"].as_str()?;
    let list = |name: &str| {
        let reasons = verdict[name].as_array().into_iter().flatten();
        reasons.filter_map(|reason| reason.as_str().map(str::to_owned)).collect()
    };
    Some(ClientVerdict { limited: list("limited"), warnings: list("warnings") }.words())
}
