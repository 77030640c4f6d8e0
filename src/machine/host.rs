//! The machine itself: cores, memory, kernel. Deliberately absent: its name.

use std::fs::read_to_string;

use super::proc_text::bytes;

/// Cores that this process may use at once, by affinity and quota.
#[must_use]
pub fn cores() -> Option<usize> {
    std::thread::available_parallelism().ok().map(std::num::NonZero::get)
}

/// Memory of the machine, in bytes.
#[must_use]
pub fn memory_bytes() -> Option<u64> {
    bytes(&read_to_string("/proc/meminfo").ok()?, "MemTotal:")
}

/// Kernel and release.
#[must_use]
pub fn kernel() -> Option<String> {
    let read = |part: &str| read_to_string(format!("/proc/sys/kernel/{part}")).ok();
    Some(format!("{} {}", read("ostype")?.trim(), read("osrelease")?.trim()))
}
