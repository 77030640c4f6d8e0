//! Tokens by arrival time inside the measured window.
//!
//! The window is closed at both ends: from the end of warm-up to the last due time of the run. Where
//! the run itself decides what is due (closed loop, standard input), that end is known only when the
//! run is over. Rows arrive as they end, so a token may be later than every due time seen so far:
//! such tokens wait, as (instant, tokens) pairs, and are counted once a later due time passes them.
//! Deliberately absent: the division by the window's length, and any row.

use crate::record::TokenTimes;
use crate::units::Nanos;

/// Pairs that may wait: 24 MB. Beyond half of it, instants are rounded up to a common grain, so that
/// at most the last grain before the window's end is counted short.
const WAITING_LIMIT: usize = 1 << 20;
/// Tidying is not worth its time below this.
const WAITING_LEAST: usize = 1 << 16;
/// The first grain, in nanoseconds; doubled as often as needed.
const GRAIN_FIRST: u64 = 1_000;

/// What a number of tokens is booked as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Account {
    /// Output of rows that are `ok` or were cut by us.
    Output,
    /// Output of failed rows.
    Wasted,
    /// Prompt tokens by the server's count, at the first token event.
    Input,
    /// Rows whose prompt the server did not count, at the first token event.
    Uncounted,
    /// Rows that were `ok`, at the end of their stream.
    Finished,
}

/// Tokens counted inside the window, one per [`Account`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Booked([u64; 5]);

impl Booked {
    pub(super) fn of(self, account: Account) -> u64 {
        self.0[account as usize]
    }

    pub(super) fn add(&mut self, other: Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    class: u32,
    account: Account,
    at: Nanos,
    tokens: u64,
}

/// The books of all classes.
#[derive(Debug)]
pub(super) struct Ledger {
    from: Nanos,
    /// No row is due later, where that is known beforehand.
    until: Nanos,
    /// The latest due time seen: tokens up to here are inside the window.
    horizon: Option<Nanos>,
    booked: Vec<Booked>,
    waiting: Vec<Waiting>,
    tidy_at: usize,
    grain: u64,
}

impl Ledger {
    pub(super) fn new(from: Nanos, until: Option<Nanos>) -> Self {
        Self {
            from,
            until: until.unwrap_or(Nanos::MAX),
            horizon: None,
            booked: Vec::new(),
            waiting: Vec::new(),
            tidy_at: WAITING_LEAST,
            grain: 1,
        }
    }

    /// A row was due then.
    pub(super) fn due(&mut self, due: Nanos) {
        self.horizon = self.horizon.max(Some(due.min(self.until)));
    }

    /// The window's end so far.
    pub(super) fn horizon(&self) -> Option<Nanos> {
        self.horizon
    }

    /// Tokens of a class arrived then.
    pub(super) fn book(&mut self, class: usize, account: Account, at: Nanos, tokens: u64) {
        if at < self.from || at > self.until || tokens == 0 {
            return;
        }
        if self.horizon.is_some_and(|horizon| at <= horizon) {
            self.count(class, account, tokens);
            return;
        }
        let class = u32::try_from(class).expect("classes are few");
        self.waiting.push(Waiting { class, account, at, tokens });
        if self.waiting.len() >= self.tidy_at {
            self.tidy();
        }
    }

    fn count(&mut self, class: usize, account: Account, tokens: u64) {
        if self.booked.len() <= class {
            self.booked.resize(class + 1, Booked::default());
        }
        self.booked[class].0[account as usize] += tokens;
    }

    /// Counts what the horizon has passed, and keeps the rest bounded.
    fn tidy(&mut self) {
        self.settle();
        while self.waiting.len() > WAITING_LIMIT / 2 {
            if self.merge() {
                continue;
            }
            self.grain = if self.grain == 1 { GRAIN_FIRST } else { self.grain.saturating_mul(2) };
        }
        self.tidy_at = (self.waiting.len() * 2).clamp(WAITING_LEAST, WAITING_LIMIT);
    }

    fn settle(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        for entry in waiting {
            if self.horizon.is_some_and(|horizon| entry.at <= horizon) {
                self.count(entry.class as usize, entry.account, entry.tokens);
            } else {
                self.waiting.push(entry);
            }
        }
    }

    /// Joins entries of one instant, at the present grain; false when there was nothing to join.
    fn merge(&mut self) -> bool {
        let before = self.waiting.len();
        for entry in &mut self.waiting {
            entry.at = Nanos(entry.at.0.checked_next_multiple_of(self.grain).unwrap_or(u64::MAX));
        }
        self.waiting.sort_unstable();
        self.waiting.dedup_by(|later, first| {
            let same =
                (later.class, later.account, later.at) == (first.class, first.account, first.at);
            if same {
                first.tokens += later.tokens;
            }
            same
        });
        self.waiting.len() < before
    }

    /// Closes the books at the last due time; the flag says whether every instant was kept exactly.
    pub(super) fn close(mut self) -> (Vec<Booked>, bool) {
        self.settle();
        (self.booked, self.grain == 1)
    }
}

/// Spreads `n` tokens over the token events of a stream, calling `book` with instant and tokens: by
/// the server's running counts where it sent them, else evenly. The sum is always `n`; what the
/// events do not account for arrived with the last of them, or at `end` when there was none.
pub(super) fn spread(
    tokens: &TokenTimes,
    n: u64,
    end: Option<Nanos>,
    mut book: impl FnMut(Nanos, u64),
) {
    let mut left = n;
    let mut give = |at, wanted: u64| {
        let share = wanted.min(left);
        left -= share;
        if share > 0 {
            book(at, share);
        }
    };
    if let Some(steps) = tokens.running_steps() {
        tokens.arrivals().zip(steps).for_each(|(at, step)| give(at, u64::from(step)));
    } else if tokens.count() > 0 {
        let (each, over) = (n / tokens.count(), n % tokens.count());
        let mut carried = 0;
        for at in tokens.arrivals() {
            carried += over;
            let extra = carried / tokens.count();
            carried %= tokens.count();
            give(at, each + extra);
        }
    }
    if let Some(at) = tokens.last().or(end) {
        give(at, u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Kind;
    use proptest::prelude::*;

    fn stream(at: &[u64], running: &[u64]) -> TokenTimes {
        let mut tokens = TokenTimes::default();
        for (i, at) in at.iter().enumerate() {
            tokens.push(Nanos(*at), Kind::Content, running.get(i).copied());
        }
        tokens
    }

    #[test]
    fn tokens_are_spread_and_never_lost() {
        let check = |at: &[u64], running: &[u64], n: u64, wanted: &[(u64, u64)]| {
            let mut got = Vec::new();
            spread(&stream(at, running), n, Some(Nanos(99)), |at, n| got.push((at.0, n)));
            assert_eq!(got, wanted, "{at:?} {running:?} {n}");
        };
        check(&[1, 2, 3], &[], 3, &[(1, 1), (2, 1), (3, 1)]);
        check(&[1, 2, 3], &[], 7, &[(1, 2), (2, 2), (3, 3)]);
        check(&[1, 2, 3], &[], 2, &[(2, 1), (3, 1)]);
        check(&[1, 2, 3], &[5, 5, 9], 9, &[(1, 5), (3, 4)]);
        // The final count bears an end-of-sequence token that no event carried, or is below the running one.
        check(&[1, 2, 3], &[5, 6, 9], 10, &[(1, 5), (2, 1), (3, 3), (3, 1)]);
        check(&[1, 2, 3], &[5, 6, 9], 6, &[(1, 5), (2, 1)]);
        check(&[], &[], 4, &[(99, 4)]);
        check(&[1], &[], 0, &[]);
    }

    #[test]
    fn waiting_tokens_stay_bounded() {
        let mut ledger = Ledger::new(Nanos::ZERO, None);
        ledger.due(Nanos::ZERO);
        let events = 3 * WAITING_LIMIT as u64;
        for i in 1..=events {
            ledger.book(0, Account::Output, Nanos(i * 500), 1);
            assert!(ledger.waiting.len() <= WAITING_LIMIT);
        }
        let grain = ledger.grain;
        assert!(grain > 1);
        ledger.due(Nanos(events * 250));
        let (booked, exact) = ledger.close();
        assert!(!exact);
        let short = events / 2 - booked[0].of(Account::Output);
        assert!(short <= grain / 500, "{short} tokens short at a grain of {grain} ns");
    }

    proptest! {
        #[test]
        fn the_window_counts_what_a_second_pass_would(
            rows in prop::collection::vec((0..50_u64, prop::collection::vec(0..100_u64, 0..20)), 1..40),
            from in 0..60_u64,
            known in any::<bool>(),
            tidy_often in any::<bool>(),
        ) {
            let last = rows.iter().map(|row| row.0).max().expect("a row");
            let mut ledger = Ledger::new(Nanos(from), known.then_some(Nanos(last)));
            for (due, events) in &rows {
                ledger.due(Nanos(*due));
                for at in events {
                    ledger.book(3, Account::Wasted, Nanos(*at), 2);
                }
                if tidy_often {
                    ledger.tidy();
                }
            }
            prop_assert!(!known || ledger.waiting.iter().all(|entry| entry.at.0 <= last));
            let all = rows.iter().flat_map(|row| &row.1);
            let wanted = 2 * all.filter(|at| (from..=last).contains(at)).count() as u64;
            let (booked, exact) = ledger.close();
            prop_assert_eq!(booked.get(3).map_or(0, |booked| booked.of(Account::Wasted)), wanted);
            prop_assert!(exact);
        }
    }
}
