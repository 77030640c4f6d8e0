//! The normal distribution's inverse, portable to the last bit.

#![expect(clippy::excessive_precision, reason = "the coefficients stand as they were published")]

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

/// The standard normal's distribution function.
pub(super) fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
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
    fn the_distribution_function_is_its_inverse() {
        for p in [1e-12, 0.001, 0.3, 0.5, 0.77, 0.999_999] {
            assert!((normal_cdf(normal_quantile(p)) / p - 1.0).abs() < 1e-13, "{p}");
        }
    }
}
