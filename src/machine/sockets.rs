//! What connections take of the machine: file descriptors, as many as the system allows and their table grown
//! before anything is timed; and local ports, of which every connection takes one and keeps it for a minute after
//! its end where this side closed first.
//!
//! Linux grows a process's descriptor table when it is full (at 64, 256, 512, …), and in a process with
//! threads the one whose connection was one too many then waits for a grace period of the whole kernel: 10
//! to 15 ms in which a worker neither sends nor reads (measured, on connection 257). So the table is
//! grown once, beforehand. Deliberately absent: other clients' ports told apart from ours.

use std::fs::File;
use std::path::Path;

use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::proc_text::{range_len, two_numbers, value};

/// The table is grown to so many entries, of 8 bytes each.
const READY: u64 = 1 << 16;

/// Raises the limit to the hard one and grows the table.
///
/// What the system refuses stays as it was: that is no reason not to run.
pub fn prepare_descriptors() {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return;
    };
    let raised = soft < hard && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok();
    let limit = if raised { hard } else { soft };
    grow_table(limit.min(READY));
}

/// How many descriptors this process may have at the most.
#[must_use]
pub fn descriptor_limit() -> Option<u64> {
    getrlimit(Resource::RLIMIT_NOFILE).ok().map(|(_, hard)| hard)
}

/// How many are open now.
#[must_use]
pub fn open_descriptors() -> Option<u64> {
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

/// Connections of this machine that have ended and still keep their port.
#[must_use]
pub fn ports_in_time_wait() -> Option<u64> {
    time_wait(&std::fs::read_to_string("/proc/net/sockstat").ok()?)
}

/// Ports that the system gives to clients: for each address and port that they connect to.
#[must_use]
pub fn port_limit() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let [first, last] = two_numbers(&text)?;
    range_len(first, last)
}

fn time_wait(sockstat: &str) -> Option<u64> {
    let mut words = value(sockstat, "TCP:")?.split_whitespace();
    words.find(|word| *word == "tw")?;
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_connections_are_read_from_the_kernel_s_words() {
        let sockstat =
            "sockets: used 2026\nTCP: inuse 2007 orphan 0 tw 9 alloc 2007 mem 9\nUDP: inuse 0\n";
        assert_eq!(time_wait(sockstat), Some(9));
        assert_eq!(time_wait("sockets: used 2026\nTCP: inuse 3\n"), None);
        assert_eq!(time_wait("UDP: tw 3\n"), None);
    }

    #[test]
    fn the_soft_limit_is_the_hard_one_afterwards() {
        prepare_descriptors();
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
        assert_eq!(soft, hard);
        assert!(File::open("/dev/null").is_ok());
    }
}
