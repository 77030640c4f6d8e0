//! Where a run's `t0` stands on the world's clocks.

use crate::units::{NS_PER_S, Nanos};

/// One instant on both clocks: the monotonic one that everything is measured with, and UTC.
#[derive(Clone, Copy, Debug)]
pub struct Anchor {
    /// On the machine's monotonic clock.
    pub monotonic: Nanos,
    /// On the wall clock.
    pub utc: Utc,
}

/// A wall-clock instant: nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Utc(pub i128);

impl Anchor {
    /// Reads both clocks, one after the other.
    #[must_use]
    pub fn now() -> Self {
        Self { monotonic: super::monotonic(), utc: Utc::now() }
    }

    /// What the wall clock shows at a monotonic instant, if it runs evenly.
    #[must_use]
    pub fn utc_at(&self, monotonic: Nanos) -> Utc {
        Utc(self.utc.0 + i128::from(monotonic.0) - i128::from(self.monotonic.0))
    }
}

impl Utc {
    /// Now.
    #[must_use]
    pub fn now() -> Self {
        #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
        let now = jiff::Timestamp::now();
        Self(now.as_nanosecond())
    }

    fn timestamp(self) -> jiff::Timestamp {
        jiff::Timestamp::from_nanosecond(self.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
    }

    /// `2026-11-30T12:00:00.123456789Z`.
    #[must_use]
    pub fn rfc3339(self) -> String {
        format!("{:.9}", self.timestamp())
    }

    /// `20261130T120000Z`, for folder names.
    #[must_use]
    pub fn compact(self) -> String {
        self.timestamp().strftime("%Y%m%dT%H%M%SZ").to_string()
    }

    /// Whole seconds since 1970.
    #[must_use]
    pub fn unix_seconds(self) -> i128 {
        self.0.div_euclid(i128::from(NS_PER_S))
    }
}
