//! Another rate for a source: settled by one pass over its rows, then applied to every pass.

use crate::run::error::RunError;
use crate::run::settings::ScheduleSettings;
use crate::schedule::fidelity::Side;
use crate::schedule::rate::{
    self, ClientError, Dequantise, Method, Rate, cloned, dequantised, paced, per_client, thinned,
};
use crate::schedule::{Shape, plan};
use crate::trace::Request;
use crate::trace::read::{TraceClock, TraceError};
use crate::units::{Nanos, Speed};

pub(in crate::run) type Rows = Box<dyn Iterator<Item = Result<Request, TraceError>> + Send>;

/// How rows get another rate.
#[derive(Clone, Debug)]
pub(super) struct RateScaling {
    method: Method,
    rate: Option<Rate>,
    dequantise: Dequantise,
    seed: u64,
    clock: TraceClock,
    /// What the recorder rounded times to.
    grain: Nanos,
    /// Recorded rate to wanted rate.
    factor: Option<f64>,
    /// The first row number that the source does not use.
    first_copy: u64,
    /// The source before anything was changed, where a pass was made.
    before: Option<Side>,
}

impl RateScaling {
    /// What was asked for. `name` is the source's; `rows_read` is how many rows it has, where that is known.
    pub(super) fn new(
        settings: &ScheduleSettings,
        clock: TraceClock,
        rows_read: Option<u64>,
        name: &str,
    ) -> Result<Self, RunError> {
        if clock == TraceClock::Absent && settings.rate.is_none() {
            return Err(RunError::Settings(format!(
                "the rows of {name} have no times, so it is not known when to send them\nhint: --rate R \
                 sends R requests a second, --concurrency N keeps N in flight"
            )));
        }
        Ok(Self {
            method: settings.scale,
            rate: settings.rate,
            dequantise: settings.dequantise,
            seed: settings.seed,
            clock,
            grain: Nanos::ZERO,
            factor: None,
            first_copy: rows_read.unwrap_or(0),
            before: None,
        })
    }

    /// Whether a pass over the rows has to come first.
    pub(super) fn wants_pass(&self) -> bool {
        self.dequantise == Dequantise::Uniform || self.rate.is_some()
    }

    /// Learns the source's own rate and grain from its rows within the window.
    pub(super) fn settle(&mut self, rows: Rows, shape: &Shape) -> Result<(), RunError> {
        let Shape { from, to, limit, duration, .. } = *shape;
        let window = Shape { from, to, limit, duration, ..Shape::default() };
        let mut before = Side::default();
        let (mut count, mut last) = (0_u64, Nanos::ZERO);
        for planned in plan(rows, &window) {
            let planned = planned?;
            before.add(planned.due, &planned.request);
            count += 1;
            // A turn that waits for another has no due time, but a recorded one.
            last = last.max(planned.request.at.since(from.unwrap_or(Nanos::ZERO)));
        }
        self.grain = before.arrivals.least_gap().unwrap_or(Nanos::ZERO);
        if let (Some(wanted), TraceClock::Common) = (self.rate, self.clock) {
            let recorded = count as f64 / last.as_secs_f64();
            self.factor = Some(self.method.factor(recorded, wanted)?);
        }
        if self.clock == TraceClock::Common {
            self.before = Some(before);
        }
        Ok(())
    }

    /// Rows of a source, as they are to be planned.
    pub(super) fn apply(&self, rows: Rows) -> Result<Rows, TraceError> {
        let mut rows = rows;
        if self.dequantise == Dequantise::Uniform {
            rows = Box::new(dequantised(rows, self.grain, self.seed));
        }
        if let Some(rate) = self.rate {
            rows = paced(rows, self.clock, rate, self.seed)?;
        }
        Ok(match (self.method, self.factor) {
            (_, None) | (Method::Compress, _) => rows,
            (Method::Thin, Some(share)) => Box::new(thinned(rows, share, self.seed)),
            (Method::Clone, Some(factor)) => {
                Box::new(cloned(rows, factor, self.seed, self.first_copy))
            }
            (Method::PerClient, Some(factor)) => {
                let rows = rows.map(|row| row.map_err(Unfit::Trace));
                let rows = per_client(rows, factor, self.first_copy);
                Box::new(rows.map(|row| row.map_err(Unfit::into_trace)))
            }
        })
    }

    /// The speed that brings the rate about, where that is the method.
    pub(super) fn speed(&self) -> Option<Speed> {
        let factor = self.factor.filter(|_| self.method == Method::Compress);
        factor.map(rate::speed_of)
    }

    /// The source before anything was changed.
    pub(super) fn before(&self) -> Option<&Side> {
        self.before.as_ref()
    }

    /// Method and factor, for the manifest.
    pub(super) fn scale(&self) -> Option<(Method, f64)> {
        self.factor.map(|factor| (self.method, factor))
    }

    /// Whether rows get times that they did not have.
    pub(super) fn sets_times(&self) -> bool {
        self.rate.is_some() && self.clock != TraceClock::Common
    }

    /// What became of rounded times, where anything did.
    pub(super) fn dequantise(&self) -> Option<Dequantise> {
        (self.dequantise == Dequantise::Uniform).then_some(self.dequantise)
    }

    /// What a reader of the results should know.
    pub(super) fn notices(&self) -> Vec<String> {
        let mut notices = Vec::new();
        if self.dequantise == Dequantise::Uniform {
            notices.push(format!(
                "rows of equal time are spread over {} s, the grain of the time stamps",
                self.grain.as_secs_f64()
            ));
        }
        if self.scale().is_some_and(|(method, _)| method == Method::Clone) {
            notices.push(
                "copies of a row have its prefix blocks, so a cache finds more than in the source"
                    .to_owned(),
            );
        }
        if self.rate.is_none() && self.clock == TraceClock::PerSession {
            notices.push(
                "every session counts from its own start, and the trace does not say when that was: all \
                 begin together; --rate R spreads them so that R requests a second arrive"
                    .to_owned(),
            );
        }
        if let (Some(rate), true) = (self.rate, self.clock != TraceClock::Common) {
            let rate = rate.per_s();
            notices.push(if self.clock == TraceClock::Absent {
                format!("rows arrive at random (Poisson), {rate} a second")
            } else {
                format!(
                    "sessions start at random (Poisson), so that {rate} requests a second come once enough \
                     of them overlap"
                )
            });
        }
        notices
    }
}

/// What can go wrong between a trace and a plan.
#[derive(Debug)]
enum Unfit {
    Trace(TraceError),
    Client(ClientError),
}

impl From<ClientError> for Unfit {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

impl Unfit {
    fn into_trace(self) -> TraceError {
        match self {
            Self::Trace(error) => error,
            Self::Client(error) => TraceError::Unfit { problem: error.to_string() },
        }
    }
}
