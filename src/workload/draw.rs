//! Random numbers that depend on (seed, purpose, row) and on nothing else.
//!
//! Row 1,000's prompt length is the same whether or not anybody drew row 999's, at any rate and for
//! any limit: each purpose has its own `ChaCha8` stream and each row its own place in it. The
//! arithmetic is IEEE plus `libm` written in Rust, so the same bytes come out on every machine.
//! Deliberately absent: `rand_distr`, whose maths goes through the system's libm as soon as any
//! other crate of the build turns on the `std` feature of `num-traits`, and the methods of `f64`
//! that do the same (`ln`, `exp`, `powf`).

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::normal::normal_quantile;

/// What a number is drawn for; the value is the stream's number and must never change.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// The gap before a row or a session.
    Gap = 1,
    /// The prompt length of a row, or of a session's first turn.
    Input = 2,
    /// Its completion length.
    Output = 3,
    /// Its class.
    Class = 4,
    /// The size of a burst.
    BurstSize = 5,
    /// The silence after it.
    BurstOff = 6,
    /// The turns of a session, and its context limit.
    Session = 7,
    /// What a later turn adds to the prompt.
    TurnInput = 8,
    /// Its completion length.
    TurnOutput = 9,
    /// The pause before it.
    Think = 10,
    /// The system prompt of a row or session.
    SystemPrompt = 11,
    /// How much of a prompt was seen before, and where.
    Reuse = 12,
    /// How fast a burst is.
    BurstPace = 13,
}

/// Purposes of one stream of arrivals; those of the next are as many further on.
const PURPOSES: u64 = 64;

/// 32-bit words of a stream that belong to one row: a rejection sampler uses a handful. A stream has
/// 2^68 words, so there is room for 2^52 rows.
const ROW_WORDS: u128 = 1 << 16;

/// The rest of the key beside the seed. Change it when the meaning of a draw changes.
const DOMAIN: &[u8; 24] = b"underfire/workload/draw1";

/// All random numbers under one seed.
#[derive(Clone, Debug)]
pub(super) struct Draws {
    rng: ChaCha8Rng,
    first_purpose: u64,
}

impl Draws {
    /// The numbers of a workload's `stream`th stream of arrivals.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..].copy_from_slice(DOMAIN);
        Self { rng: ChaCha8Rng::from_seed(key), first_purpose: stream * PURPOSES }
    }

    /// The numbers of one row for one purpose, from their start.
    pub(super) fn of(&mut self, purpose: Purpose, row: u64) -> Draw<'_> {
        self.rng.set_stream(self.first_purpose + purpose as u64);
        self.rng.set_word_pos(u128::from(row) * ROW_WORDS);
        Draw { rng: &mut self.rng }
    }
}

/// The numbers of one row for one purpose.
#[derive(Debug)]
pub(super) struct Draw<'a> {
    rng: &'a mut ChaCha8Rng,
}

impl Draw<'_> {
    /// Uniform on the open interval (0, 1): 52 bits and a half, so that neither end occurs and
    /// `ln u` is finite.
    pub(super) fn uniform(&mut self) -> f64 {
        const SCALE: f64 = 1.0 / (1_u64 << 52) as f64;
        ((self.rng.next_u64() >> 12) as f64 + 0.5) * SCALE
    }

    /// Exponential with mean 1.
    pub(super) fn exponential(&mut self) -> f64 {
        -libm::log(self.uniform())
    }

    /// Gamma with the given shape and scale 1, by Marsaglia and Tsang, "A simple method for
    /// generating gamma variables", ACM TOMS 26(3), 2000; below shape 1 by their boost.
    pub(super) fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            let boost = libm::exp(libm::log(self.uniform()) / shape);
            return self.gamma_from_one(shape + 1.0) * boost;
        }
        self.gamma_from_one(shape)
    }

    /// Weibull with the given shape and scale 1.
    pub(super) fn weibull(&mut self, shape: f64) -> f64 {
        libm::exp(libm::log(self.exponential()) / shape)
    }

    fn gamma_from_one(&mut self, shape: f64) -> f64 {
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / libm::sqrt(9.0 * d);
        // More than 95% of the tries succeed, at any shape.
        loop {
            let normal = normal_quantile(self.uniform());
            let cube_root = 1.0 + c * normal;
            if cube_root <= 0.0 {
                continue;
            }
            let v = cube_root * cube_root * cube_root;
            let bound = 0.5 * normal * normal + d * (1.0 - v + libm::log(v));
            if libm::log(self.uniform()) < bound {
                return d * v;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_and_cv(values: &[f64]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
        (mean, libm::sqrt(variance) / mean)
    }

    #[test]
    fn gamma_has_its_mean_and_variance_at_any_shape() {
        let mut draws = Draws::new(3, 0);
        for shape in [0.05, 0.231, 1.0, 40.0] {
            let values: Vec<f64> =
                (0..10_000).map(|row| draws.of(Purpose::Gap, row).gamma(shape)).collect();
            let (mean, cv) = mean_and_cv(&values);
            // Four standard errors of the mean; the CV is given more, its tail being heavy.
            let cv_right = 1.0 / libm::sqrt(shape);
            assert!((mean / shape - 1.0).abs() < 4.0 * cv_right / 100.0, "{shape}: mean {mean}");
            assert!((cv / cv_right - 1.0).abs() < 0.1, "{shape}: cv {cv} for {cv_right}");
        }
    }

    #[test]
    fn a_draw_depends_on_its_row_and_purpose_alone() {
        let mut draws = Draws::new(7, 0);
        let alone = draws.of(Purpose::Output, 1_000).uniform();
        for row in 0..50 {
            draws.of(Purpose::Gap, row).gamma(0.3);
        }
        let mut again = draws.of(Purpose::Output, 1_000);
        assert_eq!(again.uniform().to_bits(), alone.to_bits());
        assert_ne!(again.uniform().to_bits(), alone.to_bits());
        let mut others = vec![draws.of(Purpose::Input, 1_000).uniform()];
        others.push(draws.of(Purpose::Output, 1_001).uniform());
        others.push(Draws::new(7, 1).of(Purpose::Output, 1_000).uniform());
        others.push(Draws::new(8, 0).of(Purpose::Output, 1_000).uniform());
        assert!(others.iter().all(|other| other.to_bits() != alone.to_bits()));
    }

    #[test]
    fn uniforms_are_uniform_and_open() {
        let mut draws = Draws::new(1, 0);
        let mut counts = [0_u32; 10];
        for row in 0..20_000 {
            let u = draws.of(Purpose::Input, row).uniform();
            assert!(u > 0.0 && u < 1.0);
            let bin = counts.iter().enumerate().rposition(|(bin, _)| u >= bin as f64 / 10.0);
            counts[bin.expect("u is not negative")] += 1;
        }
        // Chi-squared with 9 degrees of freedom: 27.9 is its 99.9th percentile.
        let chi2: f64 = counts.iter().map(|&n| (f64::from(n) - 2_000.0).powi(2) / 2_000.0).sum();
        assert!(chi2 < 27.9, "{counts:?}: {chi2}");
    }
}
