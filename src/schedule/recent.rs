//! What is remembered of sessions, in bounded memory.
//!
//! No row says that it is the last of its session, so nobody knows when one may be forgotten; kept for good they
//! would grow with the trace. So one is remembered for so many rows of the plan after its last. A plan and whatever
//! sends it reckon by the same row numbers: each knows the sessions that the other does.

use std::collections::HashMap;
use std::sync::Arc;

/// Rows of the plan for which a session is remembered: a quarter of an hour of a trace of 27 million rows a day. At
/// most twice as many sessions are held, of some 100 bytes each.
const SPAN_ROWS: u64 = 1 << 18;

/// Sessions that had a row of late, each with what is known of it.
#[derive(Debug)]
pub struct RecentSessions<T> {
    /// Of the rows from `start` on, and of as many before them.
    now: HashMap<Arc<str>, (u64, T)>,
    before: HashMap<Arc<str>, (u64, T)>,
    start: u64,
}

impl<T> Default for RecentSessions<T> {
    fn default() -> Self {
        Self { now: HashMap::new(), before: HashMap::new(), start: 0 }
    }
}

impl<T> RecentSessions<T> {
    /// Notes row `index` of the plan: what is known of its session from now on, for what was known.
    pub fn insert(&mut self, session: &Arc<str>, index: u64, known: T) -> Option<T> {
        if index.saturating_sub(self.start) > SPAN_ROWS {
            self.before = std::mem::take(&mut self.now);
            self.start = index;
        }
        let last = if let Some(last) = self.now.get_mut(session) {
            Some(std::mem::replace(last, (index, known)))
        } else {
            self.now.insert(Arc::clone(session), (index, known));
            self.before.remove(session)
        };
        last.filter(|(last, _)| index.saturating_sub(*last) <= SPAN_ROWS).map(|(_, known)| known)
    }

    /// What is known of a session.
    pub fn get_mut(&mut self, session: &str) -> Option<&mut T> {
        let last = self.now.get_mut(session).or_else(|| self.before.get_mut(session));
        last.map(|(_, known)| known)
    }

    /// How many are held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.now.len() + self.before.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_remembered_for_so_many_rows_by_all_or_by_some_of_them() {
        let name: Arc<str> = "a".into();
        // Every row, or only every third, as a worker may see them.
        for step in [1, 3] {
            let mut recent = RecentSessions::default();
            let others = |recent: &mut RecentSessions<u64>, from: u64, to: u64| {
                (from..to).filter(|index| index % step == 0).for_each(|index| {
                    recent.insert(&index.to_string().into(), index, index);
                });
            };
            assert_eq!(recent.insert(&name, 1_000, 1), None);
            others(&mut recent, 1_001, SPAN_ROWS + 1_000);
            assert_eq!(recent.insert(&name, SPAN_ROWS + 1_000, 2), Some(1));
            others(&mut recent, SPAN_ROWS + 1_001, 2 * SPAN_ROWS + 1_001);
            assert_eq!(recent.get_mut("a"), Some(&mut 2));
            assert_eq!(recent.insert(&name, 2 * SPAN_ROWS + 1_001, 3), None, "a row too late");
        }
    }
}
