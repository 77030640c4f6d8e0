//! The source and its plan in words, and as the manifest keeps them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Kind, Traffic};
use crate::metrics::fidelity::SentFigures;
use crate::schedule::fidelity::FidelityFigures;
use crate::schedule::{OutputSum, PlanFacts};
use crate::units::{Nanos, Speed};

/// The completion tokens of a plan, as far as they are asked for.
fn describe_output(facts: &PlanFacts) -> String {
    let OutputSum { limited_tok, natural_rows } = facts.output;
    match natural_rows {
        0 => format!("{limited_tok} completion tokens"),
        rows if rows == facts.rows => {
            "completion tokens unknown: no length is asked for, answers end by themselves"
                .to_owned()
        }
        rows => format!(
            "completion tokens unknown: {limited_tok} asked for, and {rows} answers end by themselves"
        ),
    }
}

impl Traffic {
    /// The plan in words, a line or two each for source, time and tokens.
    #[must_use]
    pub fn describe(&self, facts: &PlanFacts) -> String {
        let mut text = format!("plan: {} rows of {}", facts.rows, self.describe_source());
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
        let (input, output) = (facts.input_tok, describe_output(facts));
        let _ = writeln!(text, "\n      {input} prompt tokens, {output}");
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

    /// Says which options have nothing to act on: a closed loop sends without looking at times, but for
    /// the pauses before turns.
    pub fn idle_options(&mut self, facts: Option<&PlanFacts>) -> Option<&str> {
        let sets_speed = self.shape.speed != Speed::ONE && self.scaling.speed().is_none();
        let names = [("--speed", sets_speed), ("--max-gap", self.shape.max_gap.is_some())];
        let idle: Vec<&str> =
            names.into_iter().filter_map(|(name, is_set)| is_set.then_some(name)).collect();
        let paces_nothing =
            self.shape.closed_loop && facts.is_some_and(|plan| plan.think_rows == 0);
        if idle.is_empty() || !paces_nothing {
            return None;
        }
        self.notices.push(format!(
            "no use is made of {}: in a closed loop a row is due when a slot comes free, whenever it \
             was recorded",
            idle.join(" and ")
        ));
        self.notices.last().map(String::as_str)
    }

    /// Why a plan without rows has none.
    #[must_use]
    pub fn nothing_left(&self, facts: &PlanFacts) -> String {
        let read = facts.left_out + facts.past_end;
        format!(
            "no rows are left of {} ({read} read, {} outside the window)\nhint: look at --from, --to, \
             --limit and --duration",
            self.describe_source(),
            facts.left_out
        )
    }

    /// The source and of which kind it is.
    #[must_use]
    pub fn describe_source(&self) -> String {
        match &self.kind {
            Kind::Trace(trace) => format!("{} ({} trace)", self.name, trace.format()),
            Kind::Workload(_) => format!("{} (workload)", self.name),
            Kind::Clients(_) => format!("{} (ServeGen clients)", self.name),
            Kind::Own(_) => format!("{} (rows of the caller's own)", self.name),
        }
    }

    /// The source as the manifest keeps it.
    #[must_use]
    pub fn manifest(&self, plan: Option<&PlanFacts>) -> Value {
        let source = match &self.kind {
            Kind::Workload(workload) => {
                let slo: BTreeMap<&str, &[String]> = workload.slo().collect();
                json!({ "kind": "workload", "name": self.name, "slo": slo })
            }
            Kind::Clients(_) => json!({ "kind": "servegen", "name": self.name }),
            Kind::Own(_) => json!({ "kind": "own", "name": self.name }),
            Kind::Trace(trace) => {
                let facts = trace.facts().map(|facts| {
                    json!({
                        "rows_read": facts.rows_read,
                        "rows_kept": facts.rows_kept,
                        "rows_failed": facts.rows_failed,
                        "rows_raised": facts.rows_raised,
                        "rows_moved": facts.rows_moved,
                        "input_tok": facts.input_tok,
                        "output_tok": facts.output.total(),
                        "natural_rows": facts.output.natural_rows,
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
                "output_tok": facts.output.total(),
                "natural_rows": facts.output.natural_rows,
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
            .scaling
            .scale()
            .map(|(method, factor)| json!({ "method": method.to_string(), "factor": factor }));
        let dequantise = self.scaling.dequantise().map(|how| how.to_string());
        json!({ "source": source, "plan": plan, "scale": scale, "dequantise": dequantise })
    }

    /// What was asked and planned, and what was sent where that is known, as the manifest keeps it.
    #[must_use]
    pub fn fidelity(&self, sent: Option<&SentFigures>) -> Value {
        if self.fidelity.is_none() && sent.is_none() {
            return Value::Null;
        }
        json!({ "plan": self.fidelity, "sent": sent })
    }

    /// What was asked and planned, where the plan could be counted ahead.
    #[must_use]
    pub fn planned(&self) -> Option<&FidelityFigures> {
        self.fidelity.as_ref()
    }

    /// How the source got its rate, as the manifest keeps it.
    #[must_use]
    pub fn scale(&self) -> (String, f64) {
        match self.scaling.scale() {
            _ if self.shape.closed_loop => ("closed".to_owned(), 1.0),
            Some((method, factor)) => (method.to_string(), factor),
            None => ("compress".to_owned(), self.shape.speed.as_f64()),
        }
    }
}
