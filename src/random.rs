//! Random numbers that depend on a key and a place in a stream, and on nothing else.
//!
//! A leaf that every room may use. Whoever draws names what for (seed, purpose, row, …), so the order of
//! drawing, the number of threads and what else is drawn change nothing, and the same bytes come out on
//! every machine: `ChaCha8` and integer mixing, both of which are fixed for ever. Deliberately absent: a
//! generator that is shared, entropy of the system, and `rand_distr`, whose maths goes through the
//! system's libm as soon as any other crate of the build turns on the `std` feature of `num-traits`.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The step between two numbers of a sequence that [`mix`] makes random (2^64 ÷ the golden ratio).
pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes all bits, one to one (the finisher of `SplitMix64`: Steele, Lea and Flood, "Fast Splittable
/// Pseudorandom Number Generators", OOPSLA 2014).
#[must_use]
pub const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// One number for each (seed, purpose, key), uniform on the open interval (0, 1): two rounds of [`mix`]
/// where setting up a [`Random`] for a single number would cost ten times as much.
#[must_use]
pub fn uniform_of(seed: u64, purpose: u64, key: u64) -> f64 {
    let stream = mix(seed.wrapping_add(STEP.wrapping_mul(purpose)));
    open_uniform(mix(mix(stream ^ key.wrapping_mul(STEP)).wrapping_add(STEP)))
}

/// 52 bits and a half, so that neither end occurs and `ln u` is finite.
fn open_uniform(bits: u64) -> f64 {
    const SCALE: f64 = 1.0 / (1_u64 << 52) as f64;
    ((bits >> 12) as f64 + 0.5) * SCALE
}

/// The numbers of one key: 2^64 streams of 2^68 words, each of which can be gone to.
#[derive(Clone, Debug)]
pub struct Random(ChaCha8Rng);

impl Random {
    /// The start of stream 0 of a key.
    #[must_use]
    pub fn keyed(key: [u64; 4]) -> Self {
        let mut bytes = [0; 32];
        for (place, part) in bytes.chunks_exact_mut(8).zip(key) {
            place.copy_from_slice(&part.to_le_bytes());
        }
        Self(ChaCha8Rng::from_seed(bytes))
    }

    /// The numbers of a key that is spread from a seed alone.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Goes to a 32-bit word of a stream.
    pub fn seek(&mut self, stream: u64, word: u128) {
        self.0.set_stream(stream);
        self.0.set_word_pos(word);
    }

    /// The next 32 bits.
    pub fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1), from the upper 53 of the next 64 bits.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform on the open interval (0, 1), from the upper 52 of the next 64 bits.
    pub fn open_uniform(&mut self) -> f64 {
        open_uniform(self.next_u64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_published_ones() {
        // The first numbers of SplitMix64 from the seed 0.
        assert_eq!(
            [STEP, STEP.wrapping_mul(2)].map(mix),
            [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]
        );
        // The first words of ChaCha8 under a key of zeros.
        assert_eq!(Random::keyed([0; 4]).next_u32(), 0x2fef_003e);
    }

    #[test]
    fn uniforms_are_uniform_and_open() {
        let mut random = Random::keyed([1, 0, 0, 0]);
        let streams: [&mut dyn FnMut(u64) -> f64; 2] =
            [&mut |_| random.open_uniform(), &mut |key| uniform_of(1, 2, key)];
        for draw in streams {
            let mut counts = [0_u32; 10];
            for key in 0..20_000 {
                let u = draw(key);
                assert!(u > 0.0 && u < 1.0);
                let bin = counts.iter().enumerate().rposition(|(bin, _)| u >= bin as f64 / 10.0);
                counts[bin.expect("u is not negative")] += 1;
            }
            // Chi-squared with 9 degrees of freedom: 27.9 is its 99.9th percentile.
            let off = |&n: &u32| (f64::from(n) - 2_000.0).powi(2) / 2_000.0;
            let chi2: f64 = counts.iter().map(off).sum();
            assert!(chi2 < 27.9, "{counts:?}: {chi2}");
        }
    }
}
