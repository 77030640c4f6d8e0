//! How long prompts and completions are.
//!
//! Every distribution is an inverse distribution function of one uniform number, so a rank
//! correlation between input and output can be added by correlating the two uniforms. Production
//! traces show next to none (Spearman −0.02 to 0.07), so the two are drawn independently. Absent
//! until later: mixtures, empirical files, Zipf.

use std::sync::Arc;

use super::WorkloadError;
use super::keys::{Field, Keys};
use super::normal::normal_quantile;

/// The most tokens a length may have: ten times the longest context sold, so beyond it lies a slip.
const LIMIT_TOK: u32 = 10_000_000;
/// The most points a quantile grid may have.
const LIMIT_POINTS: usize = 100_000;

/// A distribution of token counts, at least 1.
#[derive(Clone, Debug)]
pub(super) struct Length {
    family: Family,
    min_tok: u32,
    max_tok: u32,
}

#[derive(Clone, Debug)]
enum Family {
    Fixed(u32),
    /// Every whole number from `min_tok` to `max_tok`.
    Uniform,
    Lognormal {
        mu: f64,
        sigma: f64,
    },
    /// `(probability, tokens)`, ascending from probability 0 to 1.
    Quantiles(Arc<[(f64, f64)]>),
}

impl Length {
    /// Reads a section such as `[input]`.
    pub(super) fn read(mut keys: Keys<'_>) -> Result<Self, WorkloadError> {
        let kind = keys.need("distribution", "write for example distribution = \"lognormal\"")?;
        let mut length = Self { family: Family::Uniform, min_tok: 1, max_tok: LIMIT_TOK };
        match kind.text()? {
            "fixed" => {
                let tokens = keys.need("tokens", "write for example tokens = 500")?;
                length.family = Family::Fixed(tokens_in(&tokens)?);
            }
            "uniform" => {
                length.min_tok = tokens_in(&keys.need("min", "write for example min = 100")?)?;
                length.max_tok = tokens_in(&keys.need("max", "write for example max = 2000")?)?;
                length.check_ends(&mut keys)?;
            }
            "lognormal" => {
                length.family = lognormal(&mut keys)?;
                length.read_clip(&mut keys)?;
            }
            "quantiles" => {
                length.family = quantiles(&mut keys)?;
                length.read_clip(&mut keys)?;
            }
            _ => {
                let known = ["fixed", "uniform", "lognormal", "quantiles"];
                return Err(kind.unknown_word("distribution", &known));
            }
        }
        keys.finish()?;
        Ok(length)
    }

    /// The length at probability `u`, strictly between 0 and 1.
    pub(super) fn at(&self, u: f64) -> u32 {
        match &self.family {
            Family::Fixed(tokens) => *tokens,
            Family::Uniform => {
                let values = f64::from(self.max_tok - self.min_tok) + 1.0;
                self.clip(f64::from(self.min_tok) + libm::floor(u * values))
            }
            Family::Lognormal { mu, sigma } => {
                self.clip(libm::rint(libm::exp(mu + sigma * normal_quantile(u))))
            }
            Family::Quantiles(grid) => self.clip(libm::rint(interpolate(grid, u))),
        }
    }

    /// A whole number of tokens within the ends; also the place where `f64` becomes an integer.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the range of two u32 just before"
    )]
    fn clip(&self, tokens: f64) -> u32 {
        tokens.clamp(f64::from(self.min_tok), f64::from(self.max_tok)) as u32
    }

    fn read_clip(&mut self, keys: &mut Keys<'_>) -> Result<(), WorkloadError> {
        if let Some(min) = keys.get("min") {
            self.min_tok = tokens_in(&min)?;
        }
        if let Some(max) = keys.get("max") {
            self.max_tok = tokens_in(&max)?;
        }
        self.check_ends(keys)
    }

    fn check_ends(&self, keys: &mut Keys<'_>) -> Result<(), WorkloadError> {
        let (min, max) = (self.min_tok, self.max_tok);
        match keys.get("min") {
            Some(field) if min > max => {
                Err(field.fail(format!("is {min}, above the `max` of {max}")))
            }
            _ => Ok(()),
        }
    }
}

fn tokens_in(field: &Field<'_>) -> Result<u32, WorkloadError> {
    let tokens = field.whole_in(1, u64::from(LIMIT_TOK))?;
    Ok(u32::try_from(tokens).expect("the limit fits"))
}

fn lognormal(keys: &mut Keys<'_>) -> Result<Family, WorkloadError> {
    // e^16.2 is just above the limit on tokens: a larger `mu` was meant as a length.
    let mu = keys.need("mu", "it is the mean of ln(tokens), for example mu = 5.24")?;
    let sigma =
        keys.need("sigma", "it is the deviation of ln(tokens), for example sigma = 1.84")?;
    Ok(Family::Lognormal { mu: mu.number_in(-10.0, 16.0)?, sigma: sigma.number_in(0.0, 10.0)? })
}

fn quantiles(keys: &mut Keys<'_>) -> Result<Family, WorkloadError> {
    let q_field = keys.need("q", "it lists probabilities from 0 to 1, ascending")?;
    let tokens_field = keys.need("tokens", "it lists the length at each probability of `q`")?;
    let (q, tokens) = (q_field.numbers()?, tokens_field.numbers()?);
    if q.len() < 2 || q.len() > LIMIT_POINTS {
        let why = format!("has {} points; it must have from 2 to {LIMIT_POINTS}", q.len());
        return Err(q_field.fail(why));
    }
    if tokens.len() != q.len() {
        let why = format!("has {} points where `q` has {}", tokens.len(), q.len());
        return Err(tokens_field.fail(why));
    }
    for (name, value, right) in [("first", q[0], 0.0), ("last", q[q.len() - 1], 1.0)] {
        if value.total_cmp(&right).is_ne() {
            return Err(
                q_field.fail(format!("has {value} as its {name} point; it must be {right}"))
            );
        }
    }
    if let Some(at) = (1..q.len()).find(|&at| q[at] <= q[at - 1]) {
        return Err(q_field.fail(format!("goes from {} to {}; it must ascend", q[at - 1], q[at])));
    }
    if let Some(at) = (1..q.len()).find(|&at| tokens[at] < tokens[at - 1]) {
        let why = format!("goes down from {} to {}; it must not", tokens[at - 1], tokens[at]);
        return Err(tokens_field.fail(why));
    }
    if let Some(bad) = tokens.iter().find(|&&t| t < 1.0 || t > f64::from(LIMIT_TOK)) {
        let why = format!("holds {bad}; a length must be from 1 to {LIMIT_TOK}");
        return Err(tokens_field.fail(why));
    }
    Ok(Family::Quantiles(q.into_iter().zip(tokens).collect()))
}

/// Linear between the points of the grid: with the 105 points of the presets, within KS 0.007 of the
/// rows they were taken from.
fn interpolate(grid: &[(f64, f64)], u: f64) -> f64 {
    let right = grid.partition_point(|&(q, _)| q <= u).clamp(1, grid.len() - 1);
    let ((q0, tokens0), (q1, tokens1)) = (grid[right - 1], grid[right]);
    tokens0 + (tokens1 - tokens0) * ((u - q0) / (q1 - q0))
}
