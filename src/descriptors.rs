//! File descriptors: as many as the system allows, and their table grown before anything is timed.
//!
//! A leaf. Linux grows a process's descriptor table when it is full (at 64, 256, 512, …), and in a
//! process with threads the one whose connection was one too many then waits for a grace period of
//! the whole kernel: 10 to 15 ms in which a worker neither sends nor reads (measured, on connection
//! 257). So the table is grown once, beforehand.

use std::fs::File;
use std::path::Path;

use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// The table is grown to so many entries, of 8 bytes each.
const READY: u64 = 1 << 16;

/// Raises the limit to the hard one and grows the table.
///
/// What the system refuses stays as it was: that is no reason not to run.
pub fn prepare() {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return;
    };
    let raised = soft < hard && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok();
    let limit = if raised { hard } else { soft };
    grow_table(limit.min(READY));
}

/// How many descriptors this process may have at the most; `None` where the system does not say.
#[must_use]
pub fn limit() -> Option<u64> {
    getrlimit(Resource::RLIMIT_NOFILE).ok().map(|(_, hard)| hard)
}

/// How many are open now; `None` where the system does not say.
#[must_use]
pub fn open() -> Option<u64> {
    // Linux since 6.2 says so in the folder's size; else they are counted.
    let folder = Path::new("/proc/self/fd");
    let told = folder.metadata().ok()?.len();
    if told > 0 { Some(told) } else { Some(folder.read_dir().ok()?.count() as u64) }
}

/// Takes the highest descriptor below `entries` for a moment.
fn grow_table(entries: u64) {
    let highest = i32::try_from(entries.saturating_sub(1)).unwrap_or(i32::MAX);
    if let Ok(any) = File::open("/dev/null")
        && let Ok(high) = fcntl(&any, FcntlArg::F_DUPFD_CLOEXEC(highest))
    {
        let _ = nix::unistd::close(high);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_soft_limit_is_the_hard_one_afterwards() {
        super::prepare();
        let (soft, hard) = super::getrlimit(super::Resource::RLIMIT_NOFILE).expect("a limit");
        assert_eq!(soft, hard);
        assert!(std::fs::File::open("/dev/null").is_ok());
    }
}
