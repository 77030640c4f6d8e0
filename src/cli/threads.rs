//! What became of this process's threads: how long each ran, and how long it had work and waited for a core.
//!
//! From the kernel's own accounts (`/proc/self/task/*/schedstat`), sampled while the run goes on, since a
//! thread's account goes with it. On other systems nothing is known. Deliberately absent: what it means.

use std::collections::BTreeMap;
use std::path::Path;

use crate::units::Nanos;

/// An account: time on a core, and time waiting for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Account {
    ran: Nanos,
    waited: Nanos,
}

/// The accounts of a run.
#[derive(Debug, Default)]
pub(super) struct Threads {
    /// By thread: when it was looked at first and last, and its account then.
    seen: BTreeMap<u32, [(Nanos, Account); 2]>,
}

impl Threads {
    /// Looks at all threads, `at` this time.
    pub(super) fn look(&mut self, at: Nanos) {
        self.look_in(Path::new("/proc/self/task"), at);
    }

    fn look_in(&mut self, tasks: &Path, at: Nanos) {
        for task in std::fs::read_dir(tasks).into_iter().flatten().flatten() {
            let Some(id) = task.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let text = std::fs::read_to_string(task.path().join("schedstat"));
            let Some(account) = text.ok().as_deref().and_then(parse) else { continue };
            self.seen.entry(id).or_insert([(at, account); 2])[1] = (at, account);
        }
    }

    /// What it comes to, as shares of time: how much the thread that ran most was on a core, and how much
    /// of the time in which threads had work they waited for one. `None` where the system does not tell.
    pub(super) fn sum(&self) -> Option<(f64, f64)> {
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

/// `ran waited slices`, in nanoseconds.
fn parse(text: &str) -> Option<Account> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
    let mut next = || numbers.next()?.ok().map(Nanos);
    Some(Account { ran: next()?, waited: next()? })
}

#[cfg(test)]
mod tests {
    use super::*;

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
