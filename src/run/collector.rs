//! A run while it lasts: records to the recorder and to whoever observes it, figures to the end.

use tokio::sync::watch;

use super::client_monitor::ClientMonitor;
use super::error::RunError;
use super::events::{Event, Observer, Progress};
use super::predial;
use super::server_count::ServerCount;
use super::token_count::TextCounter;
use crate::cli::usage;
use crate::client::Dialled;
use crate::clock::{Anchor, Clock, monotonic};
use crate::metrics::abort::{AbortReason, AbortWatch};
use crate::metrics::client_figures::ClientFigures;
use crate::metrics::fidelity::{SentFigures, SentTimes};
use crate::metrics::little::InFlight;
use crate::record::{Outcome, StreamRecord};
use crate::replay;
use crate::replay::drain::{Shared, Stop};
use crate::report::{Recorder, TextFile};
use crate::units::Nanos;

/// Takes the events of a replay.
pub(super) struct Collector<'a> {
    pub(super) recorder: Recorder,
    pub(super) server: Option<ServerCount>,
    pub(super) texts: Option<TextFile>,
    pub(super) counter: Option<TextCounter>,
    /// Rows of the plan, where they are known.
    pub(super) planned: Option<u64>,
    pub(super) abort: AbortWatch,
    pub(super) stop: &'a watch::Sender<Stop>,
    pub(super) observer: &'a mut dyn Observer,
    /// Whose time the run is in; `None`: the machine's.
    pub(super) clock: Option<Clock>,
    pub(super) seen: Seen,
}

/// What was seen of a run so far.
#[derive(Default)]
pub(super) struct Seen {
    in_flight: InFlight,
    client: ClientMonitor,
    sent: SentTimes,
    dialled: Option<Dialled>,
    started: Option<Anchor>,
    ended: u64,
    failed: u64,
    output_tok: u64,
    next_sample: Nanos,
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
        let used = usage::cpu();
        self.client.look(elapsed, used);
        if let Some(used) = used {
            self.recorder.cpu(elapsed, used);
        }
        if let Some(bytes) = usage::resident_bytes() {
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

    fn progress(&mut self, sent: u64) {
        let progress = Progress {
            elapsed_s: self.elapsed().as_secs_f64(),
            planned: self.planned,
            sent,
            ended: self.ended,
            failed: self.failed,
            output_tok: self.output_tok,
        };
        self.observer.observe(Event::Progress(progress));
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
