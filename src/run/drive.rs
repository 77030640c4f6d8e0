//! A prepared run, carried out.

use std::sync::Arc;

use tokio::sync::watch;

use super::calibration::{
    Scratch, UNKNOWN_ANSWER_TOK, mean_answer_tok, measure, of_plan, own_error,
};
use super::collector::{Collector, Seen};
use super::error::RunError;
use super::events::{Event, Observer};
use super::manifest::Known;
use super::prepare::{Prepared, make_folder};
use super::prompts::below_least;
use super::report::{Draft, Ending, Report};
use super::scraping::Scraping;
use super::server_count::ServerCount;
use super::settings::Target;
use super::setup::shortage;
use super::token_count::TextCounter;
use super::truth::TRUTH;
use crate::clock::{Clock, VirtualTime};
use crate::lab;
use crate::machine::disk;
use crate::metrics::Window;
use crate::metrics::abort::AbortWatch;
use crate::replay::drain::Stop;
use crate::replay::{self, Mode};
use crate::report::{Folder, OwnError, Recorder, WriteError};
use crate::sim;

impl Prepared {
    /// Sends the plan and follows every stream to its end. An error is one of before the first row; what
    /// went wrong later is in the report, beside what was measured. `stop` ends the run early.
    pub fn drive(
        mut self,
        observer: &mut dyn Observer,
        stop: &watch::Sender<Stop>,
    ) -> Result<Report, RunError> {
        let own_error = self.calibrate(observer, stop)?;
        let mut note = |notice: &str| observer.observe(Event::Note(notice));
        let scraping = Scraping::of(&self.settings, &self.servers, &mut note)?;
        let folder = match self.folder.take() {
            Some(folder) => Some(folder),
            None => make_folder(&self.settings, &self.traffic, &self.started)?,
        };
        if let Some(warning) = self.disk_warning(folder.as_ref()) {
            observer.observe(Event::Warning(&warning));
        }
        let window = self.window();
        let (chunks, limits) = (self.settings.output.chunks, &self.settings.limits);
        let recorder = Recorder::create(folder.as_ref(), window, chunks, limits.retries > 0)?
            .with_reader_pace(limits.reader_pace);
        let server =
            scraping.map(|scraping| ServerCount::new(scraping, folder.as_ref())).transpose()?;
        let draft = self.draft(folder, own_error.as_ref());
        draft.write_manifest()?;
        if let Some(warning) = shortage(&self.setup, self.plan.as_ref()) {
            observer.observe(Event::Warning(&warning));
        }
        let judgement = &self.settings.judgement;
        let time = match &self.settings.target {
            Target::Virtual(_) => Some(Arc::<VirtualTime>::default()),
            Target::Servers(_) | Target::Simulated { .. } => None,
        };
        let mut collector = Collector {
            recorder,
            server,
            texts: self.texts.take(),
            counter: self.content.tokenizer.clone().map(TextCounter::new),
            planned: self.plan.as_ref().map(|plan| plan.rows),
            abort: AbortWatch::new(&judgement.abort_on, judgement.max_refused),
            stop,
            observer,
            clock: time.as_ref().map(Clock::of_virtual),
            seen: Seen::new(),
        };
        let ran = self.replay(&mut collector, time.as_ref(), draft.folder.as_ref());
        let finished = collector.finish();
        let planned = self.traffic.planned().cloned();
        let mut draft = draft;
        draft.manifest.fidelity = self.traffic.fidelity(finished.sent.as_ref());
        let mut notices = self.traffic.late_notices();
        notices.extend(below_least(&self.setup));
        let capped = self.settings.schedule.max_in_flight.is_some();
        // Its log is whole once it has ended.
        let has_truth = self.servers.end() && draft.folder.is_some();
        let ending = Ending { broken: ran.err(), capped, has_truth, notices, planned, window };
        Ok(draft.finish(finished, ending, stop))
    }

    /// Sends the plan, on sockets or in virtual time.
    fn replay(
        &self,
        collector: &mut Collector<'_>,
        time: Option<&Arc<VirtualTime>>,
        folder: Option<&Folder>,
    ) -> Result<(), RunError> {
        let stop = collector.stop;
        let plan = self.traffic.plan()?;
        let (Some(time), Target::Virtual(sim)) = (time, &self.settings.target) else {
            return Ok(replay::run(plan, &self.setup, stop, |event| collector.take(event))?);
        };
        let setup = self.virtual_setup(sim);
        let (ran, log) = lab::drive(plan, &setup, time, stop, |event| collector.take(event))?;
        if let Some(path) = folder.map(|folder| folder.file(TRUTH)) {
            std::fs::write(&path, log).map_err(|source| WriteError { path, source })?;
        }
        Ok(ran?)
    }

    fn virtual_setup(&self, sim: &sim::Settings) -> lab::Setup {
        let client = self.setup.targets[0].settings.clone();
        let (bodies, mode) = (self.setup.bodies.clone(), self.setup.mode);
        let (until, drain) = (self.setup.until, self.setup.drain);
        lab::Setup { client, bodies, mode, until, drain, ..lab::Setup::chat(sim.clone()) }
    }

    fn draft(&self, folder: Option<Folder>, own_error: Option<&OwnError>) -> Draft {
        let known = Known {
            settings: &self.settings,
            traffic: &self.traffic,
            plan: self.plan.as_ref(),
            servers: &self.servers,
            prompts: &self.prompts,
            own_error,
        };
        Draft { manifest: known.manifest(), facts: known.facts(folder.as_ref()), folder }
    }

    /// Turns are due when they are due: the last of them is known at the end.
    fn window(&self) -> Window {
        let paced = self.plan.as_ref().filter(|plan| plan.think_rows == 0);
        let last_due = paced.and_then(|plan| plan.last_due);
        Window { warmup: self.settings.limits.warmup, last_due }
    }

    fn disk_warning(&self, folder: Option<&Folder>) -> Option<String> {
        let plan = self.plan.as_ref()?;
        let expected = disk::Expected {
            rows: plan.rows,
            output_tok: plan.output.limited_tok,
            is_open_ended: plan.output.total().is_none(),
            chunks: self.settings.output.chunks,
        };
        expected.warning(folder?.path())
    }

    /// Measures this client's own error under the plan's load, where that is asked for and known ahead.
    fn calibrate(
        &mut self,
        observer: &mut dyn Observer,
        stop: &watch::Sender<Stop>,
    ) -> Result<Option<OwnError>, RunError> {
        let Some(program) = &self.settings.limits.calibrate_with else { return Ok(None) };
        let Some(plan) = &self.plan else {
            let warning = "not calibrated: a stream's rate is not known ahead (underfire calibrate takes \
                           one)";
            observer.observe(Event::Warning(warning));
            self.prompts.notices.push(warning.to_owned());
            return Ok(None);
        };
        if mean_answer_tok(plan).is_none() {
            observer.observe(Event::Note(&format!(
                "how long answers will be is unknown; calibrated as for {UNKNOWN_ANSWER_TOK} tokens each"
            )));
        }
        let load = of_plan(plan, slots(self.setup.mode));
        let (workers, scratch) = (self.setup.workers, Scratch::make()?);
        let calibration = measure(load, workers, program, scratch.folder(), stop, observer)?;
        if *stop.borrow() == Stop::All {
            return Err(RunError::Interrupted);
        }
        Ok(match own_error(&calibration) {
            Ok(own_error) => Some(own_error),
            Err(warning) => {
                observer.observe(Event::Warning(&warning));
                self.prompts.notices.push(warning);
                None
            }
        })
    }
}

/// The slots of a closed loop.
fn slots(mode: Mode) -> Option<usize> {
    match mode {
        Mode::Closed { slots, .. } => Some(slots),
        Mode::Open | Mode::Capped { .. } => None,
    }
}
