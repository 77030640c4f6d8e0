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
    /// The last row that was offered, by session.
    last: HashMap<Arc<str>, Last>,
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
            last: HashMap::new(),
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
            // It has no slot.
            Some(_) => Due::End,
            None if self.waiting.is_empty() => Due::Done,
            None if self.until < Nanos::MAX => Due::At(self.until),
            None => Due::End,
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
        let before = self.last.insert(Arc::clone(&session), last);
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
mod tests {
    use super::super::{ClosedLoop, FixedSchedule, Turn};
    use super::*;

    /// A row: `(index, due, session, think)`.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Row {
        index: u64,
        due: Option<u64>,
        session: Option<Arc<str>>,
        think: Option<u64>,
    }

    impl Timed for Row {
        fn due(&self) -> Option<Nanos> {
            self.due.map(Nanos)
        }

        fn turn(&self) -> Option<Turn<'_>> {
            let (index, think) = (self.index, self.think.map(Nanos));
            self.session.as_ref().map(|session| Turn { index, session, think })
        }
    }

    /// Rows from "due", "due@session" and "+think@session".
    fn rows(text: &str) -> Vec<Row> {
        let one = |(index, word): (usize, &str)| {
            let (time, session) = word.split_once('@').unwrap_or((word, ""));
            let session = (!session.is_empty()).then(|| Arc::from(session));
            let think = time.strip_prefix('+').map(|think| think.parse().expect("a number"));
            let due = if think.is_some() { None } else { time.parse().ok() };
            Row { index: index as u64, due, session, think }
        };
        text.split_whitespace().enumerate().map(one).collect()
    }

    /// "index@due" of every send and "index!" of every skip, in order; each request lasts `lasts`, and
    /// those in `fails` fail.
    fn drive(mut source: impl Source<Row>, text: &str, lasts: u64, fails: &[u64]) -> String {
        let mut rows = rows(text).into_iter();
        let (mut seen, mut flying, mut now) = (Vec::new(), Vec::<Ended>::new(), 0);
        loop {
            let ended: Vec<Ended> = flying.iter().filter(|end| end.at.0 <= now).copied().collect();
            flying.retain(|end| end.at.0 > now);
            let next_end = flying.iter().map(|end| end.at.0).min();
            match source.next(Nanos(now), &ended) {
                Due::Row | Due::RowBy(_) => source.offer(rows.next()),
                Due::Skip(row) => seen.push(format!("{}!", row.index)),
                Due::Send { row, due } => {
                    assert!(due.0 <= now, "{row:?} before its time");
                    seen.push(format!("{}@{}", row.index, due.0));
                    let (index, failed) = (row.index, fails.contains(&row.index));
                    flying.push(Ended { at: Nanos(now + lasts), index, failed });
                }
                Due::At(at) => now = next_end.map_or(at.0, |end| end.min(at.0)),
                Due::End => now = next_end.expect("something in flight"),
                Due::Done => return seen.join(" "),
            }
        }
    }

    fn open() -> Turns<FixedSchedule<Row>, Row> {
        Turns::new(FixedSchedule::new(), Nanos::MAX)
    }

    #[test]
    fn a_turn_is_due_a_pause_after_the_end_of_the_one_before() {
        let text = "0@a +5@a 12@b +0@a +7@b 100";
        assert_eq!(drive(open(), text, 10, &[]), "0@0 2@12 1@15 3@25 4@29 5@100");
        // Rows without a pause wait for nobody.
        assert_eq!(drive(open(), "0@a 3@a 4", 10, &[]), "0@0 1@3 2@4");
    }

    #[test]
    fn a_turn_far_down_the_plan_is_known_in_time() {
        let text = "0@a 500 600 700 +5@a 800";
        assert_eq!(drive(open(), text, 10, &[]), "0@0 4@15 1@500 2@600 3@700 5@800");
    }

    #[test]
    fn a_failed_turn_takes_the_rest_of_its_session_with_it() {
        let text = "0@a +5@a +5@a 3@b +4@b 50@a +5@a";
        let seen = drive(open(), text, 10, &[1]);
        // Row 5 has a time of its own, and row 6 follows it.
        assert_eq!(seen, "0@0 3@3 1@15 4@17 2! 5@50 6@65");
    }

    #[test]
    fn a_thinking_session_holds_no_slot() {
        let closed = |slots: usize, until: u64| {
            let free = std::iter::repeat_n(Nanos::ZERO, slots);
            Turns::new(ClosedLoop::new(free, Nanos(until)), Nanos(until))
        };
        // One slot: b goes while a thinks, and a's turn waits for b to end.
        let text = "x@a +5@a x@b +100@b";
        assert_eq!(drive(closed(1, u64::MAX), text, 10, &[]), "0@0 2@10 1@20 3@120");
        assert_eq!(drive(closed(2, u64::MAX), text, 10, &[]), "0@0 2@0 1@15 3@110");
        assert_eq!(drive(closed(2, 100), text, 10, &[]), "0@0 2@0 1@15", "the run is over before");
    }

    #[test]
    fn a_session_that_never_ends_is_told_of() {
        let mut source = open();
        let mut given = rows("0@a +5@a").into_iter();
        let hung = loop {
            match source.next(Nanos(0), &[]) {
                Due::Row | Due::RowBy(_) => source.offer(given.next()),
                Due::Send { .. } => {}
                other => break other,
            }
        };
        assert_eq!(hung, Due::End);
        assert_eq!(source.held(), Some(Held { last_due: Some(Nanos(0)) }));
    }

    #[test]
    fn a_row_is_waited_for_no_longer_than_a_turn_allows() {
        let mut source = open();
        source.offer(Some(rows("0@a").remove(0)));
        assert!(matches!(source.next(Nanos(0), &[]), Due::Send { .. }));
        source.offer(Some(Row { index: 1, due: None, session: Some("a".into()), think: Some(9) }));
        let end = Ended { at: Nanos(3), ..Ended::default() };
        assert_eq!(source.next(Nanos(4), &[end]), Due::RowBy(Nanos(12)));
    }
}
