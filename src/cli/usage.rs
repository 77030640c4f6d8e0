//! What this process uses of the machine: processor time of all threads together, and memory.
//! Deliberately absent: shares, and children (the simulated server is not the client).

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use crate::units::Nanos;

/// Processor time used so far; `None` where the system does not say.
pub(super) fn cpu() -> Option<Nanos> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    Some(nanos(usage.user_time()) + nanos(usage.system_time()))
}

/// Memory in RAM now, in bytes; `None` where the system does not say.
pub(super) fn resident_bytes() -> Option<u64> {
    resident_in(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn resident_in(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

fn nanos(time: TimeVal) -> Nanos {
    let part = |value: i64, ns: u64| u64::try_from(value).unwrap_or(0).saturating_mul(ns);
    Nanos(part(time.tv_sec(), 1_000_000_000).saturating_add(part(time.tv_usec(), 1_000)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_the_kernel_s_words() {
        assert_eq!(resident_in("VmHWM:\t  900 kB\nVmRSS:\t    640 kB\n"), Some(655_360));
        assert_eq!(resident_in("VmRSS: much"), None);
        assert!(!cfg!(target_os = "linux") || resident_bytes().is_some_and(|bytes| bytes > 0));
    }
}
