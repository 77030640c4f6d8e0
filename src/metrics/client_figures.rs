//! What the machine told of this client while it ran: the lines `client_…` of the summary.
//!
//! Rows do not tell any of it, so the run keeps it in `run.json`, from where a later program takes it.
//! Values are kept to nine decimals, with which a number in JSON reads back as the same one. Deliberately
//! absent: reading the machine, and what the figures mean (see [`health`](super::health)).

use serde::{Deserialize, Serialize};

use super::percentile::Percentile;
use super::summary::{ALL, Summary, SummaryLine};
use super::values::Basis;
use crate::columns::Unit;
use crate::units::Nanos;

/// Figures of the whole run. `None` where the system does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientFigures {
    /// Cores in use on average, by all threads together.
    pub cpu: Option<f64>,
    /// Cores that the client may use.
    pub cpu_allowed: Option<f64>,
    /// Share of the time that the fullest thread was on a core.
    pub thread_cpu_share: Option<f64>,
    /// Share of the time in which threads had work that they waited for a core.
    pub cpu_wait_share: Option<f64>,
    /// Time for which a control group held it back, summed over cores, of the time that it ran.
    pub cpu_throttled_share: Option<f64>,
    /// In how many of the group's periods.
    pub cpu_throttled: Option<u64>,
    /// How late its workers woke when they had asked to be woken.
    pub heartbeat_ms: Option<Heartbeat>,
    /// For how long its workers stood still, in all, since what they had measured was not taken up in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record_wait_ms: Option<f64>,
    /// Most descriptors that were open at once.
    pub fds: Option<u64>,
    /// Descriptors that may be.
    pub fds_limit: Option<u64>,
    /// Most local ports that were taken, at the most: open descriptors, and connections of this machine that
    /// have ended and still keep their port.
    pub ports: Option<u64>,
    /// Ports that connections to one address and port may take.
    pub ports_limit: Option<u64>,
}

/// Delays of regular beats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Heartbeat {
    /// Beats.
    pub n: u64,
    /// Median; empty of fewer beats than can bound it, as all percentiles.
    pub p50: Option<f64>,
    /// The 99th percentile.
    pub p99: Option<f64>,
    /// The longest.
    pub max: Option<f64>,
}

impl Heartbeat {
    /// Of `n` beats with these nearest ranks.
    #[must_use]
    pub fn of(n: u64, [p50, p99, max]: [Nanos; 3]) -> Self {
        let bounded = |percentile: Percentile, delay: Nanos| {
            (n >= percentile.least_n()).then(|| kept(delay.as_millis_f64()))
        };
        Self {
            n,
            p50: bounded(Percentile::P50, p50),
            p99: bounded(Percentile::P99, p99),
            max: (n > 0).then(|| kept(max.as_millis_f64())),
        }
    }
}

/// A figure as it is kept.
#[must_use]
pub fn kept(value: f64) -> f64 {
    (value * 1e9).round() / 1e9
}

impl ClientFigures {
    fn lines(&self) -> Vec<SummaryLine> {
        let scope = ALL.into();
        let single = |name: &str, unit: Unit, value: Option<f64>| {
            SummaryLine::single(&format!("client_{name}"), &scope, unit, None, value)
        };
        let count = |value: Option<u64>| value.map(|n| n as f64);
        let mut heartbeat = single("heartbeat_ms", Unit::Ms, None);
        if let Some(Heartbeat { n, p50, p99, max }) = self.heartbeat_ms {
            (heartbeat.basis, heartbeat.n, heartbeat.max) = (Basis::Histogram, Some(n), max);
            for (percentile, value) in [(Percentile::P50, p50), (Percentile::P99, p99)] {
                heartbeat.set_percentile(percentile, value);
            }
        }
        vec![
            single("cpu", Unit::Cores, self.cpu),
            single("cpu_allowed", Unit::Cores, self.cpu_allowed),
            single("thread_cpu_share", Unit::Share, self.thread_cpu_share),
            single("cpu_wait_share", Unit::Share, self.cpu_wait_share),
            single("cpu_throttled_share", Unit::Share, self.cpu_throttled_share),
            single("cpu_throttled", Unit::Count, count(self.cpu_throttled)),
            heartbeat,
            single("fds", Unit::Count, count(self.fds)),
            single("fds_limit", Unit::Count, count(self.fds_limit)),
            single("ports", Unit::Count, count(self.ports)),
            single("ports_limit", Unit::Count, count(self.ports_limit)),
        ]
    }
}

impl Summary {
    /// Adds the lines about the client to scope `all`.
    pub fn tell_of_client(&mut self, figures: &ClientFigures) {
        let place = self.lines.iter().rposition(|line| *line.scope == *ALL);
        let place = place.map_or(self.lines.len(), |last| last + 1);
        self.lines.splice(place..place, figures.lines());
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Metrics, Stat, Window};
    use super::*;

    #[test]
    fn kept_figures_read_back_as_they_were() {
        for value in [0.1 + 0.2, 1.0 / 3.0, 127.999_999_999_4, 1e-9] {
            let figures = ClientFigures { cpu: Some(kept(value)), ..ClientFigures::default() };
            let json = serde_json::to_string_pretty(&figures).expect("a number");
            let back: ClientFigures = serde_json::from_str(&json).expect("figures");
            assert_eq!(back, figures, "{json}");
        }
    }

    #[test]
    fn the_lines_stand_behind_those_of_all_rows() {
        let mut summary = Metrics::new(Window::default()).finish();
        let before = summary.lines.len();
        let figures = ClientFigures { cpu: Some(0.5), fds: Some(9), ..ClientFigures::default() };
        summary.tell_of_client(&figures);
        assert_eq!(&*summary.lines[before].metric, "client_cpu");
        assert_eq!(summary.value("client_cpu", ALL, Stat::Mean), Some(0.5));
        assert_eq!(summary.value("client_fds", ALL, Stat::Mean), Some(9.0));
        let unknown = summary.line("client_cpu_wait_share", ALL).expect("a line");
        assert_eq!(unknown.mean, None);
    }
}
