//! What a run came to, as one value; and how it is made of what the run left.

use std::path::PathBuf;

use serde_json::json;
use tokio::sync::watch;

use super::collector::Finished;
use super::error::RunError;
use super::predial;
use super::server_count::{SERVER, ServerCount};
use super::truth::{self, TRUTH};
use crate::clock::Anchor;
use crate::lab::TruthCheck;
use crate::metrics::fidelity::SentFigures;
use crate::metrics::health::{ClientVerdict, HealthFacts};
use crate::metrics::little::InFlight;
use crate::metrics::{Summary, Window, burst};
use crate::record::Outcome;
use crate::replay::drain::Stop;
use crate::report::{ClockAnchor, Folder, Manifest, Recorded, RunFacts, SecondCount, save_summary};
use crate::schedule::fidelity::FidelityFigures;

/// What a run came to.
#[derive(Debug)]
#[must_use = "it holds the figures, and whether there was an error"]
pub struct Report {
    /// Every figure.
    pub summary: Summary,
    /// Whether this client kept up.
    pub client: ClientVerdict,
    /// The manifest, as it is in `run.json`.
    pub manifest: Manifest,
    /// What is told beside the figures.
    pub facts: RunFacts,
    /// What was asked and planned, where the plan could be counted ahead.
    pub planned: Option<FidelityFigures>,
    /// What was sent, where anything was.
    pub sent: Option<SentFigures>,
    /// The rows against the simulated server's log, where both are in a folder.
    pub truth: Option<TruthCheck>,
    /// Where the files are.
    pub folder: Option<PathBuf>,
    /// A signal cut it short.
    pub interrupted: bool,
    /// It stopped itself, by a rule that was given.
    pub aborted: bool,
    /// Why it broke off, where it did; what was measured until then stands.
    pub broken: Option<RunError>,
    /// The first file that could not be written.
    pub unwritten: Option<RunError>,
}

impl Report {
    /// Requests that ended well.
    #[must_use]
    pub fn ok(&self) -> u64 {
        self.summary.all.count(Outcome::Ok)
    }
}

/// How a run ended, beside its rows.
pub(super) struct Ending {
    /// Why it broke off.
    pub(super) broken: Option<RunError>,
    /// Rows that wait for a free slot are late because somebody said so.
    pub(super) capped: bool,
    /// The simulated server left its log in the folder.
    pub(super) has_truth: bool,
    /// What could only be said now.
    pub(super) notices: Vec<String>,
    pub(super) planned: Option<FidelityFigures>,
    pub(super) window: Window,
}

/// A report in the making.
pub(super) struct Draft {
    pub(super) folder: Option<Folder>,
    pub(super) manifest: Manifest,
    pub(super) facts: RunFacts,
}

impl Draft {
    /// Writes what is known before `t0`, so that a run that dies can still be told.
    pub(super) fn write_manifest(&self) -> Result<(), RunError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        Ok(self.manifest.write(&folder.file("run.json"))?)
    }

    /// A sentence for whoever reads the results, in whatever form.
    fn notice(&mut self, notice: String) {
        self.manifest.notices.push(notice.clone());
        self.facts.notices.push(notice);
    }

    fn notices(&mut self, notices: impl IntoIterator<Item = String>) {
        for notice in notices {
            self.notice(notice);
        }
    }

    /// Writes everything that follows from the rows. Every step is taken whatever becomes of the others.
    pub(super) fn finish(
        mut self,
        finished: Finished,
        ending: Ending,
        stop: &watch::Sender<Stop>,
    ) -> Report {
        let Finished { recorder, server, sent, in_flight, dialled, client, anchor, .. } = finished;
        let Recorded { mut summary, written, files, notices, seconds } = recorder.finish();
        summary.tell_of_client(&client);
        self.notices(notices);
        self.manifest.predial = dialled.as_ref().map(predial::manifest);
        self.manifest.notices.extend(dialled.as_ref().and_then(predial::warning));
        let aborted = finished.aborted.map(|reason| reason.to_string());
        let is_aborted = aborted.is_some();
        let interrupted = *stop.borrow() == Stop::All && ending.broken.is_none();
        let broken = ending.broken.as_ref().map(first_line);
        self.facts.stopped = aborted.or(broken);
        let signal = interrupted.then(|| "a signal".to_owned());
        self.manifest.stopped = self.facts.stopped.clone().or(signal);
        self.manifest.interrupted = interrupted;
        self.facts.interrupted = interrupted;
        self.notices(ending.notices.into_iter().chain(finished.notice));
        self.manifest.take_summary(&summary);
        let stopped = self.manifest.stopped.is_some();
        let health =
            HealthFacts { capped: ending.capped, stopped, ttft_limit: None, figures: client };
        let verdict = self.judge_client(&summary, health);
        self.manifest.clock = anchor.map(|anchor| ClockAnchor {
            t0_utc: anchor.utc.rfc3339(),
            t0_monotonic_ns: anchor.monotonic.0,
        });
        self.manifest.files = files;
        let saved = self.save_summary(&summary);
        let truth = anchor.filter(|_| ending.has_truth).and_then(|anchor| self.check_truth(anchor));
        if let Some(server) = server {
            self.check_server(server, &seconds, &summary, ending.window);
        }
        self.check_in_flight(in_flight);
        let manifest = self.write_manifest();
        let written = written.map_err(RunError::from).and(saved).and(manifest);
        Report {
            summary,
            client: verdict,
            manifest: self.manifest,
            facts: self.facts,
            planned: ending.planned,
            sent,
            truth,
            folder: self.folder.map(|folder| folder.path().to_owned()),
            interrupted,
            aborted: is_aborted,
            broken: ending.broken,
            unwritten: written.err(),
        }
    }

    fn judge_client(&mut self, summary: &Summary, health: HealthFacts) -> ClientVerdict {
        let client = ClientVerdict::of(summary, health);
        self.facts.client = Some(client.to_string());
        if let Some(notice) = burst::warning(summary, &client) {
            self.notice(notice);
        }
        self.manifest.verdicts = json!({ "client": {
            "verdict": client.word(),
            "limited": client.limited,
            "warnings": client.warnings,
            "figures": health.figures,
        }});
        client
    }

    fn save_summary(&mut self, summary: &Summary) -> Result<(), RunError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        save_summary(summary, &folder.file("summary.csv"))?;
        self.manifest.files.push("summary.csv".to_owned());
        Ok(())
    }

    /// How the run agrees with what its servers counted.
    fn check_server(
        &mut self,
        server: ServerCount,
        seconds: &[SecondCount],
        summary: &Summary,
        window: Window,
    ) {
        if self.folder.is_some() {
            self.manifest.files.push(SERVER.to_owned());
        }
        let (notices, verdict) = server.check(seconds, summary, window);
        self.manifest.verdicts["server"] = verdict;
        self.notices(notices);
    }

    /// Little's law, on ourselves.
    fn check_in_flight(&mut self, in_flight: InFlight) {
        self.manifest.verdicts["in_flight"] =
            json!({ "seen": in_flight.seen_mean(), "by_rows": in_flight.rows_mean() });
        if let Some(notice) = in_flight.contradiction() {
            self.notice(notice);
        }
    }

    /// How the run agrees with what the simulated server logged.
    fn check_truth(&mut self, anchor: Anchor) -> Option<TruthCheck> {
        let folder = self.folder.as_ref()?;
        self.manifest.files.push(TRUTH.to_owned());
        match truth::check_folder(folder, anchor) {
            Ok(check) => {
                self.manifest.verdicts["truth"] = truth::manifest(&check);
                self.notice(truth::describe(&check));
                Some(check)
            }
            Err(error) => {
                self.notice(format!("not checked against truth.csv: {error}"));
                None
            }
        }
    }
}

/// An error without its hint.
fn first_line(error: &RunError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
