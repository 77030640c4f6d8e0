//! The end of a run: summary, manifest, the check against the simulated server's log, the exit code.

use std::io::IsTerminal;

use anyhow::Context;
use serde_json::json;

use super::Exit;
use super::args::RunArgs;
use super::console::{complain, print, print_page, say, say_page, summary_page};
use super::predial;
use super::prompts::Prepared;
use super::server::Server;
use super::server_count::{SERVER, ServerCount};
use super::traffic::Traffic;
use super::truth;
use crate::client::Dialled;
use crate::clock::Anchor;
use crate::machine::host;
use crate::metrics::burst;
use crate::metrics::client_figures::ClientFigures;
use crate::metrics::health::{ClientVerdict, HealthFacts};
use crate::metrics::little::InFlight;
use crate::metrics::{Summary, Window};
use crate::record::Outcome;
use crate::report::{
    self, ClockAnchor, Folder, Machine, Manifest, Recorded, Recorder, RecorderError, RunFacts,
    Scale, WriteError,
};
use crate::schedule::PlanFacts;

/// A run folder whose figures are still to come.
pub(super) struct Results<'a> {
    args: &'a RunArgs,
    folder: Folder,
    manifest: Manifest,
    words: RunFacts,
    window: Window,
}

/// How a run ended.
pub(super) struct Ending {
    /// When it started, if it did.
    pub(super) anchor: Option<Anchor>,
    /// A signal cut it short.
    pub(super) interrupted: bool,
    /// An error did.
    pub(super) stopped: Option<String>,
    /// It stopped itself, by a rule that the user gave.
    pub(super) aborted: Option<String>,
    /// What was asked, planned and sent.
    pub(super) fidelity: serde_json::Value,
    /// The same in words.
    pub(super) fidelity_words: Option<String>,
    /// What the servers counted.
    pub(super) server: Option<ServerCount>,
    /// Requests in flight, counted in two ways.
    pub(super) in_flight: InFlight,
    /// What came of dialling before `t0`.
    pub(super) dialled: Option<Dialled>,
    /// What the machine told of the client.
    pub(super) client: ClientFigures,
}

impl<'a> Results<'a> {
    /// Writes what is known before `t0`, so that a run that dies can still be told.
    pub(super) fn open(
        args: &'a RunArgs,
        traffic: &Traffic,
        facts: Option<&PlanFacts>,
        server: &Server,
        prepared: &Prepared,
        (folder, window): (Folder, Window),
    ) -> anyhow::Result<Self> {
        let command: Vec<String> = std::env::args().skip(1).collect();
        let (method, factor) = traffic.scale();
        let manifest = Manifest {
            seed: args.shape.seed,
            plan_hash: facts.map(|facts| facts.plan_hash.clone()),
            scale: Some(Scale { method, factor }),
            source: traffic.manifest(facts),
            fidelity: traffic.fidelity(None),
            target: Some(server.manifest.clone()),
            model: server.model(),
            api: Some(args.target.api.to_string()),
            server: server.about(),
            settings: prepared.settings.clone(),
            calibration: prepared.own_error.clone(),
            labels: args.output.label.iter().cloned().collect(),
            notices: [traffic.notices(), &server.notices, &prepared.notices]
                .concat()
                .into_iter()
                .chain(cap_words(args))
                .collect(),
            // True until the run has ended: one that is killed never says so itself.
            interrupted: true,
            machine: Some(Machine {
                cores: host::cores().map(|cores| cores as u64),
                memory_bytes: host::memory_bytes(),
                kernel: host::kernel(),
            }),
            ..Manifest::new(&command)
        };
        let name = folder.path().file_name().map(|name| name.to_string_lossy().into_owned());
        let words = RunFacts {
            notices: cap_words(args).into_iter().collect(),
            name: name.unwrap_or_default(),
            target: server.words.clone(),
            model: server.model(),
            folder: Some(folder.path().display().to_string()),
            input_remedy: prepared.input_remedy.map(str::to_owned),
            cache_unasked_tok: prepared.cache_unasked_tok,
            own_error: prepared.own_error.clone(),
            ..RunFacts::default()
        };
        let results = Self { args, folder, manifest, words, window };
        results.write_manifest()?;
        Ok(results)
    }

    fn write_manifest(&self) -> anyhow::Result<()> {
        let path = self.folder.file("run.json");
        self.manifest.write(&path).with_context(|| format!("failed to write {}", path.display()))
    }

    /// Writes everything that follows from the rows, prints the summary, and says how to exit.
    pub(super) fn close(
        mut self,
        recorder: Recorder,
        ending: Ending,
        has_truth: bool,
        late_notices: &[String],
    ) -> anyhow::Result<Exit> {
        let Recorded { mut summary, written, files, notices } = recorder.finish();
        summary.tell_of_client(&ending.client);
        self.manifest.notices.extend_from_slice(&notices);
        self.words.notices.extend(notices);
        let Ending { anchor, interrupted, stopped, aborted, server, in_flight, .. } = ending;
        self.manifest.fidelity = ending.fidelity;
        self.manifest.predial = ending.dialled.as_ref().map(predial::manifest);
        self.manifest.notices.extend(ending.dialled.as_ref().and_then(predial::warning));
        let is_aborted = aborted.is_some();
        let signal = interrupted.then(|| "a signal".to_owned());
        self.words.stopped = aborted.or(stopped);
        self.manifest.stopped = self.words.stopped.clone().or(signal);
        self.manifest.interrupted = interrupted;
        self.words.interrupted = interrupted;
        self.manifest.notices.extend_from_slice(late_notices);
        self.words.notices.extend_from_slice(late_notices);
        self.manifest.take_summary(&summary);
        let stopped = self.manifest.stopped.is_some();
        let facts = HealthFacts {
            capped: self.args.shape.max_in_flight.is_some(),
            stopped,
            ttft_limit: None,
            figures: ending.client,
        };
        let client = ClientVerdict::of(&summary, facts);
        self.words.client = Some(client.words());
        if let Some(words) = burst::words(&summary, &client) {
            self.manifest.notices.push(words.clone());
            self.words.notices.push(words);
        }
        self.manifest.verdicts = json!({ "client": {
            "verdict": client.word(),
            "limited": client.limited,
            "warnings": client.warnings,
            "figures": ending.client,
        }});
        self.manifest.clock = anchor.map(|anchor| ClockAnchor {
            t0_utc: anchor.utc.rfc3339(),
            t0_monotonic_ns: anchor.monotonic.0,
        });
        self.manifest.files = files;
        // Every step is taken whatever becomes of the others: the figures are shown even where no
        // file takes them.
        let saved = report::save_summary(&summary, &self.folder.file("summary.csv"));
        if saved.is_ok() {
            self.manifest.files.push("summary.csv".to_owned());
        }
        if let Some(anchor) = anchor.filter(|_| has_truth) {
            self.manifest.files.push("truth.csv".to_owned());
            self.note_truth(anchor);
        }
        if let Some(server) = server {
            self.manifest.files.push(SERVER.to_owned());
            self.note_server(server, &summary);
        }
        self.note_in_flight(in_flight);
        let manifest = self.write_manifest();
        self.show(&summary);
        if let Some(words) = ending.fidelity_words.filter(|_| !self.args.output.quiet) {
            say(words.trim_end());
        }
        if let Err(error) = unwritten(written, saved, manifest) {
            if !interrupted {
                return Err(error);
            }
            complain(&error);
        }
        Ok(match summary.all.count(Outcome::Ok) {
            _ if interrupted => Exit::Interrupted,
            0 => Exit::NothingSucceeded,
            _ if self.args.judgement.strict && client.is_limited() => Exit::CannotAnswer,
            _ if is_aborted => Exit::Stopped,
            _ => Exit::Ok,
        })
    }

    /// The summary for people; with `--json` that goes to stderr, and the data to stdout.
    fn show(&self, summary: &Summary) {
        let no_color = std::env::var_os("NO_COLOR").is_some();
        let page = |color| summary_page(summary, &self.words, color);
        if self.args.output.json {
            print(&format!("{:#}\n", report::summary_json(summary, &self.words)));
        }
        match (self.args.output.quiet, self.args.output.json) {
            (true, _) => {
                if let Some(client) =
                    self.words.client.as_ref().filter(|words| words.starts_with("limited"))
                {
                    say(&format!("warning: the client was {client}"));
                }
                if let Some(warning) = failures(summary) {
                    say(&warning);
                }
            }
            (false, true) => {
                let color = std::io::stderr().is_terminal() && !no_color;
                say_page(page(color).trim_end());
            }
            (false, false) => {
                let color = std::io::stdout().is_terminal() && !no_color;
                print_page(&page(color));
            }
        }
    }

    /// Says how the run agrees with what its servers counted.
    fn note_server(&mut self, server: ServerCount, summary: &Summary) {
        let (words, verdict) = match server.check(&self.folder, summary, self.window) {
            Ok(checked) => checked,
            Err(error) => {
                (vec![format!("not held against the server's count: {error:#}")], json!(null))
            }
        };
        self.manifest.verdicts["server"] = verdict;
        self.manifest.notices.extend_from_slice(&words);
        self.words.notices.extend(words);
    }

    /// Little's law, on ourselves.
    fn note_in_flight(&mut self, in_flight: InFlight) {
        self.manifest.verdicts["in_flight"] =
            json!({ "seen": in_flight.seen_mean(), "by_rows": in_flight.rows_mean() });
        if let Some(words) = in_flight.contradiction() {
            self.manifest.notices.push(words.clone());
            self.words.notices.push(words);
        }
    }

    /// Says how the run agrees with what the simulated server logged.
    fn note_truth(&mut self, anchor: Anchor) {
        let words = match truth::check_folder(&self.folder, anchor) {
            Ok(check) => {
                self.manifest.verdicts["truth"] = truth::manifest(&check);
                truth::words(&check)
            }
            Err(error) => format!("not checked against truth.csv: {error}"),
        };
        self.manifest.notices.push(words.clone());
        self.words.notices.push(words);
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

/// What a cap on requests in flight does to the figures, so that nobody reads them without it.
fn cap_words(args: &RunArgs) -> Option<String> {
    let slots = args.shape.max_in_flight?;
    Some(format!(
        "at most {slots} requests in flight (--max-in-flight): a row that found no room left late, and \
         its wait is in the lag and in every latency from due"
    ))
}

/// The first file that could not be written.
fn unwritten(
    rows: Result<(), RecorderError>,
    summary: Result<(), WriteError>,
    manifest: anyhow::Result<()>,
) -> anyhow::Result<()> {
    rows?;
    summary?;
    manifest
}
