//! What `watch` says: a line per window for people, an object for programs, a row for a file.
//!
//! Deliberately absent: asking, and time.

use serde_json::{Value, json};

use crate::clock::Utc;
use crate::columns::{Column, columns};
use crate::report::{NONE, grouped, percent, span};
use crate::telemetry::figures::{FIGURES, basis};
use crate::telemetry::histogram::Percentile;
use crate::telemetry::remaining::{Length, Outlook, Unknown};
use crate::telemetry::rules::{Counter, Gauge, Latency, Moves, Rules, Stepping};
use crate::telemetry::window::{Generation, Window};
use crate::units::{NS_PER_S, Nanos};

/// A window as it is told.
pub(super) struct Told<'a> {
    /// From the beginning of the watch to the end of the window.
    pub(super) t: Nanos,
    pub(super) utc: Utc,
    /// `None` where nothing could be measured.
    pub(super) window: Option<&'a Window>,
    /// When the run ends, where that was asked.
    pub(super) outlook: Option<Result<Outlook, Unknown>>,
    pub(super) notes: &'a [String],
}

columns! {
    /// Columns before [`FIGURES`].
    const BEFORE: |told: &Told<'_>| -> Value {
        /// End of the window, from the beginning of the watch.
        "t_s" in S = json!(told.t.as_secs_f64());
        /// The same by the wall clock.
        "utc" = json!(told.utc.rfc3339());
    }
}

columns! {
    /// Columns behind them.
    const BEHIND: |told: &Told<'_>| -> Value {
        /// What `generation_tok_s` is from: a count that moves `per_step`, `per_interval` or `per_finished`, or an estimate from `steps`. Empty: it is.
        "generation_basis" = json!(told.window.and_then(|window| window.generation.as_ref()).map(basis));
        /// Samples still to finish (`--until`). Empty: not asked, or not known; so are all that begin with `left`.
        "left_samples" = told.left(|left| Some(left.samples));
        /// Time that they take.
        "left_s" in S = told.left(|left| Some(left.left_s));
        /// Lower end of its 95% interval.
        "left_low_s" in S = told.left(|left| Some(left.between_s.0));
        /// Upper end. Empty: unbounded.
        "left_high_s" in S = told.left(|left| left.between_s.1);
        /// What a reader should know of the window, with `; ` between. Empty: nothing.
        "notes" = json!(told.notes);
        /// Mean length of an answer that `left_s` was reckoned with.
        "left_mean_tok" in Tok = told.left(|left| Some(left.mean_tok));
        /// How that length is known: `given`, `since_start` or `watched`.
        "left_basis" = json!(told.outlook.as_ref().and_then(|left| left.as_ref().ok()).map(|left| {
            match left.length {
                Length::Given => "given",
                Length::SinceStart { .. } => "since_start",
                Length::Watched { .. } => "watched",
            }
        }));
    }
}

type OwnColumn = Column<fn(&Told<'_>) -> Value>;

/// The columns of `watch.csv`, in order.
#[must_use]
pub fn watch_columns() -> Vec<Column<()>> {
    let (before, behind) =
        (BEFORE.iter().map(Column::name_only), BEHIND.iter().map(Column::name_only));
    before.chain(FIGURES.iter().map(Column::name_only)).chain(behind).collect()
}

impl Told<'_> {
    fn left(&self, figure: impl Fn(&Outlook) -> Option<f64>) -> Value {
        json!(self.outlook.as_ref().and_then(|left| figure(left.as_ref().ok()?)).map(plain))
    }

    /// Names of the columns, and what stands in them.
    fn cells(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let own = |columns: &'static [OwnColumn]| {
            columns.iter().map(|column| (column.name, (column.cell)(self)))
        };
        let figures = FIGURES
            .iter()
            .map(|figure| (figure.name, json!(self.window.and_then(figure.cell).map(plain))));
        own(BEFORE).chain(figures).chain(own(BEHIND))
    }

    /// A row of `watch.csv`.
    pub(super) fn row(&self) -> Vec<String> {
        let text = |(name, value): (&str, Value)| match value {
            _ if name == "t_s" => format!("{:.3}", self.t.as_secs_f64()),
            Value::String(text) => text,
            Value::Array(_) => self.notes.join("; "),
            figure => figure.as_f64().map_or_else(String::new, |figure| figure.to_string()),
        };
        self.cells().map(text).collect()
    }

    /// One line of JSON.
    pub(super) fn json(&self) -> String {
        let object = self.cells().map(|(name, value)| (name.to_owned(), value)).collect();
        format!("{}\n", Value::Object(object))
    }

    /// One line for people.
    pub(super) fn line(&self) -> String {
        let Some(window) = self.window else {
            return format!(
                "{:>6.0} s  no two readings of one server: nothing measured",
                self.t.as_secs_f64()
            );
        };
        let mut parts = vec![
            format!("{:>6.0} s", self.t.as_secs_f64()),
            format!("generation {}", generation(window.generation.as_ref())),
        ];
        let mut part = |name: &str, value: Option<String>| {
            parts.extend(value.map(|value| format!("{name} {value}")));
        };
        part("prompt", window.rate(Counter::Prompt).map(|rate| format!("{} tok/s", amount(rate))));
        let mean = window.mean_completion_tok();
        let mean = mean.map_or_else(String::new, |tok| format!(" of {} tok", amount(tok)));
        part(
            "done",
            window.rate(Counter::Finished).map(|rate| format!("{} req/s{mean}", amount(rate))),
        );
        part("running", window.gauge(Gauge::Running).map(amount));
        part("waiting", window.gauge(Gauge::Waiting).map(amount));
        part("KV", window.gauge(Gauge::KvUse).map(percent));
        part("cache hits", window.cache_hit_share().map(percent));
        let preempted = window.grown.get(&Counter::Preempted).filter(|count| **count > 0.0);
        part("preempted", preempted.copied().map(amount));
        part("accepted", window.acceptance().map(percent));
        part("TTFT", latency(window, Latency::Ttft));
        part("ITL", latency(window, Latency::Itl));
        if window.measured.0 * 10 < window.to.since(window.from).0 * 9 {
            part("measured over", Some(format!("{:.1} s", window.measured.as_secs_f64())));
        }
        if window.restarts > 0 {
            part("restarts", Some(window.restarts.to_string()));
        }
        parts.join("  ")
    }

    /// When the run ends, for people.
    pub(super) fn end_line(&self) -> Option<String> {
        Some(match self.outlook.as_ref()? {
            Err(why) => format!("          time left not known: {why}"),
            Ok(outlook) => {
                let (low, high) = outlook.between_s;
                let high = high.map_or_else(|| "unbounded".to_owned(), time);
                format!(
                    "          time left {} ({} to {high}, 95%): {} samples of {} tok, {}",
                    time(outlook.left_s),
                    time(low),
                    amount(outlook.samples),
                    amount(outlook.mean_tok),
                    by(outlook.length),
                )
            }
        })
    }
}

/// How a mean length is known.
fn by(length: Length) -> String {
    match length {
        Length::Given => "as given".to_owned(),
        Length::SinceStart { finished } => {
            let finished = amount(finished);
            format!("by {finished} finished since the server's start and what runs")
        }
        Length::Watched { finished } => {
            format!("by {} finished in the watch and what runs", amount(finished))
        }
    }
}

/// What a rate of completion tokens is made of, where that is no count that moves with each step; why
/// there is none.
pub(super) fn caution(generation: Option<&Generation>, rules: &Rules) -> Option<String> {
    if rules.moves != Moves::PerFinished {
        return None;
    }
    let how = match (generation.map(|rate| (rate.is_estimate, rate.moves)), rules.stepping) {
        (Some((true, _)), Some(Stepping::BusyPlaces)) => {
            "the rate is an estimate from its decode calls and busy slots, a little high while long \
             prompts are read"
        }
        (Some((true, _)), _) => {
            "the rate is an estimate from the counts of its TTFT and inter-token latencies"
        }
        (Some((_, Moves::PerInterval)), _) => {
            "the rate is from a count that moves once in many steps, without first tokens"
        }
        (Some(_), _) => "a window much shorter than the requests says little (--window)",
        (None, _) => {
            "none ended here, so nothing is known; take a window longer than the requests (--window)"
        }
    };
    Some(format!("{} counts completion tokens when a request ends: {how}", rules.name))
}

fn generation(rate: Option<&Generation>) -> String {
    let Some(rate) = rate else { return NONE.to_owned() };
    let about = if rate.is_estimate { "about " } else { "" };
    let error = rate.error_tok_s.filter(|error| *error > 0.005 * rate.tok_s && *error > 0.0);
    let error = error.map_or_else(String::new, |error| format!(" ±{}", amount(error)));
    format!("{about}{} tok/s{error}", amount(rate.tok_s))
}

/// Median and 99th percentile, in milliseconds.
fn latency(window: &Window, latency: Latency) -> Option<String> {
    window.latencies.get(&latency).filter(|histogram| histogram.count > 0.0)?;
    let at = |share| match window.percentile(latency, share) {
        Some(Percentile { value: Some(value), .. }) => amount(value * 1000.0),
        Some(found) => format!(">{}", amount(found.above * 1000.0)),
        None => NONE.to_owned(),
    };
    Some(format!("p50 {} p99 {} ms", at(0.5), at(0.99)))
}

/// Whole above 100, else with decimals.
fn amount(value: f64) -> String {
    match value {
        v if v >= 100.0 => grouped(whole(v)),
        v if v.fract() == 0.0 => grouped(whole(v)),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "figures are not negative"
)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// Hours with one decimal from an hour on: an estimate is no timetable.
fn time(seconds: f64) -> String {
    if seconds >= 3600.0 {
        return format!("{:.1} h", seconds / 3600.0);
    }
    span(Nanos(whole(seconds * NS_PER_S as f64)))
}

/// Six decimals are enough, and no noise.
fn plain(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::telemetry::histogram::{Bound, Histogram};

    fn window() -> Window {
        let buckets = [(0.1, 50.0), (0.5, 150.0), (f64::INFINITY, 200.0)];
        let ttft = Histogram {
            up_to: buckets.map(|(bound, count)| (Bound(bound), count)).into(),
            sum: 40.0,
            count: 200.0,
        };
        Window {
            to: Nanos::from_secs(10),
            measured: Nanos::from_secs(10),
            grown: [(Counter::Finished, 25.0), (Counter::FinishedTokens, 16_250.0)].into(),
            rates: [(Counter::Finished, 2.5), (Counter::Prompt, 2100.0)].into(),
            gauges: [(Gauge::Running, 200.0), (Gauge::KvUse, 0.43)].into(),
            latencies: [(Latency::Ttft, ttft)].into(),
            generation: Some(Generation {
                tok_s: 1600.25,
                moves: Moves::PerStep,
                is_estimate: false,
                error_tok_s: Some(20.0),
            }),
            ..Window::default()
        }
    }

    fn told(window: Option<&Window>) -> Told<'_> {
        let (t, utc) = (Nanos::from_millis(10_001), Utc(1_796_040_010_001_000_000));
        let outlook = Outlook {
            samples: 25_000.0,
            mean_tok: 650.0,
            length: Length::SinceStart { finished: 1234.0 },
            left_s: 10_156.0,
            between_s: (9_900.0, None),
        };
        Told { t, utc, window, outlook: Some(Ok(outlook)), notes: &[] }
    }

    #[test]
    fn a_window_is_a_line() {
        let window = window();
        let told = told(Some(&window));
        assert_eq!(
            told.line(),
            "    10 s  generation 1,600 tok/s ±20  prompt 2,100 tok/s  done 2.50 req/s of 650 tok  \
             running 200  KV 43.0%  TTFT p50 300 p99 >500 ms"
        );
        let end = "          time left 2.8 h (2.8 h to unbounded, 95%): 25,000 samples of 650 tok, by 1,234 \
                   finished since the server's start and what runs";
        assert_eq!(told.end_line().as_deref(), Some(end));
    }

    #[test]
    fn few_values_have_no_99th_percentile() {
        let mut window = window();
        let ttft = window.latencies.get_mut(&Latency::Ttft).expect("it");
        ttft.count = 99.0;
        assert!(told(Some(&window)).line().contains("TTFT p50 300 p99 – ms"));
    }

    #[test]
    fn a_row_has_a_cell_for_each_column_and_empty_ones_for_what_is_not_known() {
        let window = window();
        let columns: Vec<_> = watch_columns().iter().map(|column| column.name).collect();
        for told in [told(Some(&window)), told(None)] {
            assert_eq!(told.row().len(), columns.len());
        }
        let cell = |name: &str, window| {
            let at = columns.iter().position(|column| *column == name).expect(name);
            told(window).row()[at].clone()
        };
        assert_eq!(cell("t_s", None), "10.001");
        assert_eq!(cell("utc", None), "2026-11-30T12:00:10.001000000Z");
        assert_eq!(cell("generation_tok_s", Some(&window)), "1600.25");
        assert_eq!(cell("generation_basis", Some(&window)), "per_step");
        assert_eq!(cell("ttft_p50_ms", Some(&window)), "300");
        assert_eq!(cell("left_s", Some(&window)), "10156");
        assert_eq!(cell("left_mean_tok", Some(&window)), "650");
        assert_eq!(cell("left_basis", Some(&window)), "since_start");
        for name in ["waiting", "ttft_p99_ms", "itl_p50_ms", "left_high_s", "preemptions"] {
            assert_eq!(cell(name, Some(&window)), "", "{name}");
        }
        assert_eq!(cell("generation_tok_s", None), "");
    }

    #[test]
    fn an_object_has_the_columns_as_keys() {
        let window = window();
        let text = told(Some(&window)).json();
        let object: Map<String, Value> = serde_json::from_str(&text).expect("JSON");
        let mut columns: Vec<_> = watch_columns().iter().map(|column| column.name).collect();
        columns.sort_unstable();
        assert_eq!(object.keys().map(String::as_str).collect::<Vec<_>>(), columns);
        assert_eq!((&object["running"], &object["waiting"]), (&json!(200.0), &Value::Null));
    }

    #[test]
    fn amounts_read_well() {
        let words = [0.0, 0.25, 3.0, 12.34, 99.96, 100.4, 5012.0].map(amount);
        assert_eq!(words, ["0", "0.25", "3", "12.3", "100.0", "100", "5,012"]);
    }
}
