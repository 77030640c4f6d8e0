//! FNV-1a, 64 bits: small, and the same everywhere for ever (unlike the standard library's hasher).
//!
//! A name for bytes. Deliberately absent: any protection against who wants two of the same.

use std::fmt;

/// A hash in the making; printed as 16 hexadecimal digits.
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
}
