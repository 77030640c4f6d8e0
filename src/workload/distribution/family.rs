//! The families of distributions, and how each is written.

use std::sync::Arc;

use super::super::WorkloadError;
use super::super::keys::Keys;
use super::super::normal::normal_quantile;
use super::Unit;
use super::mixture::Mixture;
use super::tables::{Zipf, interpolate, place, read_file, read_grid};

/// What may stand behind `distribution =`.
pub(super) const NAMES: [&str; 9] = [
    "fixed",
    "uniform",
    "lognormal",
    "mixture",
    "quantiles",
    "empirical",
    "zipf",
    "exponential",
    "geometric",
];

/// A family with its parameters.
#[derive(Clone, Debug)]
pub(super) enum Family {
    Fixed(f64),
    /// From the first to the second; whole numbers all alike, both ends included.
    Uniform(f64, f64),
    WholeUniform(f64, f64),
    Lognormal {
        mu: f64,
        sigma: f64,
    },
    Mixture(Mixture),
    /// `(probability, value)`, ascending from probability 0 to 1.
    Quantiles(Arc<[(f64, f64)]>),
    /// The values of a file, ascending.
    Empirical(Arc<[f64]>),
    Zipf(Zipf),
    Exponential {
        mean: f64,
    },
    /// Tries up to the first success, of which `1 / mean` do succeed; `scale` is 1 ÷ −ln(1 − 1/mean).
    Geometric {
        scale: f64,
    },
}

impl Family {
    /// Reads a family's keys; true where `min` and `max` may cut it.
    pub(super) fn read(keys: &mut Keys<'_>, unit: Unit) -> Result<(Self, bool), WorkloadError> {
        let kind = keys.need("distribution", "write for example distribution = \"lognormal\"")?;
        let family = match kind.text()? {
            "fixed" => {
                let value = keys.need(unit.key, "it is the one value, for example 500")?;
                return Ok((Self::Fixed(unit.value(&value)?), false));
            }
            "uniform" => return Ok((uniform(keys, unit)?, false)),
            "lognormal" => lognormal(keys)?,
            "mixture" => Self::Mixture(Mixture::read(keys)?),
            "quantiles" => Self::Quantiles(read_grid(keys, unit)?),
            "empirical" => Self::Empirical(read_file(keys, unit)?),
            "zipf" if unit.whole => return Ok((Self::Zipf(Zipf::read(keys, unit)?), false)),
            "exponential" => {
                let mean = keys.need("mean", "write for example mean = 300")?;
                Self::Exponential { mean: mean.number_in(1e-9, unit.most)? }
            }
            "geometric" if unit.whole => {
                let mean = keys.need("mean", "write for example mean = 4.2")?;
                let mean = mean.number_in(1.0, unit.most)?;
                Self::Geometric { scale: -1.0 / libm::log1p(-1.0 / mean) }
            }
            _ => return Err(kind.unknown_word("distribution", &NAMES)),
        };
        Ok((family, true))
    }

    /// The value at probability `u`, before it is rounded and cut.
    pub(super) fn at(&self, u: f64) -> f64 {
        match self {
            Self::Fixed(value) => *value,
            Self::Uniform(min, max) => min + u * (max - min),
            Self::WholeUniform(min, max) => min + libm::floor(u * (max - min + 1.0)),
            Self::Lognormal { mu, sigma } => libm::exp(mu + sigma * normal_quantile(u)),
            Self::Mixture(mixture) => mixture.at(u),
            Self::Quantiles(points) => interpolate(points, u),
            Self::Empirical(values) => values[place(u, values.len())],
            Self::Zipf(zipf) => zipf.at(u),
            Self::Exponential { mean } => -mean * libm::log1p(-u),
            Self::Geometric { scale } => libm::ceil(-scale * libm::log1p(-u)),
        }
    }
}

fn uniform(keys: &mut Keys<'_>, unit: Unit) -> Result<Family, WorkloadError> {
    let min_field = keys.need("min", "write for example min = 100")?;
    let min = unit.value(&min_field)?;
    let max = unit.value(&keys.need("max", "write for example max = 2000")?)?;
    if min > max {
        return Err(min_field.fail(format!("is {min}, above the `max` of {max}")));
    }
    Ok(if unit.whole { Family::WholeUniform(min, max) } else { Family::Uniform(min, max) })
}

fn lognormal(keys: &mut Keys<'_>) -> Result<Family, WorkloadError> {
    // e^18.5 is just above the limit on seconds: a larger `mu` was meant as a value.
    let mu = keys.need("mu", "it is the mean of the logarithms, for example mu = 5.24")?;
    let sigma =
        keys.need("sigma", "it is the deviation of the logarithms, for example sigma = 1.84")?;
    Ok(Family::Lognormal { mu: mu.number_in(-10.0, 18.5)?, sigma: sigma.number_in(0.0, 10.0)? })
}
