//! Dependent turns: a later turn of a session is due when the one before it has ended and its pause is
//! over.
//!
//! It wraps the source of all other rows. Rows are read ahead, within a limit, so that a turn is known
//! by the time it is due even where the answers come faster than when the trace was recorded. A session
//! that thinks holds no slot. Where a turn failed, those after it are skipped. Deliberately absent: what
//! a turn says.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use super::{Due, Ended, Held, Source, Timed};
use crate::schedule::RecentSessions;
use crate::units::Nanos;

/// Rows read ahead of their time, and their memory: as much as half a minute of heavy traffic.
const AHEAD_ROWS: usize = 1 << 16;
const AHEAD_BYTES: usize = 64 << 20;
/// Turns that wait for others to end.
const HELD_ROWS: usize = 1 << 20;

/// A source whose rows may follow one another.
#[derive(Debug)]
pub struct Turns<S, R> {
    inner: S,
    /// Rows with a time of their own, until the inner source asks for them.
    ahead: VecDeque<R>,
    ahead_bytes: usize,
    /// The plan is at its end.
    ended: bool,
    /// There are sessions, so that a row may follow another.
    has_sessions: bool,
    /// The last row that was offered, by session. A plan names no turn after a session that is forgotten here.
    last: RecentSessions<Last>,
    /// The session of each row that has not ended.
    open: HashMap<u64, Arc<str>>,
    /// Turns, by the row that they wait for.
    waiting: HashMap<u64, R>,
    /// Turns whose time is known.
    ready: BTreeMap<(Nanos, u64), R>,
    skipped: VecDeque<R>,
    /// What the inner source has not been told yet.
    unheard: Vec<Ended>,
    /// No turn is due at or after this offset.
    until: Nanos,
    last_due: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    index: u64,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Open,
    Ended(Nanos),
    Failed,
}

impl<S: Source<R>, R: Timed> Turns<S, R> {
    /// Rows of `inner`, and turns that follow them, none due at or after `until`.
    #[must_use]
    pub fn new(inner: S, until: Nanos) -> Self {
        Self {
            inner,
            ahead: VecDeque::new(),
            ahead_bytes: 0,
            ended: false,
            has_sessions: false,
            last: RecentSessions::default(),
            open: HashMap::new(),
            waiting: HashMap::new(),
            ready: BTreeMap::new(),
            skipped: VecDeque::new(),
            unheard: Vec::new(),
            until,
            last_due: Nanos::ZERO,
        }
    }

    /// Files what ended.
    fn note(&mut self, ended: &[Ended]) {
        self.unheard.extend_from_slice(ended);
        for end in ended {
            let Some(session) = self.open.remove(&end.index) else { continue };
            if let Some(row) = self.waiting.remove(&end.index) {
                if end.failed {
                    self.skip(row, &session);
                } else {
                    self.make_ready(row, end.at);
                }
            } else if let Some(last) = self.last.get_mut(&session)
                && last.index == end.index
            {
                last.state = if end.failed { State::Failed } else { State::Ended(end.at) };
            }
        }
    }

    /// Skips a turn and all that wait for it.
    fn skip(&mut self, row: R, session: &Arc<str>) {
        let mut next = Some(row);
        while let Some(row) = next {
            let index = row.turn().map_or(u64::MAX, |turn| turn.index);
            self.open.remove(&index);
            if let Some(last) = self.last.get_mut(session)
                && last.index == index
            {
                last.state = State::Failed;
            }
            next = self.waiting.remove(&index);
            self.skipped.push_back(row);
        }
    }

    fn make_ready(&mut self, mut row: R, ended: Nanos) {
        let Some((index, think)) = row.turn().map(|turn| (turn.index, turn.think)) else { return };
        row.prepare();
        self.ready.insert((ended + think.unwrap_or_default(), index), row);
    }

    fn has_room(&self) -> bool {
        !self.ended
            && self.has_sessions
            && self.ahead.len() < AHEAD_ROWS
            && self.ahead_bytes < AHEAD_BYTES
            && self.waiting.len() + self.ready.len() < HELD_ROWS
    }

    fn keep_ahead(&mut self, row: R) {
        self.ahead_bytes += row.bytes();
        self.ahead.push_back(row);
    }

    /// The earliest turn whose time is known and comes before the end.
    fn first_ready(&self) -> Option<Nanos> {
        self.ready.first_key_value().map(|((due, _), _)| *due).filter(|due| *due < self.until)
    }

    /// What the inner source says, fed from the rows read ahead.
    fn ask_inner(&mut self, now: Nanos) -> Due<R> {
        loop {
            let unheard = std::mem::take(&mut self.unheard);
            match self.inner.next(now, &unheard) {
                Due::Row => {
                    if let Some(row) = self.ahead.pop_front() {
                        self.ahead_bytes -= row.bytes();
                        self.inner.offer(Some(row));
                    } else if self.ended {
                        self.inner.offer(None);
                    } else {
                        return Due::Row;
                    }
                }
                other => return other,
            }
        }
    }

    /// What to do once the inner source has no more.
    fn only_turns(&self, now: Nanos) -> Due<R> {
        match self.first_ready() {
            _ if !self.ended || now >= self.until => Due::Done,
            Some(due) if due > now => Due::At(due),
            None if self.waiting.is_empty() => Due::Done,
            None if self.until < Nanos::MAX => Due::At(self.until),
            // There is no slot, or all wait for an end.
            _ => Due::End,
        }
    }
}

impl<S: Source<R>, R: Timed> Source<R> for Turns<S, R> {
    fn offer(&mut self, row: Option<R>) {
        let Some(row) = row else {
            self.ended = true;
            return;
        };
        let Some(turn) = row.turn() else { return self.keep_ahead(row) };
        let (index, session, think) = (turn.index, Arc::clone(turn.session), turn.think);
        self.has_sessions = true;
        let last = Last { index, state: State::Open };
        let before = self.last.insert(&session, index, last);
        self.open.insert(index, Arc::clone(&session));
        match before.filter(|_| think.is_some()) {
            None => self.keep_ahead(row),
            Some(Last { state: State::Ended(at), .. }) => self.make_ready(row, at),
            Some(Last { state: State::Failed, .. }) => self.skip(row, &session),
            Some(Last { index: before, .. }) => {
                self.waiting.insert(before, row);
            }
        }
    }

    fn next(&mut self, now: Nanos, ended: &[Ended]) -> Due<R> {
        self.note(ended);
        if let Some(row) = self.skipped.pop_front() {
            return Due::Skip(row);
        }
        if let Some(due) = self.first_ready().filter(|due| *due <= now) {
            let unheard = std::mem::take(&mut self.unheard);
            if let Some(counts_from) = self.inner.claim(now, due, &unheard)
                && let Some((_, row)) = self.ready.pop_first()
            {
                self.last_due = self.last_due.max(counts_from);
                return Due::Send { row, due: counts_from };
            }
        }
        let due = self.ask_inner(now);
        let ready = self.first_ready().filter(|due| *due > now);
        let by = |at: Nanos| ready.map_or(at, |ready| ready.min(at));
        match due {
            Due::Row if self.has_sessions => Due::RowBy(by(Nanos::MAX)),
            Due::At(at) | Due::RowBy(at) if self.has_room() => Due::RowBy(by(at)),
            Due::At(at) => Due::At(by(at)),
            Due::End if self.has_room() => Due::RowBy(by(Nanos::MAX)),
            Due::End => ready.map_or(Due::End, Due::At),
            Due::Done => self.only_turns(now),
            Due::Send { row, due } => {
                self.last_due = self.last_due.max(due);
                Due::Send { row, due }
            }
            other => other,
        }
    }

    fn awaits_turns(&self) -> bool {
        self.has_sessions
    }

    /// Once only turns are left, they may wait for a stream that never ends.
    fn held(&self) -> Option<Held> {
        let turns =
            (self.ended && self.has_sessions).then_some(Held { last_due: Some(self.last_due) });
        self.inner.held().or(turns)
    }

    fn release(&mut self) {
        self.inner.release();
    }
}

#[cfg(test)]
mod tests;
