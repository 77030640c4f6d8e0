//! Turns in made-up time.

use super::super::{ClosedLoop, FixedSchedule, SessionTurn};
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

    fn turn(&self) -> Option<SessionTurn<'_>> {
        let (index, think) = (self.index, self.think.map(Nanos));
        self.session.as_ref().map(|session| SessionTurn { index, session, think })
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

#[test]
fn sessions_that_have_ended_are_forgotten() {
    let mut source = Turns::new(FixedSchedule::new(), Nanos::MAX);
    let mut ended = Vec::new();
    for index in 0..1_000_000 {
        let session = Some(index.to_string().into());
        source.offer(Some(Row { index, due: Some(index), session, think: None }));
        assert!(matches!(source.next(Nanos(index), &ended), Due::Send { .. }));
        ended = vec![Ended { at: Nanos(index), index, failed: false }];
    }
    assert!(source.last.held() <= 1 << 19, "{}", source.last.held());
    assert_eq!((source.open.len(), source.waiting.len(), source.ready.len()), (1, 0, 0));
}
