//! A run while it lasts: records to the recorder, figures to the progress line, signals to the stop.

use std::io::IsTerminal;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::client_watch::ClientWatch;
use super::console::say;
use super::server_count::ServerCount;
use super::text_count::TextCounter;
use super::{Exit, predial};
use crate::client::Dialled;
use crate::clock::{Anchor, monotonic};
use crate::machine::process;
use crate::metrics::abort::{AbortReason, AbortWatch};
use crate::metrics::client_figures::ClientFigures;
use crate::metrics::fidelity::{SentFigures, SentTimes};
use crate::metrics::little::InFlight;
use crate::record::{Outcome, StreamRecord};
use crate::replay::Event;
use crate::replay::drain::{Shared, Stop};
use crate::report::{Recorder, TextFile};
use crate::units::Nanos;

/// Takes the events of a run.
pub(super) struct Live {
    recorder: Recorder,
    server: Option<ServerCount>,
    in_flight: InFlight,
    client: ClientWatch,
    sent: SentTimes,
    dialled: Option<Dialled>,
    texts: Option<TextFile>,
    counter: Option<TextCounter>,
    progress: Option<ProgressBar>,
    planned: Option<u64>,
    started: Option<Anchor>,
    ended: u64,
    failed: u64,
    output_tok: u64,
    next_sample: Nanos,
    abort: AbortWatch,
    stop: watch::Sender<Stop>,
    /// Why sending was stopped.
    stopped: Option<AbortReason>,
}

/// What a run leaves once it is over.
pub(super) struct Finished {
    pub(super) recorder: Recorder,
    pub(super) server: Option<ServerCount>,
    pub(super) sent: Option<SentFigures>,
    pub(super) in_flight: InFlight,
    /// What came of dialling before `t0`.
    pub(super) dialled: Option<Dialled>,
    /// What the machine told of the client.
    pub(super) client: ClientFigures,
    /// When it started, if it did.
    pub(super) anchor: Option<Anchor>,
    /// Why it was stopped, if it was.
    pub(super) aborted: Option<AbortReason>,
    /// What a reader of the results should know.
    pub(super) notice: Option<String>,
}

/// How often the client's own processor time and memory are read.
const SAMPLE_EVERY: Nanos = Nanos::from_millis(200);

impl Live {
    pub(super) fn new(
        (recorder, server): (Recorder, Option<ServerCount>),
        (texts, counter): (Option<TextFile>, Option<TextCounter>),
        planned: Option<u64>,
        quiet: bool,
        abort: AbortWatch,
        stop: watch::Sender<Stop>,
    ) -> Self {
        let progress = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new_spinner();
            bar.set_style(ProgressStyle::with_template("{wide_msg}").expect("a fixed template"));
            bar
        });
        Self {
            recorder,
            server,
            in_flight: InFlight::default(),
            client: ClientWatch::new(),
            sent: SentTimes::default(),
            dialled: None,
            texts,
            counter,
            progress,
            planned,
            started: None,
            ended: 0,
            failed: 0,
            output_tok: 0,
            next_sample: Nanos::ZERO,
            abort,
            stop,
            stopped: None,
        }
    }

    /// Takes one event; an error is one of writing results.
    pub(super) fn take(&mut self, event: Event<'_>) -> anyhow::Result<()> {
        match event {
            Event::Dialled(dialled) => {
                if let Some(words) = predial::warning(&dialled) {
                    say(&format!("warning: {words}"));
                }
                self.dialled = Some(dialled);
            }
            Event::Started(anchor) => {
                self.started = Some(anchor);
                self.recorder.starts(anchor.utc.0);
                if let Some(server) = &mut self.server {
                    server.begins(anchor);
                }
            }
            Event::Ended(record) => self.record(*record)?,
            Event::Settled(before) => {
                self.recorder.settled(before).context("cannot write results")?;
            }
            Event::Tick(shared) => {
                self.client.hear(shared);
                self.texts.as_mut().map_or(Ok(()), TextFile::flush)?;
                if let Some(server) = &mut self.server {
                    server.take(&mut self.recorder).context("cannot write results")?;
                }
                self.in_flight.sees(self.elapsed(), shared.sent_count());
                self.show(shared);
            }
        }
        let elapsed = self.elapsed();
        if elapsed >= self.next_sample {
            self.next_sample = elapsed + SAMPLE_EVERY;
            self.sample_usage(elapsed);
        }
        self.recorder.flush_if_due(elapsed).context("cannot write results")
    }

    fn sample_usage(&mut self, elapsed: Nanos) {
        let used = process::cpu();
        self.client.look(elapsed, used);
        if let Some(used) = used {
            self.recorder.cpu(elapsed, used);
        }
        if let Some(bytes) = process::resident_bytes() {
            self.recorder.memory(elapsed, bytes);
        }
    }

    fn record(&mut self, mut record: StreamRecord) -> anyhow::Result<()> {
        if let Some(counter) = &mut self.counter {
            counter.count(&mut record, since(self.started));
        }
        self.ended += 1;
        self.in_flight.ended(&record);
        self.failed += u64::from(record.outcome.is_error());
        if record.outcome == Outcome::Ok {
            let counted = record.usage.and_then(|usage| usage.output_tok);
            let by_text = record.text_tok.map(|text| text.output_tok);
            self.output_tok += counted.or(by_text).unwrap_or(record.tokens.count());
        }
        if self.stopped.is_none()
            && let Some(reason) = self.abort.ended(&record)
        {
            let words = format!("stopping early: {reason}");
            match &self.progress {
                Some(progress) => progress.suspend(|| say(&words)),
                None => say(&words),
            }
            Stop::Sending.request(&self.stop);
            self.stopped = Some(reason);
        }
        self.sent.add(&record);
        if let Some(texts) = &mut self.texts {
            texts.write(&record)?;
        }
        self.recorder.record(record).context("cannot write results")
    }

    fn elapsed(&self) -> Nanos {
        since(self.started)
    }

    fn show(&self, shared: &Shared) {
        let Some(progress) = &self.progress else {
            return;
        };
        let sent = shared.sent_count();
        let planned = self.planned.map_or_else(String::new, |planned| format!("/{planned}"));
        let elapsed = self.elapsed().as_secs_f64();
        progress.set_message(format!(
            "{elapsed:.0} s  sent {sent}{planned}  open {}  ok {}  failed {}  {:.0} tok/s",
            sent.saturating_sub(self.ended),
            self.ended - self.failed,
            self.failed,
            self.output_tok as f64 / elapsed.max(1.0),
        ));
    }

    /// What the run leaves.
    pub(super) fn finish(mut self) -> Finished {
        self.sample_usage(self.elapsed());
        if let Some(server) = &mut self.server
            && let Err(error) = server.finish(&mut self.recorder)
        {
            say(&format!("warning: {error}"));
        }
        // What follows may take a while, and a second signal may end it. What fails now fails again
        // when the files are closed, and is told then.
        let _ = self.recorder.flush();
        if let Some(progress) = self.progress {
            progress.finish_and_clear();
        }
        if let Some(mut texts) = self.texts
            && let Err(error) = texts.flush()
        {
            say(&format!("warning: {error}"));
        }
        Finished {
            recorder: self.recorder,
            server: self.server,
            sent: self.sent.figures(),
            in_flight: self.in_flight,
            dialled: self.dialled,
            client: self.client.figures(),
            anchor: self.started,
            aborted: self.stopped,
            notice: self.counter.and_then(|counter| counter.notice()),
        }
    }
}

/// Time since the run started; none before that.
fn since(started: Option<Anchor>) -> Nanos {
    started.map_or(Nanos::ZERO, |anchor| monotonic().since(anchor.monotonic))
}

/// Turns the first SIGINT or SIGTERM into a stop, and the second into the end of the process.
pub(super) fn stop_on_signals(
    stop: &watch::Sender<Stop>,
    quit: fn(Exit) -> !,
) -> anyhow::Result<()> {
    let stop = stop.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (mut interrupt, mut terminate) = {
        let _entered = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(async {
            for count in 0.. {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                if count > 0 {
                    quit(Exit::Interrupted);
                }
                Stop::All.request(&stop);
            }
        });
    })?;
    Ok(())
}
