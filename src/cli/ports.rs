//! Local ports: how many are taken, and how many a client may take. Every connection takes one, and keeps it
//! for a minute after its end where this side closed first. From the kernel's own words; on other systems
//! nothing is known. Deliberately absent: other clients' ports told apart from ours.

/// Connections of this machine that have ended and still keep their port.
pub(super) fn time_wait() -> Option<u64> {
    time_wait_in(&std::fs::read_to_string("/proc/net/sockstat").ok()?)
}

/// Ports that the system gives to clients: for each address and port that they connect to.
pub(super) fn limit() -> Option<u64> {
    range(&std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?)
}

fn time_wait_in(sockstat: &str) -> Option<u64> {
    let mut words = sockstat.lines().find_map(|line| line.strip_prefix("TCP:"))?.split_whitespace();
    words.find(|word| *word == "tw")?;
    words.next()?.parse().ok()
}

fn range(text: &str) -> Option<u64> {
    let mut ends = text.split_whitespace().map(str::parse::<u64>);
    let (first, last) = (ends.next()?.ok()?, ends.next()?.ok()?);
    last.checked_sub(first)?.checked_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_words_are_read() {
        let sockstat =
            "sockets: used 2026\nTCP: inuse 2007 orphan 0 tw 9 alloc 2007 mem 9\nUDP: inuse 0\n";
        assert_eq!(time_wait_in(sockstat), Some(9));
        assert_eq!(time_wait_in("sockets: used 2026\nTCP: inuse 3\n"), None);
        assert_eq!(time_wait_in("UDP: tw 3\n"), None);
        assert_eq!(range("32768\t60999\n"), Some(28_232));
        assert_eq!(range("60999 32768"), None);
        assert_eq!(range("32768"), None);
    }
}
