//! One calibration: a load of known size, sent to a built-in server that logs the truth, by the same
//! code and with the same bookkeeping as any run; and how wrong the client's figures then are.
//!
//! Deliberately absent: which load, and words.

use std::path::PathBuf;

use anyhow::Context;
use tokio::sync::watch;

use super::calibration_course::{Piece, pieces};
use super::live::{Finished, Live};
use super::reach;
use super::simulated::SimulatedServer;
use super::{run, truth};
use crate::client::Timeouts;
use crate::client::dialect::Api;
use crate::clock::monotonic;
use crate::lab::{self, Load, TruthCheck};
use crate::machine::process;
use crate::metrics::abort::AbortWatch;
use crate::metrics::{ALL, MEASURED, Percentile, Stat, Summary, Window};
use crate::prompt::Prompter;
use crate::record::{Outcome, Phase, Row};
use crate::replay::drain::{Drain, Stop};
use crate::replay::job::BodyMaker;
use crate::replay::{self, Event, Mode, Setup};
use crate::report::{Folder, Recorder};
use crate::sim::truth::TruthRow;
use crate::trace::read::TraceError;
use crate::units::Nanos;

/// Streams that the server has not ended by themselves so long after the load are cut.
const DRAIN: Nanos = Nanos::from_secs(10);

/// What came of a load.
#[derive(Debug)]
pub(super) struct Calibration {
    pub(super) load: Load,
    /// Threads that sent and received.
    pub(super) workers: usize,
    /// Requests due.
    pub(super) due: u64,
    /// Requests that ended well.
    pub(super) ok: u64,
    /// Why others did not, the first of them.
    pub(super) failure: Option<String>,
    /// The rows of the steady state against the log.
    pub(super) check: TruthCheck,
    /// Lag of the same rows, as the client itself reports it: p50, p99, max in ms.
    pub(super) lag_ms: [Option<f64>; 3],
    /// Streams open in the steady state, on average.
    pub(super) streams: f64,
    /// Token events a second in it.
    pub(super) event_s: Option<f64>,
    /// tok/s over the whole load as reported, and as logged.
    pub(super) tok_s: Option<(f64, f64)>,
    /// Token events of the whole load.
    pub(super) events: u64,
    /// From `t0` to the last token.
    pub(super) took: Nanos,
    /// Processor time that the client used for the whole load.
    pub(super) cpu: Option<Nanos>,
    /// The same of the server.
    pub(super) server_cpu: Option<Nanos>,
    /// The client's memory in RAM, the most of it.
    pub(super) rss_bytes: Option<u64>,
    /// A long load piece by piece.
    pub(super) course: Vec<Piece>,
    /// A signal cut it short.
    pub(super) interrupted: bool,
}

/// Sends `load` with so many workers. The rows, the timeline and the log go into `folder`.
pub(super) fn measure(
    load: Load,
    workers: usize,
    folder: &Folder,
    stop: &watch::Sender<Stop>,
) -> anyhow::Result<Calibration> {
    load.check()?;
    let window = Window { warmup: load.ramp(), last_due: Some(load.ramp() + load.span) };
    let recorder = Recorder::create(folder, window, false, false)?;
    let server = SimulatedServer::start(&load.server(), &folder.file("truth.csv"))?;
    let setup = setup(&server, workers)?;
    let abort = AbortWatch::new(&[], 0);
    let mut live =
        Live::new((recorder, None), (None, None), Some(load.rows()), false, abort, stop.clone());
    let before = process::cpu();
    let mut memory = Vec::new();
    let plan = load.plan().map(Ok::<_, TraceError>);
    let ran = replay::run(plan, &setup, stop, |event| {
        if let Event::Tick(_) = event {
            memory.extend(process::resident_bytes().map(|bytes| (monotonic(), bytes)));
        }
        live.take(event)
    });
    let cpu = process::cpu().zip(before).map(|(after, before)| after.since(before));
    let server_cpu = server.cpu();
    let Finished { recorder, anchor, .. } = live.finish();
    let ended = recorder.finish();
    // Its log is whole once it has ended.
    drop(server);
    ran.map_err(run::why)?;
    ended.written?;
    let t0 = anchor.context("the calibration never started")?.monotonic;
    let memory: Vec<_> = memory.into_iter().map(|(at, bytes)| (at.since(t0), bytes)).collect();
    let rss_bytes = memory.iter().map(|(_, bytes)| *bytes).max();
    let interrupted = *stop.borrow() == Stop::All;
    let (mut rows, log) = truth::read_folder(folder)?;
    let compared = compare(load, &ended.summary, &mut rows, &log, t0);
    let course = pieces(&load, rows, &log, &memory, t0);
    Ok(Calibration { workers, cpu, server_cpu, rss_bytes, course, interrupted, ..compared })
}

fn setup(server: &SimulatedServer, workers: usize) -> anyhow::Result<Setup> {
    let way = reach::own(&format!("http://127.0.0.1:{}", server.port()), Api::Chat)?;
    Ok(Setup {
        targets: vec![way.endpoint(Timeouts::default())],
        bodies: BodyMaker::new(Api::Chat, Prompter::new(0, "")),
        workers,
        predial: 0,
        mode: Mode::Open,
        until: Nanos::MAX,
        drain: Drain::After(DRAIN),
    })
}

/// Everything that rows and log tell; leaves the rows of the steady state.
fn compare(
    load: Load,
    summary: &Summary,
    rows: &mut Vec<Row>,
    log: &[TruthRow],
    t0: Nanos,
) -> Calibration {
    let steady = (load.ramp(), load.ramp() + load.span);
    let streams = mean_open(rows, steady);
    let events = rows.iter().filter_map(|row| row.chunks).sum();
    let failed = |row: &&Row| row.outcome != Outcome::Ok;
    let failure = rows
        .iter()
        .find(failed)
        .map(|row| format!("{}: {}", row.outcome, row.error.as_deref().unwrap_or("no reason")));
    rows.retain(|row| row.phase == Phase::Measured);
    let lag = |stat| summary.value("lag_ms", MEASURED, stat);
    let reported = summary.value("output_tok_s_total", ALL, Stat::Mean);
    let p = Stat::Percentile;
    Calibration {
        load,
        workers: 0,
        due: summary.all.rows(),
        ok: summary.all.count(Outcome::Ok),
        failure,
        check: lab::check(rows, t0, log),
        lag_ms: [lag(p(Percentile::P50)), lag(p(Percentile::P99)), lag(Stat::Max)],
        streams,
        event_s: summary.value("output_tok_s", MEASURED, Stat::Mean),
        tok_s: reported.zip(true_tok_s(log, t0)),
        events,
        took: summary.last_token.unwrap_or_default(),
        cpu: None,
        server_cpu: None,
        rss_bytes: None,
        course: Vec::new(),
        interrupted: false,
    }
}

/// Streams open between two instants, averaged over the time between them.
fn mean_open(rows: &[Row], (from, to): (Nanos, Nanos)) -> f64 {
    let open = |row: &Row| {
        let sent = row.scheduled? + row.lag?;
        let close = row.scheduled? + row.close?;
        Some(close.min(to).since(sent.max(from)).as_secs_f64())
    };
    rows.iter().filter_map(open).sum::<f64>() / to.since(from).as_secs_f64()
}

/// All tokens of the log over the time from `t0` to the last of them.
fn true_tok_s(log: &[TruthRow], t0: Nanos) -> Option<f64> {
    let tokens: u64 = log.iter().map(|row| row.output_tok).sum();
    let last = log.iter().filter_map(|row| row.last).max()?;
    Some(tokens as f64 / last.since(t0).as_secs_f64())
}

/// A folder for as long as a calibration lasts, where nobody asked to keep it.
pub(super) struct Scratch {
    folder: Folder,
}

impl Scratch {
    pub(super) fn make() -> anyhow::Result<Self> {
        let name = format!("underfire-calibration-{}", std::process::id());
        let parent = std::env::temp_dir();
        for number in 0..1_000 {
            let path: PathBuf = parent.join(format!("{name}-{number}"));
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(Self { folder: Folder::at(&path) }),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(error)
                        .with_context(|| format!("cannot make a folder in {}", parent.display()));
                }
            }
        }
        anyhow::bail!("{} is full of unfinished calibrations", parent.display())
    }

    pub(super) fn folder(&self) -> &Folder {
        &self.folder
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Left behind, it is only a few files in a folder for such.
        let _ = std::fs::remove_dir_all(self.folder.path());
    }
}
