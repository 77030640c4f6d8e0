//! Why a request ended early, in an outcome and the words of its row.
//!
//! Pure. Deliberately absent: errors of the program; a failed request is data.

use std::io;

use super::limit::Deadline;
use super::watch::Cut;
use crate::record::Outcome;

/// Why a request ended early.
pub(super) struct Failure {
    pub(super) outcome: Outcome,
    pub(super) error: String,
}

impl Failure {
    pub(super) fn new(outcome: Outcome, error: impl Into<String>) -> Self {
        Self { outcome, error: error.into() }
    }
}

pub(super) fn cut_failure(cut: Cut, deadline: Option<Deadline>, place: &str) -> Failure {
    match (cut, deadline) {
        (Cut::Deadline, Some(deadline)) => {
            Failure::new(Outcome::Timeout, format!("{}, given up {place}", deadline.words()))
        }
        (Cut::Deadline | Cut::Stopped, _) => {
            Failure::new(Outcome::Incomplete, format!("cut by us {place}"))
        }
    }
}

/// Tells our own shortages from the server's refusals.
pub(super) fn dial_failure(error: &io::Error) -> Failure {
    let ours = matches!(
        error.kind(),
        io::ErrorKind::AddrNotAvailable | io::ErrorKind::OutOfMemory | io::ErrorKind::QuotaExceeded
    ) || [nix::libc::EMFILE, nix::libc::ENFILE, nix::libc::ENOBUFS]
        .iter()
        .any(|code| error.raw_os_error() == Some(*code));
    let remedy = match error.kind() {
        io::ErrorKind::AddrNotAvailable => {
            ": no local port is left for one more connection to this server (net.ipv4.ip_local_port_range)"
        }
        _ => "",
    };
    let outcome = if ours { Outcome::Client } else { Outcome::Connect };
    Failure::new(outcome, format!("{error}{remedy}"))
}

/// What servers say goes into a cell of one line.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(500).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_of_ours_is_no_fault_of_the_server() {
        let check = |code, outcome, says: &str| {
            let failure = dial_failure(&io::Error::from_raw_os_error(code));
            assert_eq!(failure.outcome, outcome, "{}", failure.error);
            assert!(failure.error.contains(says), "{}", failure.error);
        };
        check(nix::libc::EADDRNOTAVAIL, Outcome::Client, "ip_local_port_range");
        check(nix::libc::EMFILE, Outcome::Client, "Too many open files");
        check(nix::libc::ENOBUFS, Outcome::Client, "os error");
        check(nix::libc::ECONNREFUSED, Outcome::Connect, "refused");
        check(nix::libc::ENETUNREACH, Outcome::Connect, "unreachable");
    }
}
