//! Random numbers that depend on (seed, purpose, row) and on nothing else.
//!
//! Row 1,000's prompt length is the same whether or not anybody drew row 999's, at any rate and for
//! any limit: each purpose has its own stream of [`Random`] and each row its own place in it. The
//! arithmetic is IEEE plus `libm` written in Rust, so the same bytes come out on every machine.
//! Deliberately absent: the methods of `f64` that go through the system's libm (`ln`, `exp`, `powf`).

use super::normal::normal_quantile;
use crate::random::Random;

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
const DOMAIN: [&[u8; 8]; 3] = [b"underfir", b"e/worklo", b"ad/draw1"];

/// All random numbers under one seed.
#[derive(Clone, Debug)]
pub(super) struct Draws {
    random: Random,
    first_purpose: u64,
}

impl Draws {
    /// The numbers of a workload's `stream`th stream of arrivals.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        let [a, b, c] = DOMAIN.map(|part| u64::from_le_bytes(*part));
        Self { random: Random::keyed([seed, a, b, c]), first_purpose: stream * PURPOSES }
    }

    /// The numbers of one row for one purpose, from their start.
    pub(super) fn of(&mut self, purpose: Purpose, row: u64) -> Draw<'_> {
        self.random.seek(self.first_purpose + purpose as u64, u128::from(row) * ROW_WORDS);
        Draw(&mut self.random)
    }
}

/// The numbers of one row for one purpose.
#[derive(Debug)]
pub(super) struct Draw<'a>(&'a mut Random);

impl Draw<'_> {
    /// Uniform on the open interval (0, 1).
    pub(super) fn uniform(&mut self) -> f64 {
        self.0.open_uniform()
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
}
