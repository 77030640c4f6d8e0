//! Whether the system lets us hold as many streams as a run may need.
//!
//! Deliberately absent: refusing to run. Rows that find no descriptor are outcome `client`.

use crate::machine::sockets::descriptor_limit;
use crate::units::{NS_PER_S, Nanos};

/// Descriptors that are not streams: files of the run, timers, polls, stdio.
const OTHERS: u64 = 32;
/// How long an answer is taken to last where nobody knows yet.
const ANSWER_S: u64 = 60;

/// Streams that may be open at once: what falls due within a minute at the plan's mean rate, and no
/// more than there are rows.
#[must_use]
pub fn expected_streams(rows: u64, last_due: Option<Nanos>) -> u64 {
    let Some(span) = last_due.filter(|span| span.0 > ANSWER_S * NS_PER_S) else {
        return rows;
    };
    let within = u128::from(rows) * u128::from(ANSWER_S * NS_PER_S) / u128::from(span.0);
    u64::try_from(within).unwrap_or(rows).min(rows)
}

/// What to say before a run of `streams` at once; `None` where the hard limit allows for them.
#[must_use]
pub fn shortage(streams: u64) -> Option<String> {
    let limit = descriptor_limit()?;
    (streams.saturating_add(OTHERS) > limit).then(|| {
        format!(
            "only {limit} file descriptors are allowed for up to {streams} streams at once; rows that \
             find none are outcome `client`\nhint: raise the hard limit (`ulimit -Hn`)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_those_of_a_minute() {
        let s = Nanos::from_secs;
        assert_eq!(expected_streams(300, Some(s(0))), 300);
        assert_eq!(expected_streams(300, None), 300);
        assert_eq!(expected_streams(36_000, Some(s(3_600))), 600);
        assert_eq!(expected_streams(5, Some(s(61))), 4);
        assert_eq!(expected_streams(u64::MAX, Some(s(120))), u64::MAX / 2);
    }

    #[test]
    fn a_shortage_names_the_limit() {
        assert_eq!(shortage(0), None);
        let words = shortage(u64::MAX).expect("no system allows that");
        assert!(words.contains("file descriptors") && words.contains("hint:"), "{words}");
    }
}
