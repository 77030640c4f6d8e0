//! Processor time of this process, all threads together. Deliberately absent: shares, and children (the
//! simulated server is not the client).

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use crate::units::Nanos;

/// Used so far; `None` where the system does not say.
pub(super) fn used() -> Option<Nanos> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    Some(nanos(usage.user_time()) + nanos(usage.system_time()))
}

fn nanos(time: TimeVal) -> Nanos {
    let part = |value: i64, ns: u64| u64::try_from(value).unwrap_or(0).saturating_mul(ns);
    Nanos(part(time.tv_sec(), 1_000_000_000).saturating_add(part(time.tv_usec(), 1_000)))
}
