//! The source of a run: a trace or a workload, shaped into a plan.

mod describe;
mod scaling;

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::value::RawValue;

use self::scaling::RateScaling;
pub(super) use self::scaling::Rows;
use super::error::RunError;
use super::settings::ScheduleSettings;
use crate::client::dialect::Api;
use crate::schedule::fidelity::FidelityFigures;
use crate::schedule::{self, Plan, PlanFacts, ServerLength, Shape};
use crate::server::body_keys;
use crate::trace::Request;
use crate::trace::read::{self, Input, ReadOptions, Trace, TraceClock, TraceError};
use crate::units::Nanos;
use crate::workload::servegen::{self, ServeGen};
use crate::workload::{self, Closed, Workload};

/// Where the rows come from, and how they are shaped.
#[derive(Debug)]
pub struct Traffic {
    kind: Kind,
    name: String,
    shape: Shape,
    seed: u64,
    repeat: u64,
    api: Api,
    path: PathBuf,
    scaling: RateScaling,
    notices: Vec<String>,
    fidelity: Option<FidelityFigures>,
}

#[derive(Clone)]
enum Kind {
    Trace(Arc<Trace>),
    Workload(Arc<Workload>),
    Clients(Arc<ServeGen>),
    /// Rows that the caller makes, read once.
    Own(OwnRows),
}

/// Rows that a caller makes while they are sent.
#[derive(Clone)]
struct OwnRows(Arc<Mutex<Option<Rows>>>);

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Trace(_) => "Trace",
            Self::Workload(_) => "Workload",
            Self::Clients(_) => "Clients",
            Self::Own(_) => "Own",
        })
    }
}

impl Kind {
    /// A pass over the source.
    fn rows(&self, seed: u64) -> Result<Rows, TraceError> {
        Ok(match self {
            Self::Trace(trace) => trace.rows()?,
            Self::Workload(workload) => Box::new(workload.rows(seed).map(Ok)),
            Self::Clients(clients) => Box::new(clients.rows(seed).map(Ok)),
            // Of a second pass nothing is left.
            Self::Own(OwnRows(rows)) => {
                let rows = rows.lock().unwrap_or_else(PoisonError::into_inner).take();
                rows.unwrap_or_else(|| Box::new(std::iter::empty()))
            }
        })
    }
}

impl Traffic {
    /// Opens the source; a trace file gets its validating pass here.
    pub fn open(
        path: &Path,
        reading: &ReadOptions,
        settings: &ScheduleSettings,
        api: Api,
    ) -> Result<Self, RunError> {
        // A closed loop sends without looking at times.
        Self::open_with(path, reading, settings, api, settings.concurrency.is_none())
    }

    /// Opens the source to look at it, or to send it; only who sends by the clock `wants_times`.
    pub fn open_with(
        path: &Path,
        reading: &ReadOptions,
        settings: &ScheduleSettings,
        api: Api,
        wants_times: bool,
    ) -> Result<Self, RunError> {
        if let (Some(from), Some(to)) = (settings.shape.from, settings.shape.to)
            && from >= to
        {
            let (from_s, to_s) = (from.as_secs_f64(), to.as_secs_f64());
            return Err(RunError::Settings(format!(
                "--from {from_s} s is not before --to {to_s} s, so nothing lies between them"
            )));
        }
        let mut shape =
            Shape { closed_loop: settings.concurrency.is_some(), ..settings.shape.clone() };
        let stem = path.file_stem().and_then(OsStr::to_str).unwrap_or("run");
        let (kind, name, clock, rows) = if path.extension() == Some(OsStr::new("toml")) {
            let workload = workload::load(path)?;
            let request = workload.request().map(|keys| ("[request]", keys));
            let of_classes = workload.class_requests().map(|keys| ("[class.request]", keys));
            for (section, keys) in request.into_iter().chain(of_classes) {
                body_keys::check(&format!("{section} of {}", path.display()), keys)?;
            }
            if !workload.has_end()
                && settings.shape.duration.is_none()
                && settings.shape.limit.is_none()
            {
                return Err(RunError::Settings(format!(
                    "{} has no end of its own\nhint: give --duration 60s or --limit 1000, or set \
                     `duration` in the file",
                    path.display()
                )));
            }
            shape.closed_loop |= workload.closed().is_some();
            let name = workload.name().to_owned();
            (Kind::Workload(Arc::new(workload)), name, TraceClock::Common, None)
        } else if path.is_dir() && servegen::is_servegen(path) {
            let clients = servegen::load(path)?;
            let (name, rows) = (clients.name().to_owned(), clients.requests());
            (Kind::Clients(Arc::new(clients)), name, TraceClock::Common, Some(rows))
        } else {
            let is_stdin = path == Path::new("-");
            if is_stdin && settings.repeat > 1 {
                return Err(RunError::Settings(
                    "--repeat: standard input can be read once only\nhint: give a file".to_owned(),
                ));
            }
            let input = if is_stdin { Input::Stdin } else { Input::File(path.to_owned()) };
            let name = if is_stdin { "stdin" } else { stem };
            let trace = read::open(input, reading.clone())?;
            let wants_times = wants_times || settings.rate.is_some();
            let clock = if wants_times { trace.clock() } else { TraceClock::Common };
            let rows = trace.facts().map(|facts| facts.rows_read);
            (Kind::Trace(Arc::new(trace)), name.to_owned(), clock, rows)
        };
        Self {
            scaling: RateScaling::new(settings, clock, rows, &name)?,
            kind,
            name,
            shape,
            seed: settings.seed,
            repeat: settings.repeat,
            api,
            path: path.to_owned(),
            notices: Vec::new(),
            fidelity: None,
        }
        .settled()
    }

    /// Rows that the caller makes while they are sent, in order of their times.
    pub(super) fn of_rows(
        rows: impl Iterator<Item = Request> + Send + 'static,
        settings: &ScheduleSettings,
        api: Api,
    ) -> Result<Self, RunError> {
        let own = OwnRows(Arc::new(Mutex::new(Some(Box::new(rows.map(Ok))))));
        Self {
            scaling: RateScaling::new(settings, TraceClock::Common, None, "own rows")?,
            kind: Kind::Own(own),
            name: "own".to_owned(),
            shape: Shape { closed_loop: settings.concurrency.is_some(), ..settings.shape.clone() },
            seed: settings.seed,
            repeat: settings.repeat,
            api,
            path: PathBuf::new(),
            notices: Vec::new(),
            fidelity: None,
        }
        .settled()
    }

    /// Looks at the rows once where their rate or grain decides how they are shaped.
    fn settled(mut self) -> Result<Self, RunError> {
        if self.repeat > 1 && self.is_stream() {
            return Err(RunError::Settings(format!(
                "--repeat: {} has no end of its own after which it could begin again\nhint: give --limit \
                 1000, or set `duration` in the file",
                self.path.display()
            )));
        }
        if self.scaling.wants_pass() {
            if self.is_stream() {
                return Err(RunError::Settings("a stream can be read once only, so it takes no --rate and no --dequantise\nhint: give a \
                     file".to_owned()));
            }
            let rows = self.kind.rows(self.seed)?;
            let mut shape = Shape { duration: None, limit: None, ..self.shape.clone() };
            if let Kind::Workload(_) = self.kind {
                shape = self.shape.clone();
            }
            self.scaling.settle(rows, &shape)?;
        }
        if let Some(speed) = self.scaling.speed() {
            self.shape.speed = speed;
        }
        self.notices = match &self.kind {
            Kind::Trace(trace) => trace.notices().to_vec(),
            Kind::Workload(_) | Kind::Own(_) => Vec::new(),
            Kind::Clients(clients) => clients.notices().to_vec(),
        };
        self.notices.extend(self.scaling.notices());
        Ok(self)
    }

    /// The trace, where the source is one.
    #[must_use]
    pub fn trace(&self) -> Option<&Trace> {
        match &self.kind {
            Kind::Trace(trace) => Some(trace),
            _ => None,
        }
    }

    /// Whether rows come by one clock, their own or that of a rate.
    #[must_use]
    pub fn has_times(&self) -> bool {
        self.trace().is_none_or(|trace| trace.clock() == TraceClock::Common)
            || self.scaling.sets_times()
    }

    /// Whether the rows cannot be counted before they are sent: those of a stream, and of a workload
    /// without an end in a closed loop, where time alone ends the run.
    fn is_stream(&self) -> bool {
        match &self.kind {
            Kind::Clients(_) => false,
            Kind::Own(_) => true,
            Kind::Trace(trace) => trace.facts().is_none(),
            Kind::Workload(workload) => {
                self.shape.closed_loop && self.shape.limit.is_none() && !workload.has_rows_end()
            }
        }
    }

    /// The closed loop that the workload asks for, if it does.
    #[must_use]
    pub fn closed(&self) -> Option<(Closed, Option<Nanos>)> {
        match &self.kind {
            Kind::Trace(_) | Kind::Clients(_) | Kind::Own(_) => None,
            Kind::Workload(workload) => Some((workload.closed()?, workload.duration())),
        }
    }

    /// The planned rows, each at the time at which it is due; later turns, whose due time nobody knows
    /// yet, at their own, as the speed makes it.
    pub fn shaped_rows(
        &self,
    ) -> Result<impl Iterator<Item = Result<Request, TraceError>> + use<>, TraceError> {
        let (speed, from) = (self.shape.speed, self.shape.from.unwrap_or_default());
        Ok(self.plan()?.map(move |planned| {
            let planned = planned?;
            let own = speed.shorten(planned.request.at.since(from));
            Ok(Request { at: planned.due.unwrap_or(own), ..planned.request })
        }))
    }

    /// What the source is called: that of the workload, or of the file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What a person should know about the source.
    #[must_use]
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// What a workload wants in every body.
    #[must_use]
    pub fn request_body(&self) -> Option<&RawValue> {
        match &self.kind {
            Kind::Trace(_) | Kind::Clients(_) | Kind::Own(_) => None,
            Kind::Workload(workload) => workload.request(),
        }
    }

    /// The plan, from its start. Stdin gives it once.
    pub fn plan(&self) -> Result<Plan<Rows>, TraceError> {
        let scaling = self.scaling.clone();
        let rows = scaling.apply(self.kind.rows(self.seed)?)?;
        let (kind, seed) = (self.kind.clone(), self.seed);
        // A file that cannot be read again is an error in the place of its rows.
        let passes = std::iter::repeat_with(move || {
            let rows = kind.rows(seed).and_then(|rows| scaling.apply(rows));
            rows.unwrap_or_else(|error| Box::new(std::iter::once(Err(error))))
        });
        Ok(schedule::plan(rows, &self.shape).repeated(self.repeat - 1, passes))
    }

    /// The plan's figures, by running through it once; `None` where that would use it up.
    /// A row that the API cannot carry is found here, before any load.
    pub fn look_ahead(&mut self) -> Result<Option<PlanFacts>, RunError> {
        if self.is_stream() {
            return Ok(None);
        }
        let mut plan = self.plan()?.with_fidelity();
        for planned in &mut plan {
            let request = planned?.request;
            let has_messages = request.content.is_some_and(|content| content.messages.is_some());
            if has_messages && self.api == Api::Completions {
                return Err(RunError::Settings(format!(
                    "row {} of {} has `messages`, which the completions API does not take\nhint: \
                     --api chat",
                    request.row, self.name
                )));
            }
        }
        // A generator may go on for ever; a file is worth reading to its end for what was left out.
        if !matches!(self.kind, Kind::Workload(_)) {
            plan.read_rest()?;
        }
        self.fidelity = plan.fidelity().map(|both| both.figures(self.scaling.before()));
        Ok(Some(plan.facts().clone()))
    }

    /// Holds the plan to what the server takes in all, and counts again where that cuts anything. Rows
    /// that do not fit are an error; those of a stream are not known yet, and the server will tell.
    pub fn fit(
        &mut self,
        tok: u64,
        clip: bool,
        facts: Option<PlanFacts>,
    ) -> Result<Option<PlanFacts>, RunError> {
        if facts.as_ref().is_some_and(|facts| facts.longest_tok <= tok) {
            return Ok(facts);
        }
        self.shape.server_length = (clip || facts.is_some()).then_some(ServerLength { tok, clip });
        let Some(facts) = self.look_ahead()? else { return Ok(None) };
        if facts.too_long > 0 {
            let (rows, too_long) = (facts.rows, facts.too_long);
            let hint = if clip {
                "their words come from the trace and cannot be cut; leave these rows out"
            } else {
                "--clip-to-server cuts them to fit; --max-input-tok and --max-output-tok cut where \
                 you say"
            };
            return Err(RunError::Settings(format!(
                "{too_long} of {rows} rows ask for more than the {tok} tokens that the server takes \
                 for prompt and completion (the first is row {}, the longest asks for {})\nhint: {hint}",
                facts.first_too_long.unwrap_or_default(),
                facts.longest_tok,
            )));
        }
        Ok(Some(facts))
    }

    /// Writes the plan row by row.
    pub fn write_plan(&self, path: &Path) -> Result<(), RunError> {
        let failed = |reason: String| RunError::Plan { path: path.to_owned(), reason };
        let same = |a: &Path, b: &Path| Some(a.canonicalize().ok()? == b.canonicalize().ok()?);
        if same(path, &self.path) == Some(true) {
            return Err(RunError::Settings(format!(
                "--plan names the source itself: {}\nhint: give another file",
                path.display()
            )));
        }
        let file = std::fs::File::create(path).map_err(|error| failed(error.to_string()))?;
        let out = std::io::BufWriter::with_capacity(1 << 16, file);
        schedule::write_plan(out, self.plan()?).map_err(|error| failed(error.to_string()))
    }

    /// What could not be said before the rows were read: counts on a stream.
    #[must_use]
    pub fn late_notices(&self) -> Vec<String> {
        match &self.kind {
            Kind::Trace(trace) => trace.late_notices(),
            Kind::Workload(_) | Kind::Clients(_) | Kind::Own(_) => Vec::new(),
        }
    }
}
