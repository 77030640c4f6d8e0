//! `/metrics`: the server's count of itself as Prometheus text, under the names of a real engine.
//!
//! | | token counters move | a request that goes away |
//! |---|---|---|
//! | [`Exposition::Vllm`] | with each step | is counted as far as it came, and is no success |
//! | [`Exposition::Sglang`] | when a request has finished | never gets into the token counters |
//!
//! Bucket limits are vLLM's under both. The model has no prefix cache, so nothing was ever looked up in
//! one, and it never preempts. Its memory holds all slots at the model's full length; the share in use
//! is of that. Absent: any counting (see `meter`) and HTTP.

use std::fmt::Write as _;

use super::meter::{Histogram, Meter};
use super::settings::{Exposition, Settings};

/// The media type of the text.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=1.0.0; charset=utf-8";

/// The server at one moment.
pub(super) struct Scrape<'a> {
    pub(super) settings: &'a Settings,
    pub(super) meter: &'a Meter,
    pub(super) running: usize,
    pub(super) queued: usize,
    /// When the counters began, in seconds since 1970.
    pub(super) created_s: f64,
}

impl Scrape<'_> {
    /// The text; `None` where the server tells nothing.
    pub(super) fn text(&self) -> Option<String> {
        match self.settings.metrics {
            Exposition::Vllm => Some(self.vllm()),
            Exposition::Sglang => Some(self.sglang()),
            Exposition::Off => None,
        }
    }

    fn vllm(&self) -> String {
        let meter = self.meter;
        let mut text = Text::new("vllm", &[("engine", "0"), ("model_name", &self.settings.model)]);
        text.created_s = Some(self.created_s);
        text.gauge("num_requests_running", "Requests that hold a slot.", self.running as f64);
        text.gauge("num_requests_waiting", "Requests that wait for a slot.", self.queued as f64);
        text.gauge("kv_cache_usage_perc", "Share of the memory for tokens in use.", self.usage());
        text.counter("prefix_cache_queries", "Prompt tokens looked up in a prefix cache.", 0);
        text.counter("prefix_cache_hits", "Prompt tokens found there.", 0);
        text.counter("num_preemptions", "Requests that lost their slot.", 0);
        text.counter("prompt_tokens", "Prompt tokens whose prefill is done.", meter.prompt_tok);
        text.counter("generation_tokens", "Tokens generated.", meter.output_tok);
        let reasons = [
            ("stop", meter.stopped),
            ("length", meter.at_length),
            ("abort", 0),
            ("error", 0),
            ("repetition", 0),
        ];
        text.counters("request_success", "Finished requests.", "finished_reason", &reasons);
        text.histogram("time_to_first_token_seconds", "Arrival to first token.", &meter.ttft);
        text.histogram("inter_token_latency_seconds", "From token to token.", &meter.itl);
        text.histogram("e2e_request_latency_seconds", "Arrival to last token.", &meter.e2e);
        text.histogram("request_queue_time_seconds", "Time without a slot.", &meter.queued);
        let (prompt, output) = (&meter.prompt_length, &meter.output_length);
        text.histogram("request_prompt_tokens", "Prompt tokens of finished requests.", prompt);
        text.histogram("request_generation_tokens", "Tokens generated for those.", output);
        text.out
    }

    fn sglang(&self) -> String {
        let meter = self.meter;
        let labels = [
            ("engine_type", "unified"),
            ("model_name", self.settings.model.as_str()),
            ("moe_ep_rank", "0"),
            ("pp_rank", "0"),
            ("tp_rank", "0"),
        ];
        let mut text = Text::new("sglang", &labels);
        let finished = meter.stopped + meter.at_length;
        text.gauge("num_running_reqs", "Requests that hold a slot.", self.running as f64);
        text.gauge("num_queue_reqs", "Requests that wait for a slot.", self.queued as f64);
        text.gauge("token_usage", "Share of the memory for tokens in use.", self.usage());
        text.gauge("cache_hit_rate", "Share of prompt tokens found in a prefix cache.", 0.0);
        let (prompt_tok, output_tok) = (meter.finished_prompt_tok, meter.finished_output_tok);
        text.counter("prompt_tokens", "Prompt tokens of finished requests.", prompt_tok);
        text.counter("generation_tokens", "Tokens generated for finished requests.", output_tok);
        text.counter("num_requests", "Finished requests.", finished);
        text.counter("num_aborted_requests", "Requests that went away.", meter.aborted);
        text.histogram("time_to_first_token_seconds", "Arrival to first token.", &meter.ttft);
        text.histogram("inter_token_latency_seconds", "From token to token.", &meter.itl);
        text.histogram("e2e_request_latency_seconds", "Arrival to last token.", &meter.e2e);
        text.histogram("queue_time_seconds", "Time without a slot.", &meter.queued);
        text.out
    }

    /// Share of the memory for tokens that running requests hold.
    fn usage(&self) -> f64 {
        let room_tok = self.settings.max_running as f64 * self.settings.max_model_len_tok as f64;
        self.meter.held_tok as f64 / room_tok
    }
}

/// The text being written: families, each with its help, its type and its samples.
struct Text {
    out: String,
    engine: &'static str,
    /// Of every sample, as they are written.
    labels: Vec<(&'static str, String)>,
    created_s: Option<f64>,
}

impl Text {
    fn new(engine: &'static str, labels: &[(&'static str, &str)]) -> Self {
        let labels = labels.iter().map(|(name, value)| (*name, escaped(value))).collect();
        Self { out: String::new(), engine, labels, created_s: None }
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.head(name, help, "gauge");
        self.sample(name, None, value);
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        let total = format!("{name}_total");
        self.head(&total, help, "counter");
        self.sample(&total, None, value as f64);
        self.created(name, help, &[None]);
    }

    /// A counter with a value for each of several values of one more label.
    fn counters(
        &mut self,
        name: &str,
        help: &str,
        label: &'static str,
        values: &[(&'static str, u64)],
    ) {
        let total = format!("{name}_total");
        self.head(&total, help, "counter");
        for (word, value) in values {
            self.sample(&total, Some((label, word)), *value as f64);
        }
        let labels: Vec<_> = values.iter().map(|(word, _)| Some((label, *word))).collect();
        self.created(name, help, &labels);
    }

    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.head(name, help, "histogram");
        let bucket = format!("{name}_bucket");
        let mut below = 0;
        let limits = histogram.limits.iter().map(|limit| format!("{limit:?}"));
        for (limit, count) in limits.chain(["+Inf".to_owned()]).zip(&histogram.counts) {
            below += count;
            self.sample(&bucket, Some(("le", &limit)), below as f64);
        }
        self.sample(&format!("{name}_count"), None, below as f64);
        self.sample(&format!("{name}_sum"), None, histogram.sum());
        self.created(name, help, &[None]);
    }

    /// When the counting began, as a gauge beside each counter and histogram.
    fn created(&mut self, name: &str, help: &str, labels: &[Option<(&'static str, &str)>]) {
        let Some(created_s) = self.created_s else { return };
        let name = format!("{name}_created");
        self.head(&name, help, "gauge");
        for label in labels {
            self.sample(&name, *label, created_s);
        }
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        let engine = self.engine;
        let _ = writeln!(self.out, "# HELP {engine}:{name} {help}\n# TYPE {engine}:{name} {kind}");
    }

    /// One line; labels stand in the order of their names.
    fn sample(&mut self, name: &str, label: Option<(&'static str, &str)>, value: f64) {
        let mut labels: Vec<(&str, &str)> =
            self.labels.iter().map(|(name, value)| (*name, value.as_str())).chain(label).collect();
        labels.sort_unstable();
        let _ = write!(self.out, "{}:{name}", self.engine);
        for (place, (name, value)) in labels.iter().enumerate() {
            let opening = if place == 0 { '{' } else { ',' };
            let _ = write!(self.out, "{opening}{name}=\"{value}\"");
        }
        let _ = writeln!(self.out, "}} {value:?}");
    }
}

/// A label's value between its quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', "\\n")
}
