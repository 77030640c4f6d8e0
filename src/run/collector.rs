//! A run while it lasts: records to the recorder and to whoever observes it, figures to the end.

use tokio::sync::watch;

use super::client_monitor::ClientMonitor;
use super::error::RunError;
use super::events::{Event, Observer, Progress};
use super::predial;
use super::server_count::ServerCount;
use super::token_count::TextCounter;
use crate::client::Dialled;
use crate::clock::{Anchor, Clock, monotonic};
use crate::machine::process;
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

impl Seen {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        Self { client: ClientMonitor::new(), ..Self::default() }
    }
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

impl Collector<'_> {
    /// Takes one event; an error is one of writing results.
    pub(super) fn take(&mut self, event: replay::Event<'_>) -> Result<(), RunError> {
        match event {
            replay::Event::Dialled(dialled) => {
                if let Some(warning) = predial::warning(&dialled) {
                    self.observer.observe(Event::Warning(&warning));
                }
                self.seen.dialled = Some(dialled);
            }
            replay::Event::Started(anchor) => {
                self.seen.started = Some(anchor);
                self.recorder.starts(anchor.utc.0);
                if let Some(server) = &mut self.server {
                    server.begins(anchor);
                }
                self.observer.observe(Event::Started(anchor));
            }
            replay::Event::Ended(record) => self.record(*record)?,
            replay::Event::Settled(before) => {
                self.recorder.settled(before).map_err(RunError::Results)?;
            }
            replay::Event::Tick(shared) => self.tick(shared)?,
        }
        let elapsed = self.elapsed();
        if elapsed >= self.seen.next_sample {
            self.seen.next_sample = elapsed + SAMPLE_EVERY;
            self.sample_usage(elapsed);
        }
        self.recorder.flush_if_due(elapsed).map_err(RunError::Results)
    }

    fn tick(&mut self, shared: &Shared) -> Result<(), RunError> {
        self.seen.client.hear(shared);
        self.texts.as_mut().map_or(Ok(()), TextFile::flush)?;
        if let Some(server) = &mut self.server {
            server.take(&mut self.recorder).map_err(RunError::Results)?;
        }
        self.seen.in_flight.sees(self.elapsed(), shared.sent_count());
        self.progress(shared.sent_count());
        Ok(())
    }

    /// What this process uses; in virtual time it says nothing of the run.
    fn sample_usage(&mut self, elapsed: Nanos) {
        if self.clock.is_some() {
            return;
        }
        let used = process::cpu();
        self.seen.client.look(elapsed, used);
        if let Some(used) = used {
            self.recorder.cpu(elapsed, used);
        }
        if let Some(bytes) = process::resident_bytes() {
            self.recorder.memory(elapsed, bytes);
        }
    }

    fn record(&mut self, mut record: StreamRecord) -> Result<(), RunError> {
        let elapsed = self.elapsed();
        if let Some(counter) = &mut self.counter {
            counter.count(&mut record, elapsed);
        }
        let seen = &mut self.seen;
        seen.ended += 1;
        seen.in_flight.ended(&record);
        seen.failed += u64::from(record.outcome.is_error());
        if record.outcome == Outcome::Ok {
            let counted = record.usage.and_then(|usage| usage.output_tok);
            let by_text = record.text_tok.map(|text| text.output_tok);
            seen.output_tok += counted.or(by_text).unwrap_or(record.tokens.count());
        }
        if seen.stopped.is_none()
            && let Some(reason) = self.abort.ended(&record)
        {
            self.observer.observe(Event::StoppingEarly(&reason));
            Stop::Sending.request(self.stop);
            seen.stopped = Some(reason);
        }
        seen.sent.add(&record);
        self.observer.observe(Event::Ended(&record));
        if let Some(texts) = &mut self.texts {
            texts.write(&record)?;
        }
        self.recorder.record(record).map_err(RunError::Results)
    }

    /// Time since the run started; none before that.
    fn elapsed(&self) -> Nanos {
        let now = || self.clock.as_ref().map_or_else(monotonic, Clock::now);
        self.seen.started.map_or(Nanos::ZERO, |anchor| now().since(anchor.monotonic))
    }

    fn progress(&mut self, sent: u64) {
        let progress = Progress {
            elapsed_s: self.elapsed().as_secs_f64(),
            planned: self.planned,
            sent,
            ended: self.seen.ended,
            failed: self.seen.failed,
            output_tok: self.seen.output_tok,
        };
        self.observer.observe(Event::Progress(progress));
    }

    /// What the run leaves.
    pub(super) fn finish(mut self) -> Finished {
        self.sample_usage(self.elapsed());
        if let Some(server) = &mut self.server
            && let Err(error) = server.finish(&mut self.recorder)
        {
            self.observer.observe(Event::Warning(&error.to_string()));
        }
        // What follows may take a while, and a second signal may end it. What fails now fails again
        // when the files are closed, and is told then.
        let _ = self.recorder.flush();
        self.observer.observe(Event::Over);
        if let Some(mut texts) = self.texts
            && let Err(error) = texts.flush()
        {
            self.observer.observe(Event::Warning(&error.to_string()));
        }
        let seen = self.seen;
        Finished {
            recorder: self.recorder,
            server: self.server,
            sent: seen.sent.figures(),
            in_flight: seen.in_flight,
            dialled: seen.dialled,
            client: seen.client.figures(),
            anchor: seen.started,
            aborted: seen.stopped,
            notice: self.counter.and_then(|counter| counter.notice()),
        }
    }
}
