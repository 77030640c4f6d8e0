//! Rows of another rate than was recorded, each way with what it keeps and what it breaks.
//!
//! | method | index of dispersion | keeps | breaks |
//! |---|---|---|---|
//! | compress | IDC'(w) = IDC(f·w), gap CV the same | order, ratios | the day's curve, pauses |
//! | thin | IDC' − 1 = p·(IDC − 1) | the curve, sessions | bursts fade |
//! | clone | IDC' = f·IDC | the curve | f arrivals at once |
//! | per-client | each client's gap CV and share | the curve, bursts | a session's length |
//!
//! Compressing is the plan's speed ([`super::Shape::speed`]); the others are adaptors of rows, here. All
//! that is drawn depends on the seed and on a row's own number or session, so that a share of 0.2 is part
//! of a share of 0.5, and the same on every machine. Deliberately absent: every k-th row, which makes
//! arrivals more regular than any real ones, and thinning that tears sessions apart.

mod clients;
mod dequantise;
mod pace;
mod sampling;

use std::fmt;
use std::str::FromStr;

pub use self::clients::{ClientError, per_client};
pub use self::dequantise::{Dequantise, dequantised};
pub use self::pace::paced;
pub use self::sampling::{cloned, thinned};

use crate::trace::read::{UnknownWord, value_of, word_of};
use crate::units::Speed;

/// How a trace gets another rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Trace time runs faster or slower.
    #[default]
    Compress,
    /// Sessions are left out.
    Thin,
    /// Rows are sent several times at once.
    Clone,
    /// Each client's rows are compressed and repeated, or stretched and cut, stretch by stretch.
    PerClient,
}

/// What is wrong with a rate or a method.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum RateError {
    /// No rate.
    #[error("`{word}` is no rate; write requests per second above 0, such as 5.5")]
    Rate {
        /// What was written.
        word: String,
    },
    /// A factor that the method cannot reach.
    #[error("--scale {method} cannot change {recorded:.6} requests/s into {wanted:.6}: {why}")]
    OutOfReach {
        /// The method.
        method: Method,
        /// Rate of the source within the window.
        recorded: f64,
        /// Rate that was asked for.
        wanted: f64,
        /// Why not, and what can.
        why: &'static str,
    },
}

/// Requests per second, above zero.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Rate(f64);

impl Rate {
    /// Requests per second.
    #[must_use]
    pub fn per_s(self) -> f64 {
        self.0
    }
}

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(word: &str) -> Result<Self, RateError> {
        let rate = word.parse::<f64>().ok().filter(|rate| (1e-9..=1e9).contains(rate));
        rate.map(Self).ok_or_else(|| RateError::Rate { word: word.chars().take(60).collect() })
    }
}

const METHODS: [(&str, Method); 4] = [
    ("compress", Method::Compress),
    ("thin", Method::Thin),
    ("clone", Method::Clone),
    ("per-client", Method::PerClient),
];

impl FromStr for Method {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        value_of("scale method", &METHODS, word)
    }
}

crate::units::serialize_as_text!(Method);

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(word_of(&METHODS, self))
    }
}

impl Method {
    /// The factor from a recorded rate to the wanted one, where this method can bring it about.
    pub fn factor(self, recorded: f64, wanted: Rate) -> Result<f64, RateError> {
        let factor = wanted.per_s() / recorded;
        let why = match self {
            _ if !recorded.is_finite() || recorded <= 0.0 => {
                "the source has no rate of its own: all its rows come at one time"
            }
            Self::Thin if factor > 1.0 => {
                "leaving rows out cannot raise a rate; `compress`, `clone` and `per-client` can"
            }
            Self::Clone if factor < 1.0 => {
                "copies cannot lower a rate; `compress`, `thin` and `per-client` can"
            }
            _ if !(1e-6..=1e6).contains(&factor) => "the factor is beyond a million",
            _ => return Ok(factor),
        };
        Err(RateError::OutOfReach { method: self, recorded, wanted: wanted.per_s(), why })
    }
}

/// The speed that comes nearest a factor, exact to a billionth.
#[must_use]
pub fn speed_of(factor: f64) -> Speed {
    Speed::parse(&format!("{factor:.9}")).unwrap_or(Speed::ONE)
}

#[cfg(test)]
mod tests;
