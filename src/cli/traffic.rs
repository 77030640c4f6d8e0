//! The source of a run: a trace or a workload, shaped into a plan.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::args::{ReadArgs, ShapeArgs};
use super::console::say;
use super::fidelity;
use super::rating::{Rating, Rows};
use crate::client::dialect::Api;
use crate::metrics::fidelity::SentFigures;
use crate::schedule::fidelity::FidelityFigures;
use crate::schedule::{self, Plan, PlanFacts, ServerLength, Shape};
use crate::trace::read::{self, Input, ReadOptions, Trace, TraceClock, TraceError};
use crate::units::Nanos;
use crate::workload::{self, Closed, Workload};

/// Where the rows come from, and how they are shaped.
pub(super) struct Traffic {
    kind: Kind,
    name: String,
    shape: Shape,
    seed: u64,
    repeat: u64,
    api: Api,
    path: PathBuf,
    rating: Rating,
    notices: Vec<String>,
    fidelity: Option<FidelityFigures>,
}

#[derive(Clone)]
enum Kind {
    Trace(Arc<Trace>),
    Workload(Arc<Workload>),
}

impl Kind {
    /// A pass over the source.
    fn rows(&self, seed: u64) -> Result<Rows, TraceError> {
        Ok(match self {
            Self::Trace(trace) => trace.rows()?,
            Self::Workload(workload) => Box::new(workload.rows(seed).map(Ok)),
        })
    }
}

impl Traffic {
    /// Opens the source; a trace file gets its validating pass here.
    pub(super) fn open(
        path: &Path,
        reading: &ReadArgs,
        shaping: &ShapeArgs,
        api: Api,
    ) -> anyhow::Result<Self> {
        let mut shape = shape(shaping);
        let stem = path.file_stem().and_then(OsStr::to_str).unwrap_or("run");
        if path.extension() == Some(OsStr::new("toml")) {
            let workload = workload::load(path)?;
            if !workload.has_end() && shape.duration.is_none() && shape.limit.is_none() {
                bail!(
                    "{} has no end of its own\nhint: give --duration 60s or --limit 1000, or set \
                     `duration` in the file",
                    path.display()
                );
            }
            shape.closed_loop |= workload.closed().is_some();
            let name = workload.name().to_owned();
            let rating = Rating::new(shaping, TraceClock::Common, None, &name)?;
            return Self {
                kind: Kind::Workload(Arc::new(workload)),
                name,
                shape,
                seed: shaping.seed,
                repeat: shaping.repeat,
                api,
                path: path.to_owned(),
                rating,
                notices: Vec::new(),
                fidelity: None,
            }
            .settled();
        }
        let input =
            if path == Path::new("-") { Input::Stdin } else { Input::File(path.to_owned()) };
        if shaping.repeat > 1 && matches!(input, Input::Stdin) {
            bail!("--repeat: standard input can be read once only\nhint: give a file");
        }
        let name = if matches!(input, Input::Stdin) { "stdin" } else { stem };
        let trace = read::open(input, read_options(reading))?;
        // A closed loop sends without looking at times.
        let clock = if shape.closed_loop { TraceClock::Common } else { trace.clock() };
        let rows_read = trace.facts().map(|facts| facts.rows_read);
        let rating = Rating::new(shaping, clock, rows_read, name)?;
        Self {
            kind: Kind::Trace(Arc::new(trace)),
            name: name.to_owned(),
            shape,
            seed: shaping.seed,
            repeat: shaping.repeat,
            api,
            path: path.to_owned(),
            rating,
            notices: Vec::new(),
            fidelity: None,
        }
        .settled()
    }

    /// Looks at the rows once where their rate or grain decides how they are shaped.
    fn settled(mut self) -> anyhow::Result<Self> {
        if self.repeat > 1 && self.is_stream() {
            bail!(
                "--repeat: {} has no end of its own after which it could begin again\nhint: give --limit \
                 1000, or set `duration` in the file",
                self.path.display()
            );
        }
        if self.rating.wants_pass() {
            if self.is_stream() {
                bail!(
                    "a stream can be read once only, so it takes no --rate and no --dequantise\nhint: give a \
                     file"
                );
            }
            let rows = self.kind.rows(self.seed)?;
            let mut shape = Shape { duration: None, limit: None, ..self.shape.clone() };
            if let Kind::Workload(_) = self.kind {
                shape = self.shape.clone();
            }
            self.rating.settle(rows, &shape)?;
        }
        if let Some(speed) = self.rating.speed() {
            self.shape.speed = speed;
        }
        self.notices = match &self.kind {
            Kind::Trace(trace) => trace.notices().to_vec(),
            Kind::Workload(_) => Vec::new(),
        };
        self.notices.extend(self.rating.notices());
        Ok(self)
    }

    /// Whether the rows can be counted before they are sent: not those of a stream, nor of a workload
    /// without an end in a closed loop, where time alone ends the run.
    fn is_stream(&self) -> bool {
        match &self.kind {
            Kind::Trace(trace) => trace.facts().is_none(),
            Kind::Workload(workload) => {
                self.shape.closed_loop && self.shape.limit.is_none() && !workload.has_rows_end()
            }
        }
    }

    /// The closed loop that the workload asks for, if it does.
    pub(super) fn closed(&self) -> Option<(Closed, Option<Nanos>)> {
        match &self.kind {
            Kind::Trace(_) => None,
            Kind::Workload(workload) => Some((workload.closed()?, workload.duration())),
        }
    }

    /// A pause, as the plan's speed makes it.
    pub(super) fn shorten(&self, pause: Nanos) -> Nanos {
        self.shape.speed.shorten(pause)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// What a person should know about the source.
    pub(super) fn notices(&self) -> &[String] {
        &self.notices
    }

    /// What a workload wants in every body.
    pub(super) fn request_body(&self) -> Option<&RawValue> {
        match &self.kind {
            Kind::Trace(_) => None,
            Kind::Workload(workload) => workload.request(),
        }
    }

    /// The plan, from its start. Stdin gives it once.
    pub(super) fn plan(&self) -> Result<Plan<Rows>, TraceError> {
        let rating = self.rating.clone();
        let rows = rating.apply(self.kind.rows(self.seed)?)?;
        let (kind, seed) = (self.kind.clone(), self.seed);
        // A file that cannot be read again is an error in the place of its rows.
        let passes = std::iter::repeat_with(move || {
            let rows = kind.rows(seed).and_then(|rows| rating.apply(rows));
            rows.unwrap_or_else(|error| Box::new(std::iter::once(Err(error))))
        });
        Ok(schedule::plan(rows, &self.shape).repeated(self.repeat - 1, passes))
    }

    /// The plan's figures, by running through it once; `None` where that would use it up.
    /// A row that the API cannot carry is found here, before any load.
    pub(super) fn look_ahead(&mut self) -> anyhow::Result<Option<PlanFacts>> {
        if self.is_stream() {
            return Ok(None);
        }
        let mut plan = self.plan()?.with_fidelity();
        for planned in &mut plan {
            let request = planned?.request;
            let has_messages = request.content.is_some_and(|content| content.messages.is_some());
            if has_messages && self.api == Api::Completions {
                bail!(
                    "row {} of {} has `messages`, which the completions API does not take\nhint: \
                     --api chat",
                    request.row,
                    self.name
                );
            }
        }
        // A generator may go on for ever; a file is worth reading to its end for what was left out.
        if let Kind::Trace(_) = self.kind {
            plan.read_rest()?;
        }
        self.fidelity = plan.fidelity().map(|both| both.figures(self.rating.before()));
        Ok(Some(plan.facts().clone()))
    }

    /// Holds the plan to what the server takes in all, and counts again where that cuts anything. Rows
    /// that do not fit are an error; those of a stream are not known yet, and the server will tell.
    pub(super) fn fit(
        &mut self,
        tok: u64,
        clip: bool,
        facts: Option<PlanFacts>,
    ) -> anyhow::Result<Option<PlanFacts>> {
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
            bail!(
                "{too_long} of {rows} rows ask for more than the {tok} tokens that the server takes \
                 for prompt and completion (the first is row {}, the longest asks for {})\nhint: {hint}",
                facts.first_too_long.unwrap_or_default(),
                facts.longest_tok,
            );
        }
        Ok(Some(facts))
    }

    /// Writes the plan row by row.
    pub(super) fn write_plan(&self, path: &Path) -> anyhow::Result<()> {
        let failed = || format!("failed to write the plan to {}", path.display());
        let same = |a: &Path, b: &Path| Some(a.canonicalize().ok()? == b.canonicalize().ok()?);
        if same(path, &self.path) == Some(true) {
            bail!("--plan names the source itself: {}\nhint: give another file", path.display());
        }
        let file = std::fs::File::create(path).with_context(failed)?;
        let out = std::io::BufWriter::with_capacity(1 << 16, file);
        schedule::write_plan(out, self.plan()?).with_context(failed)
    }

    /// The plan in words, a line or two each for source, time and tokens.
    pub(super) fn describe(&self, facts: &PlanFacts) -> String {
        let mut text = format!("plan: {} rows of {}", facts.rows, self.source_words());
        if let (Some(first), Some(last)) = (facts.first_due, facts.last_due) {
            // As the summary counts: over the window from `t0` to the last due time.
            let span = last.as_secs_f64();
            let _ = write!(
                text,
                ", due from {:.3} s to {:.3} s",
                first.as_secs_f64(),
                last.as_secs_f64()
            );
            if span > 0.0 {
                let _ = write!(text, " ({:.2} req/s)", facts.rows as f64 / span);
            }
        } else if self.shape.closed_loop {
            text.push_str(", each due when a slot comes free");
        }
        let (input, output) = (facts.input_tok, facts.output_tok);
        let _ = writeln!(text, "\n      {input} prompt tokens, {output} completion tokens");
        for (count, what) in [
            (facts.repeats, "repeats of the source, end to end"),
            (facts.left_out, "rows outside the window"),
            (facts.past_end, "rows past the limit or the duration"),
            (facts.cut_sessions, "sessions cut by the limit or the duration"),
            (facts.clipped_input, "prompts clipped"),
            (facts.clipped_output, "completions clipped"),
            (facts.clipped_to_server, "rows clipped to what the server takes"),
            (facts.shortened_gaps, "gaps shortened"),
            (facts.think_rows, "later turns, each due a pause after the end of the one before"),
        ] {
            if count > 0 {
                let _ = writeln!(text, "      {count} {what}");
            }
        }
        if !facts.plan_hash.is_empty() {
            let _ = writeln!(text, "      plan hash {}, seed {}", facts.plan_hash, self.seed);
        }
        text
    }

    /// Why a plan without rows has none.
    pub(super) fn nothing_left(&self, facts: &PlanFacts) -> String {
        let read = facts.left_out + facts.past_end;
        format!(
            "no rows are left of {} ({read} read, {} outside the window)\nhint: look at --from, --to, \
             --limit and --duration",
            self.source_words(),
            facts.left_out
        )
    }

    fn source_words(&self) -> String {
        match &self.kind {
            Kind::Trace(trace) => format!("{} ({} trace)", self.name, trace.format()),
            Kind::Workload(_) => format!("{} (workload)", self.name),
        }
    }

    /// The source as the manifest keeps it.
    pub(super) fn manifest(&self, plan: Option<&PlanFacts>) -> Value {
        let source = match &self.kind {
            Kind::Workload(_) => json!({ "kind": "workload", "name": self.name }),
            Kind::Trace(trace) => {
                let facts = trace.facts().map(|facts| {
                    json!({
                        "rows_read": facts.rows_read,
                        "rows_kept": facts.rows_kept,
                        "rows_failed": facts.rows_failed,
                        "rows_raised": facts.rows_raised,
                        "rows_moved": facts.rows_moved,
                        "input_tok": facts.input_tok,
                        "output_tok": facts.output_tok,
                    })
                });
                let format = trace.format().to_string();
                json!({ "kind": "trace", "name": self.name, "format": format, "facts": facts })
            }
        };
        let plan = plan.map(|facts| {
            json!({
                "rows": facts.rows,
                "repeats": facts.repeats,
                "first_due_s": facts.first_due.map(Nanos::as_secs_f64),
                "last_due_s": facts.last_due.map(Nanos::as_secs_f64),
                "input_tok": facts.input_tok,
                "output_tok": facts.output_tok,
                "left_out": facts.left_out,
                "past_end": facts.past_end,
                "cut_sessions": facts.cut_sessions,
                "clipped_input": facts.clipped_input,
                "clipped_output": facts.clipped_output,
                "clipped_to_server": facts.clipped_to_server,
                "shortened_gaps": facts.shortened_gaps,
            })
        });
        let scale = self
            .rating
            .scale()
            .map(|(method, factor)| json!({ "method": method.to_string(), "factor": factor }));
        let dequantise = self.rating.dequantise().map(|how| how.to_string());
        json!({ "source": source, "plan": plan, "scale": scale, "dequantise": dequantise })
    }

    /// What was asked and planned, and what was sent where that is known, as the manifest keeps it.
    pub(super) fn fidelity(&self, sent: Option<&SentFigures>) -> Value {
        let planned = self.fidelity.as_ref();
        if planned.is_none() && sent.is_none() {
            return Value::Null;
        }
        json!({ "plan": planned, "sent": sent })
    }

    /// The same in words.
    pub(super) fn fidelity_words(&self, sent: Option<&SentFigures>) -> Option<String> {
        self.fidelity.as_ref().map(|figures| fidelity::words(figures, sent))
    }

    /// How the source got its rate, as the manifest keeps it.
    pub(super) fn scale(&self) -> (String, f64) {
        match self.rating.scale() {
            _ if self.shape.closed_loop => ("closed".to_owned(), 1.0),
            Some((method, factor)) => (method.to_string(), factor),
            None => ("compress".to_owned(), self.shape.speed.as_f64()),
        }
    }

    /// What could not be said before the rows were read: counts on a stream.
    pub(super) fn late_notices(&self) -> Vec<String> {
        match &self.kind {
            Kind::Trace(trace) => trace.late_notices(),
            Kind::Workload(_) => Vec::new(),
        }
    }

    pub(super) fn say_notices(&self) {
        for notice in self.notices() {
            say(&format!("note: {notice}"));
        }
    }
}

fn shape(shape: &ShapeArgs) -> Shape {
    Shape {
        speed: shape.speed,
        from: shape.from,
        to: shape.to,
        max_gap: shape.max_gap,
        limit: shape.limit,
        duration: shape.duration,
        max_input_tok: shape.max_input_tok,
        max_output_tok: shape.max_output_tok,
        server_length: None,
        closed_loop: shape.concurrency.is_some(),
    }
}

pub(super) fn read_options(reading: &ReadArgs) -> ReadOptions {
    ReadOptions {
        format: reading.format,
        time_unit: reading.time_unit,
        block_tok: reading.block_tok,
        failed: reading.failed,
        assume_sorted: reading.assume_sorted,
    }
}
