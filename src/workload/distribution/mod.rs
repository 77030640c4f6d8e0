//! Distributions of tokens, turns, requests and seconds.
//!
//! Every one is an inverse distribution function of one uniform number, so that two values can be
//! correlated by rank, and a value never depends on how many were drawn before. Deliberately absent:
//! samplers that reject, and any knowledge of what the value is for.

mod family;
mod mixture;
mod tables;
#[cfg(test)]
mod tests;

use self::family::Family;
use super::WorkloadError;
use super::keys::{Field, Keys};

/// What a distribution counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Unit {
    /// The key of a value, such as `tokens`.
    pub(super) key: &'static str,
    least: f64,
    most: f64,
    whole: bool,
}

/// Tokens: ten times the longest context sold at the most, so beyond it lies a slip.
pub(super) const TOKENS: Unit = Unit { key: "tokens", least: 1.0, most: 1e7, whole: true };
/// Turns of a session.
pub(super) const TURNS: Unit = Unit { key: "turns", least: 1.0, most: 4_095.0, whole: true };
/// Requests of a burst.
pub(super) const REQUESTS: Unit = Unit { key: "requests", least: 1.0, most: 1e9, whole: true };
/// Time, up to some three years.
pub(super) const SECONDS: Unit = Unit { key: "seconds", least: 0.0, most: 1e8, whole: false };

/// Factors on a rate.
pub(super) const FACTORS: Unit = Unit { key: "factors", least: 1e-6, most: 1e6, whole: false };

impl Unit {
    /// A value in this unit.
    fn value(self, field: &Field<'_>) -> Result<f64, WorkloadError> {
        if self.whole {
            return field.whole_in(whole(self.least), whole(self.most)).map(|n| n as f64);
        }
        field.number_in(self.least, self.most)
    }
}

/// The nearest whole number; beyond 2^64 the largest one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded, never negative, and saturating is what is wanted"
)]
pub(super) fn whole(value: f64) -> u64 {
    libm::rint(value) as u64
}

/// A distribution, cut to its ends.
#[derive(Clone, Debug)]
pub(super) struct Distribution {
    family: Family,
    min: f64,
    max: f64,
    whole: bool,
}

impl Distribution {
    /// Always this value.
    pub(super) fn one(value: f64, unit: Unit) -> Self {
        Self { family: Family::Fixed(value), min: unit.least, max: unit.most, whole: unit.whole }
    }

    /// Reads a section that holds nothing else.
    pub(super) fn read(mut keys: Keys<'_>, unit: Unit) -> Result<Self, WorkloadError> {
        let distribution = Self::read_part(&mut keys, unit)?;
        keys.finish()?;
        Ok(distribution)
    }

    /// Reads a distribution's keys in a section that has others too.
    pub(super) fn read_part(keys: &mut Keys<'_>, unit: Unit) -> Result<Self, WorkloadError> {
        let (family, free_ends) = Family::read(keys, unit)?;
        let mut distribution = Self { family, min: unit.least, max: unit.most, whole: unit.whole };
        if free_ends {
            distribution.read_ends(keys, unit)?;
        }
        Ok(distribution)
    }

    fn read_ends(&mut self, keys: &mut Keys<'_>, unit: Unit) -> Result<(), WorkloadError> {
        let max = keys.get("max");
        if let Some(max) = &max {
            self.max = unit.value(max)?;
        }
        if let Some(min) = keys.get("min") {
            self.min = unit.value(&min)?;
            if self.min > self.max {
                return Err(min.fail(format!("is {}, above the `max` of {}", self.min, self.max)));
            }
        }
        Ok(())
    }

    /// The value at probability `u`, strictly between 0 and 1.
    pub(super) fn at(&self, u: f64) -> f64 {
        let value = self.family.at(u);
        let value = if self.whole { libm::rint(value) } else { value };
        value.clamp(self.min, self.max)
    }

    /// The same as a whole number.
    pub(super) fn whole_at(&self, u: f64) -> u64 {
        whole(self.at(u))
    }

    /// The same as tokens.
    pub(super) fn tokens_at(&self, u: f64) -> u32 {
        u32::try_from(self.whole_at(u)).unwrap_or(u32::MAX)
    }
}
