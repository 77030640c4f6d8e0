//! Numbers that stand for names, and ids that stay apart by the scope they belong to.
//!
//! Integer arithmetic alone, the same on every machine for ever (unlike the standard library's hasher):
//! what is drawn and which blocks are equal rests on it. Deliberately absent: secrecy, and any protection
//! against who wants two of the same.

use std::fmt;

use crate::random::{STEP, mix};

/// An FNV-1a hash of 64 bits in the making; printed as 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fnv(pub u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// The hash of these bytes alone.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut fnv = Self::default();
        fnv.write(bytes);
        fnv
    }

    /// Takes more bytes.
    pub fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

impl fmt::Display for Fnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The number of a name.
#[must_use]
pub fn of_name(name: &str) -> u64 {
    Fnv::of(name.as_bytes()).0
}

/// An id that is its own in all the trace, made of a scope and an id within it; one to one in either.
#[must_use]
pub fn scoped(scope: u64, id: u64) -> u64 {
    mix(scope.wrapping_add(id.wrapping_mul(STEP)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv_has_the_published_values() {
        for (text, hash) in
            [("", "cbf29ce484222325"), ("a", "af63dc4c8601ec8c"), ("foobar", "85944171f73967e8")]
        {
            assert_eq!(Fnv::of(text.as_bytes()).to_string(), hash, "{text}");
        }
    }

    #[test]
    fn scopes_stay_apart() {
        let ids: std::collections::HashSet<u64> =
            (0..1000).flat_map(|scope| (0..20).map(move |id| scoped(mix(scope), id))).collect();
        assert_eq!(ids.len(), 20_000);
    }
}
