//! Which limit on waiting runs out first, and what is said when it does. Pure: no clock is read here.

use crate::units::Nanos;

/// After the last count of a whole answer its end may take so long, counted from that event: a server
/// that holds its stream open has nothing more to say, and is not waited for until the run ends.
const END_OF_ANSWER: Nanos = Nanos::from_secs(10);

/// Limits on waiting, each from the instant the request was sent. `None`: no limit.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For a connection.
    pub connect: Option<Nanos>,
    /// For the first token event.
    pub first_token: Option<Nanos>,
    /// Between two arrivals of bytes, once the head is there.
    pub idle: Option<Nanos>,
    /// For the whole answer.
    pub total: Option<Nanos>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Some(Nanos::from_secs(10)), first_token: None, idle: None, total: None }
    }
}

/// A limit of the user's, by the option that sets it, or ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    Connect,
    FirstToken,
    Idle,
    Total,
    EndOfAnswer,
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
    pub(super) fn describe(self) -> String {
        // Nine decimals as they come; a limit is a round number.
        let span = self.span.to_string();
        let span = span.trim_end_matches('0').trim_end_matches('.');
        match self.limit {
            Limit::Connect => format!("no connection within {span} s (--connect-timeout)"),
            Limit::FirstToken => format!("no token within {span} s (--first-token-timeout)"),
            Limit::Idle => format!("nothing received for {span} s (--idle-timeout)"),
            Limit::Total => format!("not ended within {span} s (--timeout)"),
            Limit::EndOfAnswer => format!(
                "the answer is whole, but neither [DONE] nor an end came within {span} s of its \
                 finish_reason and usage; not waited for any longer"
            ),
        }
    }

    /// Whether nothing of an answer is missing when it passes.
    pub(super) fn is_end_of_answer(self) -> bool {
        self.limit == Limit::EndOfAnswer
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

    /// Within a response, that has been `whole` since then but for its end.
    pub(super) fn streaming(
        &self,
        sent: Nanos,
        last_byte: Nanos,
        has_token: bool,
        whole: Option<Nanos>,
    ) -> Option<Deadline> {
        let first_token = self.first_token.filter(|_| !has_token);
        self.earliest(
            sent,
            [
                (whole.map(|_| END_OF_ANSWER), whole.unwrap_or_default(), Limit::EndOfAnswer),
                (first_token, sent, Limit::FirstToken),
                (self.idle, last_byte, Limit::Idle),
            ],
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
            assert_eq!((deadline.at, deadline.describe().as_str()), (at, words));
        };
        let again = all.connecting(s(100), s(108));
        check(again, s(118), "no connection within 10 s (--connect-timeout)");
        check(all.responding(s(100)), s(120), "no token within 20 s (--first-token-timeout)");
        check(
            all.streaming(s(100), s(103), false, None),
            s(108),
            "nothing received for 5 s (--idle-timeout)",
        );
        check(
            all.streaming(s(100), s(118), false, None),
            s(120),
            "no token within 20 s (--first-token-timeout)",
        );
        let last = all.streaming(s(100), s(157), true, None);
        check(last, s(160), "not ended within 60 s (--timeout)");
        let idle = all.streaming(s(100), s(108), true, Some(s(108)));
        check(idle, s(113), "nothing received for 5 s (--idle-timeout)");
        let none = Timeouts { connect: None, ..Timeouts::default() };
        assert_eq!(none.connecting(s(1), s(1)), None);
        assert_eq!(none.streaming(s(1), s(2), false, None), None);
        let end = none.streaming(s(1), s(9), true, Some(s(2))).expect("a limit");
        assert!(end.at == s(12) && end.is_end_of_answer(), "comments do not put it off");
    }
}
