//! Chance that depends on a seed, a purpose and a name or number, and on nothing else.
//!
//! Counters, mixed twice: integer arithmetic alone, so that every machine draws the same. No state: who asks
//! in what order changes nothing.

use crate::trace::Request;
use crate::trace::ids::{STEP, mix, of_name};

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

/// Uniform on the open interval (0, 1), 52 bits and a half.
pub(super) fn uniform(seed: u64, purpose: Purpose, key: u64) -> f64 {
    const SCALE: f64 = 1.0 / (1_u64 << 52) as f64;
    let stream = mix(seed.wrapping_add(STEP.wrapping_mul(purpose as u64)));
    let drawn = mix(mix(stream ^ key.wrapping_mul(STEP)).wrapping_add(STEP));
    ((drawn >> 12) as f64 + 0.5) * SCALE
}

/// What stays or goes together: a session, else the row alone.
pub(super) fn key_of(request: &Request) -> u64 {
    request.session.as_ref().map_or(request.row, |session| of_name(session))
}
