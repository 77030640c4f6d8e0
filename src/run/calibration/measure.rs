//! One calibration: a load of known size, sent to a built-in server that logs the truth, by the same
//! code and with the same bookkeeping as any run; and how wrong the client's figures then are.
//!
//! Deliberately absent: which load, and words.

use std::path::Path;

use tokio::sync::watch;

use super::pieces::{Piece, pieces};
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
use crate::run::collector::{Collector, Finished, Seen};
use crate::run::error::RunError;
use crate::run::events::Observer;
use crate::run::truth;
use crate::server::{Address, SimulatedServer};
use crate::sim::truth::TruthRow;
use crate::trace::read::TraceError;
use crate::units::Nanos;

/// Streams that the server has not ended by themselves so long after the load are cut.
const DRAIN: Nanos = Nanos::from_secs(10);

/// What came of a load.
#[derive(Debug)]
pub struct Calibration {
    /// The load.
    pub load: Load,
    /// Threads that sent and received.
    pub workers: usize,
    /// Requests due.
    pub due: u64,
    /// Requests that ended well.
    pub ok: u64,
    /// Why others did not, the first of them.
    pub failure: Option<String>,
    /// The rows of the steady state against the log.
    pub check: TruthCheck,
    /// Lag of the same rows, as the client itself reports it: p50, p99, max in ms.
    pub lag_ms: [Option<f64>; 3],
    /// Streams open in the steady state, on average.
    pub streams: f64,
    /// Token events a second in it.
    pub event_s: Option<f64>,
    /// tok/s over the whole load as reported, and as logged.
    pub tok_s: Option<(f64, f64)>,
    /// Token events of the whole load.
    pub events: u64,
    /// From `t0` to the last token.
    pub took: Nanos,
    /// Processor time that the client used for the whole load.
    pub cpu: Option<Nanos>,
    /// The same of the server.
    pub server_cpu: Option<Nanos>,
    /// The client's memory in RAM, the most of it.
    pub rss_bytes: Option<u64>,
    /// A long load piece by piece.
    pub pieces: Vec<Piece>,
    /// A signal cut it short.
    pub interrupted: bool,
}

/// Sends `load` with so many workers to the simulated server of `program`. The rows, the timeline and the
/// log go into `folder`.
///
/// # Panics
///
/// Never: a run that ended well was started.
pub fn measure(
    load: Load,
    workers: usize,
    program: &Path,
    folder: &Folder,
    stop: &watch::Sender<Stop>,
    observer: &mut dyn Observer,
) -> Result<Calibration, RunError> {
    load.check()?;
    let window = Window { warmup: load.ramp(), last_due: Some(load.ramp() + load.span) };
    let mut collector = Collector {
        recorder: Recorder::create(Some(folder), window, false, false)?,
        server: None,
        texts: None,
        counter: None,
        planned: Some(load.rows()),
        abort: AbortWatch::new(&[], 0),
        stop,
        observer,
        clock: None,
        seen: Seen::new(),
    };
    let log = folder.file(truth::TRUTH);
    let server = SimulatedServer::start(program, &load.server(), Some(&log))?;
    let setup = setup(&server, workers)?;
    let before = process::cpu();
    let mut memory = Vec::new();
    let plan = load.plan().map(Ok::<_, TraceError>);
    let ran = replay::run(plan, &setup, stop, |event| {
        if let Event::Tick(_) = event {
            memory.extend(process::resident_bytes().map(|bytes| (monotonic(), bytes)));
        }
        collector.take(event)
    });
    let cpu = process::cpu().zip(before).map(|(after, before)| after.since(before));
    let server_cpu = server.cpu();
    let Finished { recorder, anchor, .. } = collector.finish();
    let ended = recorder.finish();
    // Its log is whole once it has ended.
    drop(server);
    ran?;
    ended.written?;
    let t0 = anchor.expect("a run that ended well was started").monotonic;
    let memory: Vec<_> = memory.into_iter().map(|(at, bytes)| (at.since(t0), bytes)).collect();
    let rss_bytes = memory.iter().map(|(_, bytes)| *bytes).max();
    let interrupted = *stop.borrow() == Stop::All;
    let (mut rows, log) = truth::read_folder(folder)?;
    let compared = compare(load, &ended.summary, &mut rows, &log, t0);
    let pieces = pieces(&load, rows, &log, &memory, t0);
    Ok(Calibration { workers, cpu, server_cpu, rss_bytes, pieces, interrupted, ..compared })
}

fn setup(server: &SimulatedServer, workers: usize) -> Result<Setup, RunError> {
    let address = Address::own(&server.url(), Api::Chat)?;
    Ok(Setup {
        targets: vec![address.endpoint(Timeouts::default())],
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
        pieces: Vec::new(),
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
