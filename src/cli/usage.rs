//! What this process uses of the machine: processor time of all threads together, memory, and the
//! cores that it may use. Deliberately absent: shares, and children (the simulated server is not the client).

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

/// Cores that the system lets this process run on; `None` where it does not say.
pub(super) fn allowed_cores() -> Option<u64> {
    allowed_in(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// The length of a list such as `0-3,8`.
fn allowed_in(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    };
    line.trim().split(',').map(count).sum()
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
    fn cores_are_counted_in_the_kernel_s_list() {
        let check = |list: &str, cores| {
            assert_eq!(allowed_in(&format!("Name:\tx\nCpus_allowed_list:\t{list}\n")), cores);
        };
        check("0", Some(1));
        check("0-3,8,10-11", Some(7));
        check("3-1", None);
        check("all", None);
        assert_eq!(allowed_in("Cpus_allowed:\tff\n"), None);
    }

    #[test]
    fn memory_is_read_from_the_kernel_s_words() {
        assert_eq!(resident_in("VmHWM:\t  900 kB\nVmRSS:\t    640 kB\n"), Some(655_360));
        assert_eq!(resident_in("VmRSS: much"), None);
        assert!(!cfg!(target_os = "linux") || resident_bytes().is_some_and(|bytes| bytes > 0));
    }
}
