//! `underfire report`: the figures of a run again, from the files in its folder.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::Args;

use super::Exit;
use super::console::{complain, print, print_page, summary_page};
use crate::metrics::Summary;
use crate::metrics::health::ClientVerdict;
use crate::report::{self, Folder, Manifest, RunFacts, grouped};

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
    let mut facts = facts(&folder, &rebuilt.summary);
    facts.notices.extend(rebuilt.notices);
    let color = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    print_page(&summary_page(&rebuilt.summary, &facts, color));
    Ok(())
}

/// What the manifest says of the run, or why it says nothing.
fn facts(folder: &Folder, summary: &Summary) -> RunFacts {
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
        notices.push(format!(
            "the run did not come to its end (killed, or its last files could not be written): these are \
             the figures of the rows that it left; {}",
            missing_words(&manifest.source["plan"], summary)
        ));
    }
    let client = client_words(&manifest.verdicts["client"]);
    let target = manifest.target.map_or(facts.target, |target| target.to_string());
    let interrupted = manifest.interrupted;
    let stopped = manifest.stopped.filter(|_| !interrupted);
    let (model, own_error) = (manifest.model, manifest.calibration);
    RunFacts { target, model, interrupted, stopped, own_error, client, notices, ..facts }
}

/// How many rows of the plan a run that was killed did not leave. A row is written when it ends, so
/// which of the others had been sent no file tells.
fn missing_words(plan: &serde_json::Value, summary: &Summary) -> String {
    let here = summary.all.rows();
    let Some(planned) = plan["rows"].as_u64() else {
        return "requests that were under way then are in no file, and were not counted".to_owned();
    };
    let missing = grouped(planned.saturating_sub(here));
    let (here, planned) = (grouped(here), grouped(planned));
    let due = match (summary.last_due, plan["last_due_s"].as_f64()) {
        (Some(at), Some(last)) => {
            format!(", due up to {:.1} s of {last:.1} s", at.as_secs_f64())
        }
        _ => String::new(),
    };
    format!(
        "of {planned} planned rows {here} are here{due}; the other {missing} were under way then, or not yet \
         sent: which, no file tells"
    )
}

/// The verdict on the client with its reasons, as the run said it.
fn client_words(verdict: &serde_json::Value) -> Option<String> {
    verdict["verdict"].as_str()?;
    let list = |name: &str| {
        let reasons = verdict[name].as_array().into_iter().flatten();
        reasons.filter_map(|reason| reason.as_str().map(str::to_owned)).collect()
    };
    Some(ClientVerdict { limited: list("limited"), warnings: list("warnings") }.to_string())
}
