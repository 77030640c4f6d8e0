//! What this process uses of the machine: processor time, memory, the cores that it may use, and what became of
//! its threads: how long each ran, and how long it had work and waited for a core.
//!
//! Threads' accounts are the kernel's own (`/proc/self/task/*/schedstat`), sampled while the run goes on, since a
//! thread's account goes with it. Deliberately absent: children (a simulated server is not the client).

use std::collections::BTreeMap;
use std::path::Path;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use super::proc_text::{bytes, range_len, two_numbers, value};
use crate::units::Nanos;

/// Processor time used so far by all threads together.
#[must_use]
pub fn cpu() -> Option<Nanos> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    Some(nanos(usage.user_time()) + nanos(usage.system_time()))
}

/// Processor time of another process's first thread so far.
#[must_use]
pub fn cpu_of(process: u32) -> Option<Nanos> {
    account(Path::new(&format!("/proc/{process}"))).map(|account| account.ran)
}

/// Memory in RAM now, in bytes.
#[must_use]
pub fn resident_bytes() -> Option<u64> {
    bytes(&status()?, "VmRSS:")
}

/// Cores that the system lets this process run on.
#[must_use]
pub fn allowed_cores() -> Option<u64> {
    list_len(value(&status()?, "Cpus_allowed_list:")?)
}

fn status() -> Option<String> {
    std::fs::read_to_string("/proc/self/status").ok()
}

/// The length of a list such as `0-3,8`.
fn list_len(ranges: &str) -> Option<u64> {
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        range_len(first.parse().ok()?, last.parse().ok()?)
    };
    ranges.split(',').map(count).sum()
}

fn nanos(time: TimeVal) -> Nanos {
    let part = |value: i64, ns: u64| u64::try_from(value).unwrap_or(0).saturating_mul(ns);
    Nanos(part(time.tv_sec(), 1_000_000_000).saturating_add(part(time.tv_usec(), 1_000)))
}

/// An account: time on a core, and time waiting for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Account {
    ran: Nanos,
    waited: Nanos,
}

/// The accounts of a run.
#[derive(Debug, Default)]
pub struct Threads {
    /// By thread: when it was looked at first and last, and its account then.
    seen: BTreeMap<u32, [(Nanos, Account); 2]>,
}

impl Threads {
    /// Looks at all threads, `at` this time.
    pub fn look(&mut self, at: Nanos) {
        self.look_in(Path::new("/proc/self/task"), at);
    }

    fn look_in(&mut self, tasks: &Path, at: Nanos) {
        for task in std::fs::read_dir(tasks).into_iter().flatten().flatten() {
            let Some(id) = task.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let Some(account) = account(&task.path()) else { continue };
            self.seen.entry(id).or_insert([(at, account); 2])[1] = (at, account);
        }
    }

    /// What it comes to, as shares of time: how much the thread that ran most was on a core, and how much
    /// of the time in which threads had work they waited for one. `None` where the system does not tell.
    #[must_use]
    pub fn sum(&self) -> Option<(f64, f64)> {
        let mut all = Account::default();
        let mut busiest: f64 = 0.0;
        for [(from, before), (to, after)] in self.seen.values() {
            let ran = after.ran.since(before.ran);
            all.ran += ran;
            all.waited += after.waited.since(before.waited);
            let span_s = to.since(*from).as_secs_f64();
            if span_s > 0.0 {
                busiest = busiest.max(ran.as_secs_f64() / span_s);
            }
        }
        let wanted_s = (all.ran + all.waited).as_secs_f64();
        (wanted_s > 0.0).then(|| (busiest, all.waited.as_secs_f64() / wanted_s))
    }
}

/// The account of a task in its `folder`: `ran waited slices`, in nanoseconds.
fn account(folder: &Path) -> Option<Account> {
    let text = std::fs::read_to_string(folder.join("schedstat")).ok()?;
    let [ran, waited] = two_numbers(&text)?.map(Nanos);
    Some(Account { ran, waited })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_and_its_cores_are_counted_in_the_kernel_s_list() {
        assert!(!cfg!(target_os = "linux") || resident_bytes().is_some_and(|bytes| bytes > 0));
        let check = |list, cores| assert_eq!(list_len(list), cores);
        check("0", Some(1));
        check("0-3,8,10-11", Some(7));
        check("3-1", None);
        check("all", None);
    }

    #[test]
    fn accounts_of_a_span_are_summed_over_threads() {
        let place = tempfile::tempdir().expect("a folder");
        let write = |id: &str, text: &str| {
            std::fs::create_dir_all(place.path().join(id)).expect("a folder");
            std::fs::write(place.path().join(id).join("schedstat"), text).expect("space");
        };
        let mut threads = Threads::default();
        write("7", "1000000000 500 3\n");
        write("8", "0 0 0\n");
        write("9", "nonsense");
        threads.look_in(place.path(), Nanos::from_secs(1));
        assert_eq!(threads.sum(), None, "nothing has passed");
        write("7", "2800000000 200000500 3\n");
        write("8", "0 0 0\n");
        threads.look_in(place.path(), Nanos::from_secs(3));
        let (busiest, waited) = threads.sum().expect("a span");
        assert!((busiest - 0.9).abs() < 1e-9 && (waited - 0.1).abs() < 1e-9, "{busiest} {waited}");
    }
}
