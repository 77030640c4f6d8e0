//! A mixture of lognormals, by its inverse distribution function.

use std::sync::Arc;

use super::super::WorkloadError;
use super::super::keys::Keys;
use super::super::normal::{normal_cdf, normal_quantile};

/// The most components.
const LIMIT_COMPONENTS: usize = 16;
/// How near ln(value) is found: far below the half token that rounding takes.
const NEAR: f64 = 1e-9;
/// Halvings of a bracket; each gains a bit.
const STEPS: u32 = 60;

/// Lognormals, each with its share.
#[derive(Clone, Debug)]
pub(super) struct Mixture {
    components: Arc<[Component]>,
}

#[derive(Clone, Copy, Debug)]
struct Component {
    share: f64,
    mu: f64,
    sigma: f64,
}

impl Mixture {
    /// Reads `weights`, `mu` and `sigma`, a list each.
    pub(super) fn read(keys: &mut Keys<'_>) -> Result<Self, WorkloadError> {
        let fields = [
            keys.need("weights", "it lists the share of each lognormal")?,
            keys.need("mu", "it lists the mean of the logarithms of each")?,
            keys.need("sigma", "it lists the deviation of the logarithms of each")?,
        ];
        let [weights, mu, sigma] =
            [fields[0].numbers()?, fields[1].numbers()?, fields[2].numbers()?];
        if weights.is_empty() || weights.len() > LIMIT_COMPONENTS {
            let n = weights.len();
            return Err(
                fields[0].fail(format!("has {n} entries; 1 to {LIMIT_COMPONENTS} make sense"))
            );
        }
        for (field, list) in [(&fields[1], &mu), (&fields[2], &sigma)] {
            if list.len() != weights.len() {
                let why =
                    format!("has {} entries where `weights` has {}", list.len(), weights.len());
                return Err(field.fail(why));
            }
        }
        for (field, list, least, most) in [
            (&fields[0], &weights, 1e-9, 1e9),
            (&fields[1], &mu, -10.0, 18.5),
            (&fields[2], &sigma, 1e-6, 10.0),
        ] {
            if let Some(bad) = list.iter().find(|value| !(least..=most).contains(*value)) {
                return Err(field.fail(format!("holds {bad}; it must be from {least} to {most}")));
            }
        }
        let total: f64 = weights.iter().sum();
        let component = |((weight, mu), sigma)| Component { share: weight / total, mu, sigma };
        Ok(Self { components: weights.into_iter().zip(mu).zip(sigma).map(component).collect() })
    }

    /// The value at probability `u`: between the lowest and the highest that a component has there.
    pub(super) fn at(&self, u: f64) -> f64 {
        let z = normal_quantile(u);
        let ends = self.components.iter().map(|one| one.mu + one.sigma * z);
        let (mut low, mut high) = ends
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
        for _ in 0..STEPS {
            if high - low <= NEAR {
                break;
            }
            let middle = 0.5 * (low + high);
            if self.cdf(middle) < u {
                low = middle;
            } else {
                high = middle;
            }
        }
        libm::exp(0.5 * (low + high))
    }

    /// The share below e^`x`.
    fn cdf(&self, x: f64) -> f64 {
        self.components.iter().map(|one| one.share * normal_cdf((x - one.mu) / one.sigma)).sum()
    }
}
