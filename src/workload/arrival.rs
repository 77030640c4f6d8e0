//! When requests arrive: gaps between rows, summed in integer nanoseconds.
//!
//! A renewal process: every gap is drawn for its own row and nothing remembers the rows before it
//! but the sum. Absent until later: rate envelopes and on/off bursts, which multiply and interrupt
//! this clock, and closed arrivals. One "burstiness" figure cannot make real arrivals
//! (an independent gamma with the CV of the Azure code trace has none of its shape).

use super::WorkloadError;
use super::draw::{Draws, Purpose};
use super::keys::Keys;
use crate::units::{NS_PER_S, Nanos};

/// Requests per second below which a workload is a slip of the pen (one in eleven days).
const LEAST_RATE: f64 = 1e-6;
/// Requests per second above which gaps have no digits left in whole nanoseconds.
const LIMIT_RATE: f64 = 1e6;

/// A process that says when rows arrive.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arrival {
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
}

impl Arrival {
    /// Reads `[arrival]`.
    pub(super) fn read(mut keys: Keys<'_>) -> Result<Self, WorkloadError> {
        let process = keys.need("process", "write for example process = \"poisson\"")?;
        let word = process.text()?;
        if !["constant", "poisson", "gamma"].contains(&word) {
            return Err(process.unknown_word("process", &["constant", "poisson", "gamma"]));
        }
        let rate = keys.need("rate", "it is in requests per second, for example rate = 5.53")?;
        let rate_s = rate.number_in(LEAST_RATE, LIMIT_RATE)?;
        let arrival = match word {
            "constant" => Self::Constant { rate_nano: whole(rate_s * 1e9) },
            "poisson" => Self::Poisson { mean_s: 1.0 / rate_s },
            _ => {
                let shape = gamma_shape(&mut keys)?;
                Self::Gamma { shape, scale_s: 1.0 / (rate_s * shape) }
            }
        };
        keys.finish()?;
        Ok(arrival)
    }

    /// The arrival of `row`, given that of the row before it (0 for the first).
    pub(super) fn at(self, row: u64, before: Nanos, draws: &mut Draws) -> Nanos {
        let gap_s = match self {
            Self::Constant { rate_nano } => {
                let ns = u128::from(row) * u128::from(NS_PER_S).pow(2) / u128::from(rate_nano);
                return Nanos(u64::try_from(ns).unwrap_or(u64::MAX));
            }
            Self::Poisson { mean_s } => draws.of(Purpose::Gap, row).exponential() * mean_s,
            Self::Gamma { shape, scale_s } => draws.of(Purpose::Gap, row).gamma(shape) * scale_s,
        };
        before + Nanos(whole(gap_s * 1e9))
    }
}

/// `shape`, or the `cv` it follows from.
fn gamma_shape(keys: &mut Keys<'_>) -> Result<f64, WorkloadError> {
    if let Some(shape) = keys.get("shape") {
        if keys.get("cv").is_some() {
            return Err(shape.fail("stands beside `cv`; they say the same (shape = 1 / cv²)"));
        }
        return shape.number_in(1e-4, 1e6);
    }
    let cv = keys.need("cv", "it is deviation ÷ mean of the gaps, for example cv = 2.0")?;
    let cv = cv.number_in(1e-3, 100.0)?;
    Ok(1.0 / (cv * cv))
}

/// The nearest whole number; beyond 2^64 the largest one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded, never negative, and saturating is what is wanted beyond 584 years"
)]
fn whole(value: f64) -> u64 {
    libm::rint(value) as u64
}
