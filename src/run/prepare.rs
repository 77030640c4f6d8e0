//! What a run needs before its first row is due: a source and its plan, servers, prompts.

use std::path::Path;

use super::content::Content;
use super::error::RunError;
use super::events::{Event, Observer};
use super::prompts::Prompts;
use super::settings::{FolderSettings, Settings, Target};
use super::setup::{bodies, setup, timeouts};
use super::traffic::Traffic;
use super::truth::TRUTH;
use crate::client::dialect::Api;
use crate::clock::Utc;
use crate::replay::Setup;
use crate::report::{Folder, TextFile};
use crate::schedule::PlanFacts;
use crate::server::{Address, Servers};
use crate::sim;
use crate::trace::Request;
use crate::units::Nanos;

/// A schedule's first row is not waited for longer than this.
const LONGEST_WAIT: Nanos = Nanos::from_secs(24 * 3600);

/// Where runs begin.
#[derive(Debug)]
pub struct Run;

/// A run whose source is open and whose plan is known. Nobody was asked anything.
#[derive(Debug)]
pub struct PlannedRun {
    settings: Settings,
    /// The source, shaped.
    pub traffic: Traffic,
    /// The plan; `None` of a stream, which can be read once only.
    pub plan: Option<PlanFacts>,
    content: Content,
}

/// A run that only waits for its start.
#[derive(Debug)]
pub struct Prepared {
    pub(super) settings: Settings,
    /// The source, shaped.
    pub traffic: Traffic,
    /// The plan; `None` of a stream, which can be read once only.
    pub plan: Option<PlanFacts>,
    /// The servers.
    pub servers: Servers,
    pub(super) content: Content,
    pub(super) prompts: Prompts,
    pub(super) setup: Setup,
    pub(super) texts: Option<TextFile>,
    /// Made already where a simulated server's log goes into it.
    pub(super) folder: Option<Folder>,
    /// When it was prepared, for the folder's name.
    pub(super) started: String,
}

impl Run {
    /// Opens the source, reaches the servers, fits the prompts and counts the plan.
    pub fn prepare(settings: Settings) -> Result<Prepared, RunError> {
        let silent = &mut |_: Event<'_>| {};
        Self::plan(settings, silent)?.reach(silent)
    }

    /// The same with rows of the caller's own, in order of their times, in the place of a source. They
    /// are asked for while they are sent, some megabytes ahead.
    pub fn prepare_rows(
        settings: Settings,
        rows: impl Iterator<Item = Request> + Send + 'static,
    ) -> Result<Prepared, RunError> {
        let traffic = Traffic::of_rows(rows, &settings.schedule, settings.server.api)?;
        let silent = &mut |_: Event<'_>| {};
        Self::plan_traffic(settings, traffic, silent)?.reach(silent)
    }

    /// The first half of [`Self::prepare`], where nobody is asked anything.
    pub fn plan(settings: Settings, observer: &mut dyn Observer) -> Result<PlannedRun, RunError> {
        let (source, api) = (&settings.source, settings.server.api);
        let traffic = Traffic::open(source, &settings.reading, &settings.schedule, api)?;
        Self::plan_traffic(settings, traffic, observer)
    }

    fn plan_traffic(
        settings: Settings,
        mut traffic: Traffic,
        observer: &mut dyn Observer,
    ) -> Result<PlannedRun, RunError> {
        for notice in traffic.notices() {
            observer.observe(Event::Note(notice));
        }
        let (api, seed) = (settings.server.api, settings.schedule.seed);
        let content = Content::read(&settings.content, api, seed, traffic.request_body())?;
        let plan = traffic.look_ahead()?;
        if let Some(notice) = traffic.idle_options(plan.as_ref()) {
            observer.observe(Event::Note(notice));
        }
        if let Some(plan) = &plan {
            check_plan(&settings, &traffic, plan)?;
            if let Some(warning) = natural_warning(api, plan) {
                observer.observe(Event::Warning(&warning));
            }
        } else if settings.output.plan.is_some() {
            return Err(RunError::Settings(NO_PLAN.to_owned()));
        }
        Ok(PlannedRun { settings, traffic, plan, content })
    }
}

/// Of a stream, where a plan is wanted.
pub(super) const NO_PLAN: &str = "the rows cannot be counted before they are sent, so there is no --dry-run \
    and no --plan\nhint: give a file for a stream, and --limit for a closed loop without an end";

/// What makes a plan not worth sending.
fn check_plan(settings: &Settings, traffic: &Traffic, plan: &PlanFacts) -> Result<(), RunError> {
    let refuse = |problem: String| Err(RunError::Settings(problem));
    if plan.rows == 0 {
        return refuse(traffic.nothing_left(plan));
    }
    let warmup = settings.limits.warmup;
    if let Some(last) = plan.last_due.filter(|last| warmup > *last) {
        return refuse(format!(
            "--warmup {:.3}s leaves nothing to measure: the last row is due at {:.3} s",
            warmup.as_secs_f64(),
            last.as_secs_f64()
        ));
    }
    if let Some(first) = plan.first_due.filter(|first| *first > LONGEST_WAIT) {
        return refuse(format!(
            "the first row is due after {:.1} days: are its times absolute?\nhint: --from T starts there, \
             --max-gap D shortens the wait, --time-unit names the unit",
            first.as_secs_f64() / 86_400.0
        ));
    }
    Ok(())
}

/// What answers that end by themselves come to on an API that ends them early.
fn natural_warning(api: Api, plan: &PlanFacts) -> Option<String> {
    let rows = plan.output.natural_rows;
    (rows > 0 && api == Api::Completions).then(|| {
        format!(
            "{rows} rows ask for no completion length, and servers of the completions API then end most answers \
             after 16 tokens; --api chat has no such limit, and --max-output-tok N asks for one"
        )
    })
}

impl PlannedRun {
    /// The plan, or why there is none to show.
    pub fn plan(&self) -> Result<&PlanFacts, RunError> {
        self.plan.as_ref().ok_or_else(|| RunError::Settings(NO_PLAN.to_owned()))
    }

    /// Writes the plan row by row where that is asked for.
    pub fn write_plan(&self) -> Result<(), RunError> {
        self.settings.output.plan.as_ref().map_or(Ok(()), |path| self.traffic.write_plan(path))
    }

    /// Reaches the servers and fits the prompts to them.
    pub fn reach(mut self, observer: &mut dyn Observer) -> Result<Prepared, RunError> {
        let texts = self.settings.content.save_text.clone();
        texts.as_deref().map_or(Ok(()), TextFile::check)?;
        let named = self.named_servers(observer)?;
        self.fit_to_server(named.as_ref())?;
        self.write_plan()?;
        let started = Utc::now().compact();
        let texts = texts.as_deref().map(TextFile::create).transpose()?;
        let (servers, folder) = match named {
            Some(servers) => {
                // Made when everything is ready: who is interrupted before that finds no empty folder.
                if let FolderSettings::At(path) = &self.settings.output.folder {
                    Folder::check(path)?;
                }
                (servers, None)
            }
            None => self.simulated_servers(&started)?,
        };
        let Self { settings, traffic, plan, content } = self;
        observer.observe(Event::Ready {
            traffic: &traffic,
            plan: plan.as_ref(),
            servers: &servers,
        });
        let mut setup = setup(&settings, &content, &servers, &started, &traffic, plan.as_ref());
        let mut prompts = Prompts::prepare(
            &settings,
            plan.as_ref(),
            content.clone(),
            &servers,
            &mut setup,
            observer,
        )?;
        if let Some(count) = settings.content.prime {
            prompts.prime(count, &setup, observer)?;
        }
        Ok(Prepared {
            settings,
            traffic,
            plan,
            servers,
            content,
            prompts,
            setup,
            texts,
            folder,
            started,
        })
    }

    /// The servers that were named, asked before any folder is made; `None` where one is to be simulated.
    fn named_servers(&self, observer: &mut dyn Observer) -> Result<Option<Servers>, RunError> {
        let Target::Servers(urls) = &self.settings.target else { return Ok(None) };
        let wishes = &self.settings.server;
        let addresses = Address::all(urls, wishes)?;
        let mut tell = |remark| observer.observe(Event::Server(remark));
        let mut servers = Servers::at(addresses, wishes, &mut tell)?;
        let bodies = bodies(&self.settings, &self.content, &servers, &Utc::now().compact());
        servers.preflight(timeouts(&self.settings), &bodies, wishes, &mut tell)?;
        Ok(Some(servers))
    }

    /// Holds the plan to the most that every server of the run takes, where one tells.
    fn fit_to_server(&mut self, named: Option<&Servers>) -> Result<(), RunError> {
        let max_len_tok = match (named, &self.settings.target) {
            (Some(servers), _) => servers.max_len_tok(),
            (None, Target::Virtual(sim)) => Some(sim.max_model_len_tok),
            (None, _) => Some(sim::Settings::default().max_model_len_tok),
        };
        if let Some(tok) = max_len_tok {
            let clip = self.settings.content.clip_to_server;
            self.plan = self.traffic.fit(tok, clip, self.plan.take())?;
        }
        Ok(())
    }

    /// A simulated server, and the folder that its log goes into.
    fn simulated_servers(&self, started: &str) -> Result<(Servers, Option<Folder>), RunError> {
        let settings = &self.settings;
        let folder = make_folder(settings, &self.traffic, started)?;
        let servers = match &settings.target {
            Target::Virtual(sim) => Servers::in_memory(sim.clone(), &settings.server)?,
            Target::Simulated { program } => {
                let sim =
                    sim::Settings { seed: settings.schedule.seed, ..sim::Settings::default() };
                let log = folder.as_ref().map(|folder| folder.file(TRUTH));
                Servers::simulated(program, sim, log.as_deref(), &settings.server)?
            }
            Target::Servers(_) => unreachable!("they are named"),
        };
        Ok((servers, folder))
    }
}

/// The folder of a run, where it has one.
pub(super) fn make_folder(
    settings: &Settings,
    traffic: &Traffic,
    started: &str,
) -> Result<Option<Folder>, RunError> {
    let create = |out: Option<&Path>, name: &str| Folder::create(out, name, started).map(Some);
    Ok(match &settings.output.folder {
        FolderSettings::None => None,
        FolderSettings::At(path) => create(Some(path), traffic.name())?,
        FolderSettings::Named(name) => create(None, name.as_deref().unwrap_or(traffic.name()))?,
    })
}
