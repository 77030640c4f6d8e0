//! When each token event of a stream arrived, compactly: four bytes an event, and one more for its
//! kind where that is asked for.
//!
//! Exact for every event up to [`LIMIT`]; streams beyond it keep counting, and keep first and last,
//! but their later gaps are no longer kept apart.

use crate::columns::words;
use crate::units::Nanos;

/// Token events kept apart per stream: 4 MiB of gaps. The longest answer in any known trace has
/// 57,284 tokens.
pub(super) const LIMIT: usize = 1 << 20;

/// Marks a gap too long for 32 bits of nanoseconds (4.29 s); its value is in `long`.
const LONG: u32 = u32::MAX;

words! {
    /// What kind of text a token event carried.
    pub enum Kind {
        /// `content`, `text` or `refusal`.
        Content = "content",
        /// `reasoning` or `reasoning_content`.
        Reasoning = "reasoning",
        /// A tool-call fragment with a name or arguments.
        Tool = "tool",
    }
}

/// Arrival times of the token events of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenTimes {
    first: Option<Nanos>,
    last: Nanos,
    count: u64,
    reasoning: u64,
    gaps: Vec<u32>,
    long: Vec<u64>,
    /// The server's running count after each event; empty as long as it sent none.
    running: Vec<u32>,
    /// The kind of each event that is kept apart, where that was asked for.
    kinds: Option<Vec<Kind>>,
    /// How long each of these lay in the kernel, in nanoseconds; `u32::MAX`: not known, or longer.
    rx_delays: Vec<u32>,
}

impl TokenTimes {
    /// Token events kept apart per stream.
    pub const LIMIT: usize = LIMIT;

    /// One that also keeps what kind of text each event carried: a byte more an event.
    #[must_use]
    pub fn keeping_kinds() -> Self {
        Self { kinds: Some(Vec::new()), ..Self::default() }
    }

    /// Memory that the events take, besides the value's own.
    pub(super) fn heap_bytes(&self) -> usize {
        let words = self.gaps.len() + self.running.len() + self.rx_delays.len();
        let kinds = self.kinds.as_ref().map_or(0, Vec::len);
        words * size_of::<u32>() + self.long.len() * size_of::<u64>() + kinds
    }

    /// Notes a token event. `running` is the server's running completion count, when the event bore one.
    ///
    /// Events come in order of arrival; two of one read share their stamp.
    pub fn push(&mut self, at: Nanos, kind: Kind, running: Option<u64>) {
        if kind == Kind::Reasoning {
            self.reasoning += 1;
        }
        if self.first.is_some() {
            self.push_gap(at.since(self.last));
        } else {
            self.first = Some(at);
        }
        if let Some(kinds) = self.kinds.as_mut().filter(|kinds| kinds.len() < LIMIT) {
            kinds.push(kind);
        }
        self.last = at;
        self.count += 1;
        self.push_running(running);
    }

    /// Notes how long the event pushed last lay in the kernel, where events' kinds are kept too.
    pub fn set_rx_delay(&mut self, rx_delay: Option<Nanos>) {
        let Some(kinds) = &self.kinds else { return };
        let delay = rx_delay.and_then(|delay| u32::try_from(delay.0).ok());
        if self.rx_delays.len() < kinds.len() {
            self.rx_delays.resize(kinds.len() - 1, u32::MAX);
            self.rx_delays.push(delay.unwrap_or(u32::MAX));
        }
    }

    /// How long each event that is kept apart lay in the kernel, where that is known.
    pub fn rx_delays(&self) -> impl Iterator<Item = Option<Nanos>> + '_ {
        self.rx_delays.iter().map(|ns| (*ns != u32::MAX).then_some(Nanos(u64::from(*ns))))
    }

    fn push_gap(&mut self, gap: Nanos) {
        if self.gaps.len() + 1 >= LIMIT {
            return;
        }
        match u32::try_from(gap.0) {
            Ok(short) if short != LONG => self.gaps.push(short),
            _ => {
                self.gaps.push(LONG);
                self.long.push(gap.0);
            }
        }
    }

    /// A stream reports running counts on every token event or not at all: one hole, and none are claimed.
    fn push_running(&mut self, running: Option<u64>) {
        if self.running.len() + 1 != usize::try_from(self.count).unwrap_or(usize::MAX) {
            self.running.clear();
            return;
        }
        match running.and_then(|n| u32::try_from(n).ok()) {
            Some(n)
                if self.running.len() < LIMIT
                    && self.running.last().is_none_or(|last| *last <= n) =>
            {
                self.running.push(n);
            }
            _ => self.running.clear(),
        }
    }

    /// Number of token events.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Number of token events that carried reasoning.
    #[must_use]
    pub fn reasoning_count(&self) -> u64 {
        self.reasoning
    }

    /// Arrival of the first token event.
    #[must_use]
    pub fn first(&self) -> Option<Nanos> {
        self.first
    }

    /// Arrival of the last token event.
    #[must_use]
    pub fn last(&self) -> Option<Nanos> {
        self.first.map(|_| self.last)
    }

    /// True when every event was kept apart, so that gaps and arrivals are complete.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.gaps.len() as u64 + 1 >= self.count
    }

    /// The last running count, when every token event bore one.
    #[must_use]
    pub fn running_total(&self) -> Option<u64> {
        self.running.last().map(|n| u64::from(*n))
    }

    /// Gaps between successive token events, in order.
    pub fn gaps(&self) -> impl Iterator<Item = Nanos> + '_ {
        let mut long = self.long.iter();
        self.gaps.iter().map(move |gap| {
            // Every LONG mark has its value.
            if *gap == LONG { Nanos(*long.next().unwrap_or(&0)) } else { Nanos(u64::from(*gap)) }
        })
    }

    /// Arrival of each token event that was kept, in order.
    pub fn arrivals(&self) -> impl Iterator<Item = Nanos> + '_ {
        let mut at = self.first;
        let mut gaps = self.gaps();
        std::iter::from_fn(move || {
            let now = at?;
            at = gaps.next().map(|gap| now + gap);
            Some(now)
        })
    }

    /// What kind of text each event that was kept carried, in order; nothing where not asked for.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> + '_ {
        self.kinds.iter().flatten().copied()
    }

    /// Tokens in each event by the server's running count; `None` when it sent none.
    #[must_use]
    pub fn running_steps(&self) -> Option<impl Iterator<Item = u32> + '_> {
        if self.running.is_empty() {
            return None;
        }
        let mut before = 0;
        Some(self.running.iter().map(move |n| {
            let step = n - before;
            before = *n;
            step
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_and_gaps_are_exact_even_when_long() {
        let times = [5, 5, 1_000, 10_000_000_000, 10_000_000_001];
        let mut tokens = TokenTimes::default();
        for at in times {
            tokens.push(Nanos(at), Kind::Content, None);
        }
        assert_eq!(tokens.arrivals().map(|at| at.0).collect::<Vec<_>>(), times);
        let gaps: Vec<u64> = tokens.gaps().map(|gap| gap.0).collect();
        assert_eq!(gaps, [0, 995, 9_999_999_000, 1]);
        assert_eq!((tokens.first(), tokens.last()), (Some(Nanos(5)), Some(Nanos(10_000_000_001))));
        assert!(tokens.is_exact());
        assert!(tokens.running_steps().is_none());
    }

    #[test]
    fn running_counts_become_steps_or_nothing() {
        let mut tokens = TokenTimes::default();
        for (at, n) in [(1, 3), (2, 3), (3, 7)] {
            tokens.push(Nanos(at), Kind::Content, Some(n));
        }
        assert_eq!(tokens.running_steps().expect("counts").collect::<Vec<_>>(), [3, 0, 4]);
        assert_eq!(tokens.running_total(), Some(7));
        tokens.push(Nanos(4), Kind::Reasoning, None);
        assert!(tokens.running_steps().is_none(), "a hole means that none are claimed");
        tokens.push(Nanos(5), Kind::Content, Some(9));
        assert!(tokens.running_steps().is_none());
        assert_eq!(tokens.reasoning_count(), 1);
    }
}
