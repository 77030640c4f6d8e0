//! Zipf's law on whole numbers: k with a weight of k^−a.

use std::sync::Arc;

use super::super::WorkloadError;
use super::super::keys::Keys;
use super::Unit;

/// The most values, each of which is a number in memory.
const LIMIT_VALUES: f64 = 2e6;

/// The law with its weights summed up.
#[derive(Clone, Debug)]
pub(super) struct Zipf {
    min: f64,
    /// The share of values up to each.
    shares: Arc<[f64]>,
}

impl Zipf {
    /// Reads `exponent`, `min` and `max`.
    pub(super) fn read(keys: &mut Keys<'_>, unit: Unit) -> Result<Self, WorkloadError> {
        let exponent = keys.need("exponent", "write for example exponent = 1.1")?;
        let exponent = exponent.number_in(0.0, 20.0)?;
        let min_field = keys.get("min");
        let min = min_field.as_ref().map_or(Ok(unit.least), |field| unit.value(field))?;
        let max_field = keys.need("max", "the law needs an end, for example max = 8192")?;
        let max = unit.value(&max_field)?;
        if min > max || max - min >= LIMIT_VALUES {
            let why =
                format!("is {max}; from `min` to `max` there must be 1 to {LIMIT_VALUES} values");
            return Err(max_field.fail(why));
        }
        let mut sum = 0.0;
        let mut shares = Vec::new();
        let mut value = min;
        while value <= max {
            sum += libm::exp(-exponent * libm::log(value));
            shares.push(sum);
            value += 1.0;
        }
        for share in &mut shares {
            *share /= sum;
        }
        Ok(Self { min, shares: shares.into() })
    }

    /// The value at probability `u`.
    pub(super) fn at(&self, u: f64) -> f64 {
        let place = self.shares.partition_point(|&share| share <= u).min(self.shares.len() - 1);
        self.min + place as f64
    }
}
