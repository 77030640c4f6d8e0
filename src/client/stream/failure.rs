//! Why a request ended early, in an outcome and the words of its row; and the signs that a body is no
//! stream of events.
//!
//! Pure. Deliberately absent: errors of the program; a failed request is data.

use std::io;

use crate::client::control::Cut;
use crate::client::timeouts::Deadline;
use crate::client::wire::Head;
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
            Failure::new(Outcome::Timeout, format!("{}, given up {place}", deadline.describe()))
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

/// What a body is that is no stream of events, by its type. Other types are read as one, since not
/// every server names it.
pub(super) fn other_form(content_type: &str) -> Option<&'static str> {
    match content_type {
        "application/json" | "application/problem+json" => Some("JSON body"),
        "text/html" => Some("HTML page"),
        _ => None,
    }
}

/// The same, by what stands in the body outside of any event.
pub(super) fn form_of_text(text: &[u8]) -> Option<&'static str> {
    match text.trim_ascii_start().first()? {
        b'{' | b'[' => Some("JSON body"),
        b'<' => Some("HTML page"),
        _ => None,
    }
}

pub(super) fn no_events(form: &str, message: &str) -> String {
    format!("expected a stream of events, got one {form}: {message}")
}

pub(super) fn is_compressed(head: &Head) -> bool {
    !matches!(head.encoding.as_str(), "" | "identity")
}

pub(super) fn describe_encoding(head: &Head) -> String {
    let encoding = &head.encoding;
    format!(
        "the answer came compressed (content-encoding: {encoding}) although identity was asked for, \
         so its events cannot be timed; turn compression off for event streams"
    )
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
