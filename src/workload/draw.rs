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

/// What a number is drawn for; the value is the stream's number and must never change.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// The gap before a row.
    Gap = 1,
    /// Its prompt length.
    Input = 2,
    /// Its completion length.
    Output = 3,
}

/// 32-bit words of a stream that belong to one row: a rejection sampler uses a handful. A stream has
/// 2^68 words, so there is room for 2^52 rows.
const ROW_WORDS: u128 = 1 << 16;

/// The rest of the key beside the seed. Change it when the meaning of a draw changes.
const DOMAIN: &[u8; 24] = b"underfire/workload/draw1";

/// All random numbers under one seed.
#[derive(Clone, Debug)]
pub(super) struct Draws {
    rng: ChaCha8Rng,
}

impl Draws {
    pub(super) fn new(seed: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..].copy_from_slice(DOMAIN);
        Self { rng: ChaCha8Rng::from_seed(key) }
    }

    /// The numbers of one row for one purpose, from their start.
    pub(super) fn of(&mut self, purpose: Purpose, row: u64) -> Draw<'_> {
        self.rng.set_stream(purpose as u64);
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

/// The standard normal's inverse distribution function, to about 1e-16 relative: Wichura, algorithm
/// AS 241 (PPND16), Applied Statistics 37(3), 1988.
pub(super) fn normal_quantile(p: f64) -> f64 {
    let from_middle = p - 0.5;
    if libm::fabs(from_middle) <= 0.425 {
        let r = 0.180_625 - from_middle * from_middle;
        return from_middle * horner(&MIDDLE_TOP, r) / horner(&MIDDLE_BOTTOM, r);
    }
    let tail = if from_middle < 0.0 { p } else { 1.0 - p };
    let r = libm::sqrt(-libm::log(tail));
    let size = if r <= 5.0 {
        horner(&NEAR_TOP, r - 1.6) / horner(&NEAR_BOTTOM, r - 1.6)
    } else {
        horner(&FAR_TOP, r - 5.0) / horner(&FAR_BOTTOM, r - 5.0)
    };
    libm::copysign(size, from_middle)
}

/// A polynomial, highest power last in the list.
fn horner(coefficients: &[f64; 8], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

const MIDDLE_TOP: [f64; 8] = [
    3.387_132_872_796_366_608_0,
    1.331_416_678_917_843_774_5e2,
    1.971_590_950_306_551_442_7e3,
    1.373_169_376_550_946_112_5e4,
    4.592_195_393_154_987_145_7e4,
    6.726_577_092_700_870_085_3e4,
    3.343_057_558_358_812_810_5e4,
    2.509_080_928_730_122_672_7e3,
];
const MIDDLE_BOTTOM: [f64; 8] = [
    1.0,
    4.231_333_070_160_091_125_2e1,
    6.871_870_074_920_579_083_0e2,
    5.394_196_021_424_751_107_7e3,
    2.121_379_430_158_659_586_7e4,
    3.930_789_580_009_271_061_0e4,
    2.872_908_573_572_194_267_4e4,
    5.226_495_278_852_854_561_0e3,
];
const NEAR_TOP: [f64; 8] = [
    1.423_437_110_749_683_577_34,
    4.630_337_846_156_545_295_90,
    5.769_497_221_460_691_405_50,
    3.647_848_324_763_204_605_04,
    1.270_458_252_452_368_382_58,
    2.417_807_251_774_506_117_70e-1,
    2.272_384_498_926_918_458_33e-2,
    7.745_450_142_783_414_076_40e-4,
];
const NEAR_BOTTOM: [f64; 8] = [
    1.0,
    2.053_191_626_637_758_821_87,
    1.676_384_830_183_803_849_40,
    6.897_673_349_851_000_045_50e-1,
    1.481_039_764_274_800_745_90e-1,
    1.519_866_656_361_645_719_66e-2,
    5.475_938_084_995_344_946_00e-4,
    1.050_750_071_644_416_843_24e-9,
];
const FAR_TOP: [f64; 8] = [
    6.657_904_643_501_103_777_20,
    5.463_784_911_164_114_369_90,
    1.784_826_539_917_291_335_80,
    2.965_605_718_285_048_912_30e-1,
    2.653_218_952_657_612_309_30e-2,
    1.242_660_947_388_078_438_60e-3,
    2.711_555_568_743_487_578_15e-5,
    2.010_334_399_292_288_132_65e-7,
];
const FAR_BOTTOM: [f64; 8] = [
    1.0,
    5.998_322_065_558_879_376_90e-1,
    1.369_298_809_227_358_053_10e-1,
    1.487_536_129_085_061_485_25e-2,
    7.868_691_311_456_132_591_00e-4,
    1.846_318_317_510_054_681_80e-5,
    1.421_511_758_316_445_888_70e-7,
    2.044_263_103_389_939_785_64e-15,
];

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
    fn the_normal_quantile_has_the_published_values() {
        // AS 241's own check values, and symmetry.
        let check = |p: f64, z: f64| {
            let got = normal_quantile(p);
            assert!(libm::fabs(got - z) <= 4e-15 * libm::fabs(z), "{p}: {got} for {z}");
        };
        check(0.25, -0.674_489_750_196_081_7);
        check(0.001, -3.090_232_306_167_813_5);
        check(1e-20, -9.262_340_089_798_408);
        check(0.975, 1.959_963_984_540_054);
        assert!(normal_quantile(0.5).abs() < f64::EPSILON);
    }

    #[test]
    fn gamma_has_its_mean_and_variance_at_any_shape() {
        let mut draws = Draws::new(3);
        for shape in [0.01, 0.231, 0.871, 1.0, 4.0, 400.0] {
            let values: Vec<f64> =
                (0..20_000).map(|row| draws.of(Purpose::Gap, row).gamma(shape)).collect();
            let (mean, cv) = mean_and_cv(&values);
            // Four standard errors of the mean; the CV is given more, its tail being heavy.
            let cv_right = 1.0 / libm::sqrt(shape);
            assert!((mean / shape - 1.0).abs() < 4.0 * cv_right / 141.0, "{shape}: mean {mean}");
            assert!((cv / cv_right - 1.0).abs() < 0.08, "{shape}: cv {cv} for {cv_right}");
        }
    }

    #[test]
    fn a_draw_depends_on_its_row_and_purpose_alone() {
        let mut draws = Draws::new(7);
        let alone = draws.of(Purpose::Output, 1_000).uniform();
        for row in 0..50 {
            draws.of(Purpose::Gap, row).gamma(0.3);
        }
        let mut again = draws.of(Purpose::Output, 1_000);
        assert_eq!(again.uniform().to_bits(), alone.to_bits());
        assert_ne!(again.uniform().to_bits(), alone.to_bits());
        let mut others = vec![draws.of(Purpose::Input, 1_000).uniform()];
        others.push(draws.of(Purpose::Output, 1_001).uniform());
        others.push(Draws::new(8).of(Purpose::Output, 1_000).uniform());
        assert!(others.iter().all(|other| other.to_bits() != alone.to_bits()));
    }

    #[test]
    fn uniforms_are_uniform_and_open() {
        let mut draws = Draws::new(1);
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
