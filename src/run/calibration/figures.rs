//! What a calibration says: a page for people, an object for programs, a sentence for both.
//!
//! Deliberately absent: measuring.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::calibration::Calibration;
use super::calibration_course as course;
use crate::lab::{Agreement, Load, UNBOUNDED_PPM};
use crate::report::{NONE, OwnError, grouped, percent, span};
use crate::units::Nanos;

/// The errors of a calibration in milliseconds: name in JSON, name for people, values.
fn errors(calibration: &Calibration) -> [(&'static str, &'static str, &Agreement); 6] {
    let check = &calibration.check;
    [
        ("arrival_ms", "arrival − due", &check.arrival),
        ("ttft_ms", "TTFT", &check.ttft),
        ("e2e_ms", "E2E", &check.e2e),
        ("gap_p50_ms", "chunk gap, median", &check.gap_p50),
        ("gap_p99_ms", "chunk gap, p99", &check.gap_p99),
        ("gap_max_ms", "chunk gap, longest", &check.gap_max),
    ]
}

/// A bound on nearly all differences: the p99, or the largest where they are too few for that.
fn bound(agreement: &Agreement) -> Option<Nanos> {
    agreement.bounded_p99().or_else(|| agreement.percentile(100))
}

/// The same in milliseconds.
pub(super) fn bound_ms(agreement: &Agreement) -> Option<f64> {
    bound(agreement).map(Nanos::as_millis_f64)
}

impl Calibration {
    /// Whether every request came to its end and was found in the log, with its tokens.
    pub(super) fn is_whole(&self) -> bool {
        let check = &self.check;
        self.ok == self.due && check.matched > 0 && check.missing == 0 && check.miscounted == 0
    }

    /// The largest of the bounds that a load is judged by; the longest gap of a stream is left out, as
    /// one disturbance is enough for it.
    pub(super) fn worst_ms(&self) -> Option<f64> {
        let check = &self.check;
        let judged = [&check.arrival, &check.ttft, &check.e2e, &check.gap_p50, &check.gap_p99];
        judged.into_iter().filter_map(bound).max().map(Nanos::as_millis_f64)
    }

    /// Processor time of the client per token event, in µs.
    fn cpu_us_per_event(&self) -> Option<f64> {
        let cpu = self.cpu.filter(|_| self.events > 0)?;
        Some(cpu.as_secs_f64() * 1e6 / self.events as f64)
    }

    /// Share of a core over the whole load.
    fn share(&self, cpu: Option<Nanos>) -> Option<f64> {
        Some(cpu?.as_secs_f64() / self.took.as_secs_f64()).filter(|share| share.is_finite())
    }

    fn rss_mb(&self) -> Option<f64> {
        self.rss_bytes.map(|bytes| bytes as f64 / 1e6)
    }

    /// How far the reported tok/s are from the true ones, as a share of these.
    fn tok_s_error(&self) -> Option<f64> {
        let (reported, logged) = self.tok_s?;
        Some((reported - logged).abs() / logged).filter(|share| share.is_finite())
    }
}

/// `200 arrivals/s, 1,000 streams, 20,000 token events/s`.
pub(super) fn load(load: &Load) -> String {
    let (rate, streams) = (figure(load.rate_s()), grouped(u64::from(load.streams)));
    let gap = load.gap.as_millis_f64();
    format!("{rate} arrivals/s, {streams} streams with a token every {gap} ms")
}

/// The largest error, for a line of the search.
pub(super) fn worst(calibration: &Calibration) -> String {
    match (calibration.worst_ms(), &calibration.failure) {
        (_, Some(failure)) => {
            let failed = grouped(calibration.due - calibration.ok);
            format!("{failed} requests failed, the first: {failure}")
        }
        (Some(ms), None) => format!("errors up to {} ms", figure(ms)),
        (None, None) => "nothing to compare".to_owned(),
    }
}

/// Everything, for people.
pub(super) fn page(calibration: &Calibration) -> String {
    let mut text = String::new();
    let check = &calibration.check;
    let mut line = |name: &str, words: &str| {
        let _ = writeln!(text, "{name:<11}{words}");
    };
    let Load { span: length, .. } = calibration.load;
    line("load", &format!("{} for {}", load(&calibration.load), span(length)));
    let (streams, events) = (figure(calibration.streams), optional(calibration.event_s, figure));
    line("reached", &format!("{streams} streams on average, {events} token events/s"));
    let (due, ok) = (grouped(calibration.due), grouped(calibration.ok));
    let (missing, miscounted) = (grouped(check.missing), grouped(check.miscounted));
    line(
        "requests",
        &format!("{due} · {ok} ok · {missing} not in the server's log · {miscounted} miscounted"),
    );
    if let Some(failure) = &calibration.failure {
        line("", &format!("the first that failed: {failure}"));
    }
    text.push_str(&table(calibration));
    text.push_str(&course::table(&calibration.course));
    if let (Some((reported, logged)), Some(error)) = (calibration.tok_s, calibration.tok_s_error())
    {
        let _ = writeln!(
            text,
            "tok/s      {reported:.1} reported, {logged:.1} by the server's log: {} off",
            percent(error)
        );
    }
    let cores = |share: Option<f64>| optional(share, |share| format!("{share:.2} of a core"));
    let _ = writeln!(
        text,
        "client     {} µs of CPU per token event · {} · at most {} MB · {} workers",
        optional(calibration.cpu_us_per_event(), figure),
        cores(calibration.share(calibration.cpu)),
        optional(calibration.rss_mb(), |mb| format!("{mb:.1}")),
        calibration.workers,
    );
    let server = cores(calibration.share(calibration.server_cpu));
    let _ = writeln!(text, "server     {server}, in a process of its own on this machine");
    let _ = writeln!(text, "\n{}", sentence(calibration));
    text
}

fn table(calibration: &Calibration) -> String {
    let mut text =
        format!("\n{:<20}{:>10}{:>10}{:>10}{:>11}\n", "error, ms", "p50", "p99", "max", "n");
    let mut row = |name: &str, figures: [Option<f64>; 3], n: u64| {
        let [p50, p99, max] = figures.map(|value| optional(value, |value| format!("{value:.3}")));
        let _ = writeln!(text, "{name:<20}{p50:>10}{p99:>10}{max:>10}{:>11}", grouped(n));
    };
    for (_, name, agreement) in errors(calibration) {
        row(name, ms(agreement), agreement.n());
    }
    let decode = &calibration.check.decode_ppm;
    row("decode tok/s, %", percents(decode), decode.n());
    row("lag, as reported", calibration.lag_ms, calibration.check.arrival.n());
    text
}

/// p50, p99 where it is bounded, max.
fn ranks(agreement: &Agreement) -> [Option<Nanos>; 3] {
    [agreement.percentile(50), agreement.bounded_p99(), agreement.percentile(100)]
}

fn ms(agreement: &Agreement) -> [Option<f64>; 3] {
    ranks(agreement).map(|value| value.map(Nanos::as_millis_f64))
}

/// Of differences in millionths; those without bound are no figures.
fn percents(agreement: &Agreement) -> [Option<f64>; 3] {
    let bounded = |ppm: Option<Nanos>| ppm.filter(|ppm| ppm.0 < UNBOUNDED_PPM);
    ranks(agreement).map(|value| bounded(value).map(|ppm| ppm.0 as f64 / 1e4))
}

/// What it means.
pub(super) fn sentence(calibration: &Calibration) -> String {
    if calibration.interrupted {
        return "interrupted: these figures are of a part of the load".to_owned();
    }
    if !calibration.is_whole() {
        return "not every request came to its end with its tokens, so this load says nothing of the \
                client's error\nhint: --streams or --rate with less"
            .to_owned();
    }
    let check = &calibration.check;
    let within =
        |agreement: &Agreement| optional(bound_ms(agreement), |ms| format!("{} ms", figure(ms)));
    let of = if check.ttft.bounded_p99().is_some() { "99 of 100" } else { "all" };
    format!(
        "On this machine, at this load, a reported TTFT is within {} of the truth for {of} requests, the \
         p99 gap of a stream within {}, and a request arrives within {} of its due time: between two \
         runs, smaller differences are the client's and the machine's, not the server's.",
        within(&check.ttft),
        within(&check.gap_p99),
        within(&check.arrival),
    )
}

/// Everything, for programs. What is not known is `null`.
pub(super) fn json(calibration: &Calibration) -> Value {
    let object = |n: u64, [p50, p99, max]: [Option<f64>; 3]| json!({ "n": n, "p50": p50, "p99": p99, "max": max });
    let check = &calibration.check;
    let mut error: serde_json::Map<String, Value> = errors(calibration)
        .into_iter()
        .map(|(key, _, agreement)| (key.to_owned(), object(agreement.n(), ms(agreement))))
        .collect();
    let decode = &check.decode_ppm;
    error.insert("decode_tok_s_percent".to_owned(), object(decode.n(), percents(decode)));
    let load = &calibration.load;
    json!({
        "load": {
            "rate": load.rate_s(),
            "streams": load.streams,
            "gap_ms": load.gap.as_millis_f64(),
            "duration_s": load.span.as_secs_f64(),
            "workers": calibration.workers,
        },
        "requests": calibration.due,
        "ok": calibration.ok,
        "missing": check.missing,
        "miscounted": check.miscounted,
        "first_error": calibration.failure,
        "interrupted": calibration.interrupted,
        "streams_mean": calibration.streams,
        "events": calibration.events,
        "event_s": calibration.event_s,
        "error": error,
        "lag_ms": object(check.arrival.n(), calibration.lag_ms),
        "output_tok_s": {
            "reported": calibration.tok_s.map(|(reported, _)| reported),
            "logged": calibration.tok_s.map(|(_, logged)| logged),
            "error_percent": calibration.tok_s_error().map(|share| share * 100.0),
        },
        "cpu_us_per_event": calibration.cpu_us_per_event(),
        "client_cpu": calibration.share(calibration.cpu),
        "server_cpu": calibration.share(calibration.server_cpu),
        "client_rss_max_mb": calibration.rss_mb(),
        "course": course::json(&calibration.course),
        "meaning": sentence(calibration),
    })
}

/// What a run's own summary says of it; why nothing, where nothing can be said.
pub(super) fn own_error(calibration: &Calibration) -> Result<OwnError, String> {
    if !calibration.is_whole() {
        return Err(format!(
            "not calibrated, at {}: {}",
            load(&calibration.load),
            worst(calibration)
        ));
    }
    let check = &calibration.check;
    let n = grouped(check.ttft.n());
    let bounded = check.ttft.bounded_p99().is_some();
    Ok(OwnError {
        load: load(&calibration.load),
        bound: if bounded {
            format!("p99 of {n} requests")
        } else {
            format!("largest of {n} requests")
        },
        ttft_ms: bound_ms(&check.ttft),
        e2e_ms: bound_ms(&check.e2e),
        gap_ms: bound_ms(&check.gap_p99),
        arrival_ms: bound_ms(&check.arrival),
        details: json(calibration),
    })
}

/// A dash for what is not known.
pub(super) fn optional<T>(value: Option<T>, words: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| NONE.to_owned(), words)
}

/// Three decimals below 10, one below 1,000, none above.
fn figure(value: f64) -> String {
    match value {
        v if v.fract().abs() < f64::EPSILON && v < 1_000.0 => format!("{v}"),
        v if v < 10.0 => format!("{v:.3}"),
        v if v < 1_000.0 => format!("{v:.1}"),
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "only printed")]
        v => grouped(v.round() as u64),
    }
}
