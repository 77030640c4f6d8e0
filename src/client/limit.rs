//! Which limit on waiting runs out first, and what is said when it does. Pure: no clock is read here.

use super::Timeouts;
use crate::units::Nanos;

/// A limit of the user's, by the option that sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    Connect,
    FirstToken,
    Idle,
    Total,
}

/// When waiting ends, and by which limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deadline {
    pub(super) at: Nanos,
    limit: Limit,
    span: Nanos,
}

impl Deadline {
    /// What the row says.
    pub(super) fn words(self) -> String {
        // Nine decimals as they come; a limit is a round number.
        let span = self.span.to_string();
        let span = span.trim_end_matches('0').trim_end_matches('.');
        match self.limit {
            Limit::Connect => format!("no connection within {span} s (--connect-timeout)"),
            Limit::FirstToken => format!("no token within {span} s (--first-token-timeout)"),
            Limit::Idle => format!("nothing received for {span} s (--idle-timeout)"),
            Limit::Total => format!("not ended within {span} s (--timeout)"),
        }
    }
}

impl Timeouts {
    /// While there is no connection; all instants are of the clock, `sent` the start of the first
    /// attempt and `started` that of this one.
    pub(super) fn connecting(&self, sent: Nanos, started: Nanos) -> Option<Deadline> {
        self.earliest(
            sent,
            [(self.connect, started, Limit::Connect), (self.first_token, sent, Limit::FirstToken)],
        )
    }

    /// While there is no response.
    pub(super) fn responding(&self, sent: Nanos) -> Option<Deadline> {
        self.earliest(sent, [(self.first_token, sent, Limit::FirstToken)])
    }

    /// Within a response.
    pub(super) fn streaming(
        &self,
        sent: Nanos,
        last_byte: Nanos,
        has_token: bool,
    ) -> Option<Deadline> {
        let first_token = self.first_token.filter(|_| !has_token);
        self.earliest(
            sent,
            [(first_token, sent, Limit::FirstToken), (self.idle, last_byte, Limit::Idle)],
        )
    }

    /// The earliest of some limits and the one on the whole; of two at once the more particular.
    fn earliest<const N: usize>(
        &self,
        sent: Nanos,
        limits: [(Option<Nanos>, Nanos, Limit); N],
    ) -> Option<Deadline> {
        limits
            .into_iter()
            .chain([(self.total, sent, Limit::Total)])
            .filter_map(|(span, from, limit)| {
                span.map(|span| Deadline { at: from + span, limit, span })
            })
            .min_by_key(|deadline| deadline.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_limit_counts_and_is_named() {
        let s = Nanos::from_secs;
        let all = Timeouts {
            connect: Some(s(10)),
            first_token: Some(s(20)),
            idle: Some(s(5)),
            total: Some(s(60)),
        };
        let check = |deadline: Option<Deadline>, at: Nanos, words: &str| {
            let deadline = deadline.expect("a limit");
            assert_eq!((deadline.at, deadline.words().as_str()), (at, words));
        };
        let again = all.connecting(s(100), s(108));
        check(again, s(118), "no connection within 10 s (--connect-timeout)");
        check(all.responding(s(100)), s(120), "no token within 20 s (--first-token-timeout)");
        check(
            all.streaming(s(100), s(103), false),
            s(108),
            "nothing received for 5 s (--idle-timeout)",
        );
        check(
            all.streaming(s(100), s(118), false),
            s(120),
            "no token within 20 s (--first-token-timeout)",
        );
        check(all.streaming(s(100), s(157), true), s(160), "not ended within 60 s (--timeout)");
        let none = Timeouts { connect: None, ..Timeouts::default() };
        assert_eq!(none.connecting(s(1), s(1)), None);
        assert_eq!(none.streaming(s(1), s(2), false), None);
    }
}
