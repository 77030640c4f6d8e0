//! `run.json`: what was run, where, with what, and what came of it, for whoever finds the folder later.
//!
//! Never in it: a host name, an absolute path, a key, a header value, a prompt, the user part or query
//! of a URL. Everything passes through [`redact`](crate::redact) when the manifest is written: of
//! secrets, only a key or prompt in a field of its own in another room's JSON would not be seen.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::folder::{WriteError, replace_file};
use super::run_facts::OwnError;
use crate::metrics::client_figures::ClientFigures;
use crate::metrics::{Summary, Tally};
use crate::redact::{redact_arg, redact_command, redact_json, redact_text, redact_url};
use crate::units::Nanos;

/// Raised when a field changes its meaning; new fields do not raise it.
const FORMAT: u32 = 1;

/// The manifest of a run. `None` and `null` stand for what is not known or does not apply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Manifest {
    /// Version of this file's layout.
    pub format: u32,
    /// Versions of underfire and of what decides its results.
    pub versions: BTreeMap<String, String>,
    /// The command line, without the program's path.
    pub command: Vec<String>,
    /// `--label K=V`.
    pub labels: BTreeMap<String, String>,
    /// `--seed`.
    pub seed: u64,
    /// Hash of the plan, row by row.
    pub plan_hash: Option<String>,
    /// How trace time became due times.
    pub scale: Option<Scale>,
    /// Facts of the source: rows, dropped, clipped, format, and the like.
    pub source: Value,
    /// What was asked, planned and sent: arrivals and lengths.
    pub fidelity: Value,
    /// What was asked, by option.
    pub settings: Value,
    /// Where requests went.
    pub target: Option<Target>,
    /// Model asked for.
    pub model: Option<String>,
    /// Dialect spoken.
    pub api: Option<String>,
    /// What the server says about itself.
    pub server: Value,
    /// What `t0` was.
    pub clock: Option<ClockAnchor>,
    /// The client's machine.
    pub machine: Option<Machine>,
    /// The client's own error here, where it was measured before the run.
    pub calibration: Option<OwnError>,
    /// Connections dialled before `t0`, and what they took.
    pub predial: Option<Value>,
    /// The measured window.
    pub window: Option<WindowFacts>,
    /// Whether the run was cut short by a signal.
    pub interrupted: bool,
    /// Why the run ended before its plan did, where it did.
    pub stopped: Option<String>,
    /// Rows by outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// Requests sent again, where `--retries` allows it.
    pub resent: Option<u64>,
    /// Verdicts on SLOs and on the client.
    pub verdicts: Value,
    /// Files in this folder.
    pub files: Vec<String>,
    /// What a reader should know: one sentence each.
    pub notices: Vec<String>,
}

/// A manifest that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("failed to read {}: {reason}", path.display())]
pub struct ReadError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub reason: String,
}

/// How trace time became due times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scale {
    /// `compress`, `thin`, `clone`, `per-client`, or `closed` for a fixed concurrency.
    pub method: String,
    /// The factor; above 1 is faster.
    pub factor: f64,
}

/// Where requests went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Target {
    /// Servers named by `--url`.
    Server {
        /// Their URLs, by `target` of the rows.
        urls: Vec<String>,
    },
    /// The built-in simulated server.
    Simulated {
        /// Its settings.
        settings: Value,
    },
}

/// In words; of several servers each with the number that rows and scopes call it by.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simulated { .. } => f.write_str("built-in simulated server (no real model)"),
            Self::Server { urls } if urls.len() > 1 => {
                let numbered = urls.iter().enumerate();
                let each: Vec<String> =
                    numbered.map(|(target, url)| format!("{url} (target {target})")).collect();
                f.write_str(&each.join(", "))
            }
            Self::Server { urls } => f.write_str(&urls.concat()),
        }
    }
}

/// What the run's `t0` was on two clocks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockAnchor {
    /// RFC 3339, UTC.
    pub t0_utc: String,
    /// The system's monotonic clock, in nanoseconds.
    pub t0_monotonic_ns: u64,
}

/// The machine that the client ran on. Its name is nobody's business.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Cores that the process may use.
    pub cores: Option<u64>,
    /// Memory of the machine.
    pub memory_bytes: Option<u64>,
    /// Kernel and release.
    pub kernel: Option<String>,
}

/// The measured window and the run around it, in seconds from `t0`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WindowFacts {
    /// End of the warm-up.
    pub from_s: f64,
    /// The last due time.
    pub to_s: Option<f64>,
    /// From one to the other; empty when it has no length.
    pub length_s: Option<f64>,
    /// The first due time of all.
    pub first_due_s: Option<f64>,
    /// From the last due time to the end of the last row.
    pub drain_s: Option<f64>,
    /// The end of the last row.
    pub end_s: Option<f64>,
}

impl WindowFacts {
    pub(super) fn of(summary: &Summary) -> Self {
        let seconds = |at: Option<Nanos>| at.map(Nanos::as_secs_f64);
        Self {
            from_s: summary.warmup.as_secs_f64(),
            to_s: seconds(summary.last_due),
            length_s: seconds(summary.window()),
            first_due_s: seconds(summary.first_due),
            drain_s: seconds(summary.drain()),
            end_s: seconds(summary.end),
        }
    }
}

impl Manifest {
    /// A manifest that knows its own version and the command line (`args` without the
    /// program itself).
    #[must_use]
    pub fn new(args: &[String]) -> Self {
        let version = ("underfire".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        Self {
            format: FORMAT,
            versions: BTreeMap::from([version]),
            command: redact_command(args),
            ..Self::default()
        }
    }

    /// Reads a manifest back.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        let failed = |reason: String| ReadError { path: path.to_owned(), reason };
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        serde_json::from_str(&text).map_err(|error| failed(error.to_string()))
    }

    /// What the machine told of the client, where the run came to its end.
    #[must_use]
    pub fn client_figures(&self) -> Option<ClientFigures> {
        ClientFigures::deserialize(self.verdicts.get("client")?.get("figures")?).ok()
    }

    /// Takes over window and outcomes.
    pub fn take_summary(&mut self, summary: &Summary) {
        self.window = Some(WindowFacts::of(summary));
        self.outcomes = outcome_counts(&summary.all);
        self.resent = summary.all.resent;
    }

    /// Writes the file, whole or not at all.
    pub fn write(&self, path: &Path) -> Result<(), WriteError> {
        replace_file(path, |out| {
            serde_json::to_writer_pretty(&mut *out, &self.redacted())?;
            out.write_all(b"\n")
        })
    }

    fn redacted(&self) -> Self {
        let mut clean = self.clone();
        clean.command = redact_command(&clean.command);
        for value in clean.labels.values_mut() {
            *value = redact_arg(value);
        }
        for notice in &mut clean.notices {
            *notice = redact_text(notice);
        }
        for file in &mut clean.files {
            *file = redact_arg(file);
        }
        clean.stopped = clean.stopped.as_deref().map(redact_text);
        clean.model = clean.model.as_deref().map(redact_arg);
        for value in
            [&mut clean.source, &mut clean.settings, &mut clean.server, &mut clean.verdicts]
        {
            redact_json(value);
        }
        match &mut clean.target {
            Some(Target::Server { urls }) => {
                for url in urls {
                    *url = redact_url(url);
                }
            }
            Some(Target::Simulated { settings }) => redact_json(settings),
            None => {}
        }
        clean
    }
}

pub(super) fn outcome_counts(tally: &Tally) -> BTreeMap<String, u64> {
    tally.outcomes.iter().map(|(outcome, n)| (outcome.to_string(), *n)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Metrics, Window};
    use crate::record::{Outcome, Row, StreamRecord};

    #[test]
    fn it_reads_back_and_holds_no_secret() {
        let args = ["run", "/srv/secretdir/t.csv", "--url", "http://u:secretpw@h:1/v1?k=secretkey"];
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let mut manifest = Manifest::new(&args);
        manifest.labels.insert("data".into(), "/srv/secretdir/x".into());
        manifest.target =
            Some(Target::Server { urls: vec!["http://u:secretpw@h:1/v1?k=secretkey".into()] });
        manifest.notices.push("sorted `/srv/secretdir/t.csv`: 3 rows moved".into());
        manifest.source = serde_json::json!({ "files": ["/srv/secretdir/t.csv"], "rows": 3 });
        manifest.model = Some("/srv/secretdir/llama".into());
        manifest.clock = Some(ClockAnchor {
            t0_utc: "2026-11-30T12:00:00.000000001Z".into(),
            t0_monotonic_ns: u64::MAX,
        });
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.json");
        manifest.write(&path).expect("space");
        let text = std::fs::read_to_string(&path).expect("the file");
        assert!(!text.contains("secret"), "{text}");
        let back: Manifest = serde_json::from_str(&text).expect("a manifest");
        assert_eq!(back.command, ["run", "t.csv", "--url", "http://h:1/v1"]);
        assert_eq!(back.clock, manifest.clock);
        assert_eq!(back.notices, ["sorted `t.csv`: 3 rows moved"]);
        assert_eq!(back.source, serde_json::json!({ "files": ["t.csv"], "rows": 3 }));
        assert_eq!(back.model.as_deref(), Some("llama"));
        assert_eq!(back.redacted(), back, "redacting twice changes nothing");
    }

    #[test]
    fn outcomes_and_window_come_from_the_summary() {
        let mut metrics = Metrics::new(Window { warmup: Nanos::from_secs(1), last_due: None });
        for (due_s, outcome) in [(0, Outcome::Ok), (3, Outcome::Http(429)), (5, Outcome::Http(429))]
        {
            let record = StreamRecord {
                due: Nanos::from_secs(due_s),
                close: Some(Nanos::from_secs(due_s + 2)),
                outcome,
                ..StreamRecord::default()
            };
            metrics.add(&Row::of(&record, Nanos::from_secs(1)), &record);
        }
        let mut manifest = Manifest::new(&[]);
        manifest.take_summary(&metrics.finish());
        let window = manifest.window.expect("taken");
        assert_eq!((window.from_s, window.to_s, window.length_s), (1.0, Some(5.0), Some(4.0)));
        assert_eq!((window.drain_s, window.end_s), (Some(2.0), Some(7.0)));
        assert_eq!(manifest.outcomes, BTreeMap::from([("http_429".into(), 2), ("ok".into(), 1)]));
    }
}
