//! The figures of a calibration: errors and what they bound, as an object for programs and in a sentence.
//!
//! Deliberately absent: measuring, and the page for people.

use serde_json::{Value, json};

use super::measure::Calibration;
use super::pieces;
use crate::lab::{Agreement, Load, UNBOUNDED_PPM};
use crate::report::{NONE, OwnError, grouped};
use crate::units::Nanos;

/// The errors of a calibration in milliseconds: name in JSON, name for people, values.
#[must_use]
pub fn errors(calibration: &Calibration) -> [(&'static str, &'static str, &Agreement); 6] {
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

impl Calibration {
    /// Whether every request came to its end and was found in the log, with its tokens.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let check = &self.check;
        self.ok == self.due && check.matched > 0 && check.missing == 0 && check.miscounted == 0
    }

    /// The largest of the bounds that a load is judged by; the longest gap of a stream is left out, as
    /// one disturbance is enough for it.
    #[must_use]
    pub fn worst_ms(&self) -> Option<f64> {
        let check = &self.check;
        let judged = [&check.arrival, &check.ttft, &check.e2e, &check.gap_p50, &check.gap_p99];
        judged.into_iter().filter_map(Agreement::bound).max().map(Nanos::as_millis_f64)
    }

    /// Processor time of the client per token event, in µs.
    #[must_use]
    pub fn cpu_us_per_event(&self) -> Option<f64> {
        let cpu = self.cpu.filter(|_| self.events > 0)?;
        Some(cpu.as_secs_f64() * 1e6 / self.events as f64)
    }

    /// Share of a core over the whole load.
    #[must_use]
    pub fn share(&self, cpu: Option<Nanos>) -> Option<f64> {
        Some(cpu?.as_secs_f64() / self.took.as_secs_f64()).filter(|share| share.is_finite())
    }

    /// The most memory in RAM, in MB.
    #[must_use]
    pub fn rss_mb(&self) -> Option<f64> {
        self.rss_bytes.map(|bytes| bytes as f64 / 1e6)
    }

    /// How far the reported tok/s are from the true ones, as a share of these.
    #[must_use]
    pub fn tok_s_error(&self) -> Option<f64> {
        let (reported, logged) = self.tok_s?;
        Some((reported - logged).abs() / logged).filter(|share| share.is_finite())
    }
}

/// `200 arrivals/s, 1,000 streams, 20,000 token events/s`.
#[must_use]
pub fn describe_load(load: &Load) -> String {
    let (rate, streams) = (figure(load.rate_s()), grouped(u64::from(load.streams)));
    let gap = load.gap.as_millis_f64();
    format!("{rate} arrivals/s, {streams} streams with a token every {gap} ms")
}

/// The largest error, for a line of the search.
#[must_use]
pub fn describe_worst(calibration: &Calibration) -> String {
    match (calibration.worst_ms(), &calibration.failure) {
        (_, Some(failure)) => {
            let failed = grouped(calibration.due - calibration.ok);
            format!("{failed} requests failed, the first: {failure}")
        }
        (Some(ms), None) => format!("errors up to {} ms", figure(ms)),
        (None, None) => "nothing to compare".to_owned(),
    }
}

/// p50, p99 where it is bounded, max.
fn ranks(agreement: &Agreement) -> [Option<Nanos>; 3] {
    [agreement.percentile(50), agreement.bounded_p99(), agreement.percentile(100)]
}

/// p50, p99 and max in milliseconds.
#[must_use]
pub fn ms(agreement: &Agreement) -> [Option<f64>; 3] {
    ranks(agreement).map(|value| value.map(Nanos::as_millis_f64))
}

/// Of differences in millionths; those without bound are no figures.
#[must_use]
pub fn percents(agreement: &Agreement) -> [Option<f64>; 3] {
    let bounded = |ppm: Option<Nanos>| ppm.filter(|ppm| ppm.0 < UNBOUNDED_PPM);
    ranks(agreement).map(|value| bounded(value).map(|ppm| ppm.0 as f64 / 1e4))
}

/// What it means.
#[must_use]
pub fn meaning(calibration: &Calibration) -> String {
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
        |agreement: &Agreement| optional(agreement.bound_ms(), |ms| format!("{} ms", figure(ms)));
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
#[must_use]
pub fn json(calibration: &Calibration) -> Value {
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
        "course": pieces::json(&calibration.pieces),
        "meaning": meaning(calibration),
    })
}

/// What a run's own summary says of it; why nothing, where nothing can be said.
pub(in crate::run) fn own_error(calibration: &Calibration) -> Result<OwnError, String> {
    if !calibration.is_whole() {
        return Err(format!(
            "not calibrated, at {}: {}",
            describe_load(&calibration.load),
            describe_worst(calibration)
        ));
    }
    let check = &calibration.check;
    let n = grouped(check.ttft.n());
    let bounded = check.ttft.bounded_p99().is_some();
    Ok(OwnError {
        load: describe_load(&calibration.load),
        bound: if bounded {
            format!("p99 of {n} requests")
        } else {
            format!("largest of {n} requests")
        },
        ttft_ms: check.ttft.bound_ms(),
        e2e_ms: check.e2e.bound_ms(),
        gap_ms: check.gap_p99.bound_ms(),
        arrival_ms: check.arrival.bound_ms(),
        details: json(calibration),
    })
}

/// A dash for what is not known.
#[must_use]
pub fn optional<T>(value: Option<T>, words: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| NONE.to_owned(), words)
}

/// Three decimals below 10, one below 1,000, none above.
#[must_use]
pub fn figure(value: f64) -> String {
    match value {
        v if v.fract().abs() < f64::EPSILON && v < 1_000.0 => format!("{v}"),
        v if v < 10.0 => format!("{v:.3}"),
        v if v < 1_000.0 => format!("{v:.1}"),
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "only printed")]
        v => grouped(v.round() as u64),
    }
}
