//! Chance that depends on a seed, a purpose and a name or number, and on nothing else.
//!
//! Counters through `SplitMix64`'s finisher (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
//! Generators", OOPSLA 2014), twice: integer arithmetic alone, so that every machine draws the same. No
//! state: who asks in what order changes nothing.

use crate::trace::Request;

/// What a number is drawn for; the value is part of the draw and must never change.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// Whether a session stays.
    Thin = 1,
    /// Whether it gets one copy more.
    Clone = 2,
    /// When a row that was rounded came.
    Dequantise = 3,
    /// The gap before a row without a time.
    Pace = 4,
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Uniform on the open interval (0, 1), 52 bits and a half.
pub(super) fn uniform(seed: u64, purpose: Purpose, key: u64) -> f64 {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    const SCALE: f64 = 1.0 / (1_u64 << 52) as f64;
    let stream = mix(seed.wrapping_add(STEP.wrapping_mul(purpose as u64)));
    let drawn = mix(mix(stream ^ key.wrapping_mul(STEP)).wrapping_add(STEP));
    ((drawn >> 12) as f64 + 0.5) * SCALE
}

/// What stays or goes together: a session, else the row alone.
pub(super) fn key_of(request: &Request) -> u64 {
    let Some(session) = &request.session else { return request.row };
    // FNV-1a; the constant keeps sessions apart from rows of the same number.
    session.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
