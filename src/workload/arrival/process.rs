//! Renewal processes: independent gaps of one distribution.

use super::super::WorkloadError;
use super::super::distribution::whole;
use super::super::draw::{Draws, Purpose};
use super::super::keys::Keys;
use crate::units::{NS_PER_S, Nanos};

/// What may stand behind `process =`.
pub(super) const PROCESSES: [&str; 5] = ["constant", "poisson", "gamma", "weibull", "closed"];

/// Requests per second below which a workload is a slip of the pen (one in eleven days).
const LEAST_RATE: f64 = 1e-6;
/// Requests per second above which gaps have no digits left in whole nanoseconds.
const LIMIT_RATE: f64 = 1e6;

/// A process with its rate.
#[derive(Clone, Copy, Debug)]
pub(super) enum Process {
    /// Evenly spaced, the first at 0: row i at i / rate, with no drift.
    Constant {
        /// Requests per 10^9 seconds: the rate to nine decimals.
        rate_nano: u64,
    },
    /// Independent exponential gaps.
    Poisson {
        /// Mean gap in seconds.
        mean_s: f64,
    },
    /// Independent gamma gaps.
    Gamma {
        /// 1 ÷ CV².
        shape: f64,
        /// Seconds; the mean gap is shape × scale.
        scale_s: f64,
    },
    /// Independent Weibull gaps.
    Weibull {
        /// Below 1: burstier than Poisson.
        shape: f64,
        /// Seconds; the mean gap is scale × Γ(1 + 1/shape).
        scale_s: f64,
    },
}

impl Process {
    /// Reads the keys of a process.
    pub(super) fn read(word: &str, keys: &mut Keys<'_>) -> Result<Self, WorkloadError> {
        let rate = keys.need("rate", "it is in requests per second, for example rate = 5.53")?;
        let rate_s = rate.number_in(LEAST_RATE, LIMIT_RATE)?;
        Ok(match word {
            "constant" => Self::Constant { rate_nano: whole(rate_s * 1e9) },
            "poisson" => Self::Poisson { mean_s: 1.0 / rate_s },
            "gamma" => {
                let shape = shape(keys, "1 / cv²", 1e-4, |cv| 1.0 / (cv * cv))?;
                Self::Gamma { shape, scale_s: 1.0 / (rate_s * shape) }
            }
            _ => {
                let shape = shape(keys, "it has the same CV", LEAST_WEIBULL, weibull_shape)?;
                Self::Weibull { shape, scale_s: 1.0 / (rate_s * libm::tgamma(1.0 + 1.0 / shape)) }
            }
        })
    }

    /// The gap before `row`, in seconds; before the first one there is none where gaps are even.
    pub(super) fn gap_s(&self, row: u64, draws: &mut Draws) -> f64 {
        match *self {
            Self::Constant { .. } if row == 0 => 0.0,
            Self::Constant { rate_nano } => NS_PER_S as f64 / rate_nano as f64,
            Self::Poisson { mean_s } => draws.of(Purpose::Gap, row).exponential() * mean_s,
            Self::Gamma { shape, scale_s } => draws.of(Purpose::Gap, row).gamma(shape) * scale_s,
            Self::Weibull { shape, scale_s } => {
                draws.of(Purpose::Gap, row).weibull(shape) * scale_s
            }
        }
    }

    /// The arrival of `row` where all are evenly spaced, exactly.
    pub(super) fn evenly(&self, row: u64) -> Nanos {
        let Self::Constant { rate_nano } = *self else { return Nanos::MAX };
        let ns = u128::from(row) * u128::from(NS_PER_S).pow(2) / u128::from(rate_nano);
        Nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

/// Below this shape Γ(1 + 2/shape) is out of range.
const LEAST_WEIBULL: f64 = 0.05;

/// `shape`, or the `cv` it follows from.
fn shape(
    keys: &mut Keys<'_>,
    same: &str,
    least: f64,
    of_cv: impl Fn(f64) -> f64,
) -> Result<f64, WorkloadError> {
    if let Some(shape) = keys.get("shape") {
        if keys.get("cv").is_some() {
            return Err(
                shape.fail(format!("stands beside `cv`; they say the same (shape = {same})"))
            );
        }
        return shape.number_in(least, 1e6);
    }
    let cv = keys.need("cv", "it is deviation ÷ mean of the gaps, for example cv = 2.0")?;
    Ok(of_cv(cv.number_in(1e-3, 100.0)?))
}

/// The shape of a Weibull with this CV: CV² = Γ(1 + 2/k) / Γ(1 + 1/k)² − 1, which falls as k grows.
fn weibull_shape(cv: f64) -> f64 {
    let log_ratio =
        |shape: f64| libm::lgamma(1.0 + 2.0 / shape) - 2.0 * libm::lgamma(1.0 + 1.0 / shape);
    let wanted = libm::log1p(cv * cv);
    let (mut low, mut high) = (LEAST_WEIBULL, 2_000.0);
    for _ in 0..80 {
        let middle = libm::sqrt(low * high);
        if log_ratio(middle) > wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}
