//! Numbers that stand for names, and ids that stay apart by the scope they belong to.
//!
//! Integer arithmetic alone, the same on every machine for ever: what is drawn and which blocks are equal
//! rests on it. Deliberately absent: secrecy. Who knows a name can find its number.

use super::Fnv;

/// The number of a name.
#[must_use]
pub fn of_name(name: &str) -> u64 {
    Fnv::of(name.as_bytes()).0
}

/// Mixes all bits, one to one (the finisher of `SplitMix64`: Steele, Lea and Flood, "Fast Splittable
/// Pseudorandom Number Generators", OOPSLA 2014).
#[must_use]
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The step between two numbers of a sequence that [`mix`] makes random (2^64 ÷ the golden ratio).
pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// An id that is its own in all the trace, made of a scope and an id within it; one to one in either.
#[must_use]
pub fn scoped(scope: u64, id: u64) -> u64 {
    mix(scope.wrapping_add(id.wrapping_mul(STEP)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_published_ones_and_scopes_stay_apart() {
        assert_eq!(of_name("foobar"), 0x8594_4171_f739_67e8);
        // The first numbers of SplitMix64 from the seed 0.
        assert_eq!(
            [STEP, STEP.wrapping_mul(2)].map(mix),
            [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]
        );
        let ids: std::collections::HashSet<u64> =
            (0..1000).flat_map(|scope| (0..20).map(move |id| scoped(mix(scope), id))).collect();
        assert_eq!(ids.len(), 20_000);
    }
}
