//! What a server says about keeping a connection (`Keep-Alive: timeout=5, max=100`), and when it is
//! better not used again.
//!
//! `max` is what is left at some servers and the same number every time at others, so the largest ever
//! said on a connection is taken for what it serves in all. Pure: no clock is read here.

use hyper::header::HeaderMap;

use crate::units::Nanos;

/// An idle connection is not used again after this long: servers close theirs after 5 s or more.
const IDLE_LIMIT: Nanos = Nanos::from_millis(4_500);

/// What is known of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Terms {
    /// Answers that it has carried.
    served: u64,
    /// The most that it will carry, as said.
    most: Option<u64>,
    /// How long the server keeps it idle, as said last.
    timeout: Option<Nanos>,
}

impl Terms {
    /// After one more answer, with these headers.
    pub(crate) fn after(self, headers: &HeaderMap) -> Self {
        let mut terms = Self { served: self.served + 1, ..self };
        let values = headers.get_all("keep-alive").iter().filter_map(|value| value.to_str().ok());
        for (key, value) in
            values.flat_map(|value| value.split(',')).filter_map(|p| p.split_once('='))
        {
            let Ok(n) = value.trim().trim_matches('"').parse::<u32>() else { continue };
            match key.trim().to_ascii_lowercase().as_str() {
                "max" => terms.most = terms.most.max(Some(terms.served.max(u64::from(n)))),
                "timeout" => terms.timeout = Some(Nanos::from_secs(u64::from(n))),
                _ => {}
            }
        }
        terms
    }

    /// Whether it has carried an answer.
    pub(crate) fn has_served(self) -> bool {
        self.served > 0
    }

    /// How long it may rest and be used again; `None`: not at all. A tenth of what the server says is
    /// left for the request's way.
    pub(crate) fn idle_limit(self) -> Option<Nanos> {
        if self.most.is_some_and(|most| self.served >= most) {
            return None;
        }
        let said = self.timeout.map_or(Nanos::MAX, |timeout| Nanos(timeout.0 / 10 * 9));
        Some(said.min(IDLE_LIMIT)).filter(|limit| *limit > Nanos::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn after(terms: Terms, said: &str) -> Terms {
        let mut headers = HeaderMap::new();
        if !said.is_empty() {
            headers.insert("keep-alive", HeaderValue::from_str(said).expect("text"));
        }
        terms.after(&headers)
    }

    fn check(said: &str, limit_ms: Option<u64>) {
        let limit = after(Terms::default(), said).idle_limit();
        assert_eq!(limit, limit_ms.map(Nanos::from_millis), "{said}");
    }

    #[test]
    fn the_shorter_of_both_limits_counts() {
        check("", Some(4_500));
        check("timeout=5, max=100", Some(4_500));
        check("timeout=1", Some(900));
        check("Timeout = 2;, MAX=\"3\"", Some(4_500));
        check("timeout=60", Some(4_500));
        check("timeout=0", None);
        check("max=0", None);
        check("max=1", None);
        check("timeout=-1, max=x, =, nonsense", Some(4_500));
        check("timeout=99999999999999999999", Some(4_500));
    }

    /// How many answers a connection carries whose server says so each time.
    fn carried(said: impl Fn(u64) -> u64) -> u64 {
        let mut terms = Terms::default();
        for n in 1..=1_000 {
            terms = after(terms, &format!("max={}", said(n)));
            if terms.idle_limit().is_none() {
                return n;
            }
        }
        1_000
    }

    #[test]
    fn a_connection_carries_no_more_than_was_said() {
        assert_eq!(carried(|_| 100), 100, "the same number every time");
        assert_eq!(carried(|n| 100 - n), 99, "what is left, each time");
    }
}
