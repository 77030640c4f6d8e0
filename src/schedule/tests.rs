//! Tables of small plans.

use std::convert::Infallible;
use std::sync::Arc;

mod properties;

use super::*;
use crate::trace::{Content, Prefix};
use crate::units::Speed;

type Row = Result<Request, Infallible>;

fn ms(text: &str) -> Nanos {
    Nanos::parse_duration(text).expect(text)
}

/// Rows of 100 + 10 tokens from "at" or "at session", times as durations.
fn rows(text: &str) -> Vec<Row> {
    let one = |(row, text): (usize, &str)| {
        let (at, session) = text.split_once('@').unwrap_or((text, ""));
        let session = (!session.is_empty()).then(|| Arc::from(session));
        Ok(Request {
            row: row as u64,
            at: ms(at),
            input_tok: 100,
            output_tok: Some(10),
            session,
            ..Request::default()
        })
    };
    text.split_whitespace().enumerate().map(one).collect()
}

/// The plan as "row@due" with due in seconds, and its facts after reading on.
fn planned(rows: Vec<Row>, shape: &Shape) -> (String, PlanFacts) {
    let mut plan = plan(rows, shape);
    let mut text = Vec::new();
    for planned in &mut plan {
        let planned = planned.expect("no errors here");
        let due = planned.due.map_or_else(|| "-".to_owned(), |due| due.as_secs_f64().to_string());
        text.push(format!("{}@{due}", planned.request.row));
    }
    let facts = plan.read_rest().expect("no errors here").clone();
    (text.join(" "), facts)
}

fn check(trace: &str, shape: &Shape, expect: &str) -> PlanFacts {
    let (text, facts) = planned(rows(trace), shape);
    assert_eq!(text, expect, "{trace} {shape:?}");
    assert_eq!(facts.rows + facts.left_out + facts.past_end, rows(trace).len() as u64);
    facts
}

fn speed(text: &str) -> Speed {
    Speed::parse(text).expect("a factor")
}

#[test]
fn as_recorded_nothing_is_bent() {
    let facts = check("1ms 2ms 9ms 11ms", &Shape::default(), "0@0.001 1@0.002 2@0.009 3@0.011");
    assert_eq!((facts.rows, facts.input_tok, facts.output.total()), (4, 400, Some(40)));
    assert_eq!((facts.first_due, facts.last_due), (Some(ms("1ms")), Some(ms("11ms"))));
    assert_eq!(facts.end, End::Source);
    check("", &Shape::default(), "");
}

#[test]
fn sub_millisecond_offsets_stay() {
    // Reported fault 52: 1, 2, 9, 11 ms became 0, 0, 0, 10 where times were cut to two decimals.
    let shape = Shape { from: Some(ms("1ms")), ..Shape::default() };
    check("1ms 2ms 9ms 11ms", &shape, "0@0 1@0.001 2@0.008 3@0.01");
    check("1000001ns 1000002ns", &shape, "0@0.000000001 1@0.000000002");
}

#[test]
fn a_window_starts_at_zero_and_ends_exclusively() {
    // Reported fault 55: the first send at 0, 20 s long.
    let shape = Shape { from: Some(ms("10s")), to: Some(ms("30s")), ..Shape::default() };
    let facts = check("9.999s 10s 29.999s 30s 31s", &shape, "1@0 2@19.999");
    assert_eq!((facts.left_out, facts.end), (3, End::Window));
    // Without `from` nothing is subtracted.
    let shape = Shape { to: Some(ms("30s")), ..Shape::default() };
    check("10s 29s 30s", &shape, "0@10 1@29");
}

#[test]
fn speed_acts_before_the_gap_cap() {
    // Reported fault 56: a cap taken before the speed-up. In replayed time the gaps are 0.5 s, and
    // 60 s that the cap makes 1 s.
    let shape = Shape { speed: speed("10"), max_gap: Some(ms("1s")), ..Shape::default() };
    let facts = check("0s 5s 605s", &shape, "0@0 1@0.5 2@1.5");
    assert_eq!((facts.shortened_gaps, facts.removed), (1, ms("59s")));
    // Everything later moves earlier, by all that was removed before it.
    let shape = Shape { max_gap: Some(ms("2s")), ..Shape::default() };
    check("0s 10s 11s 14s 15s", &shape, "0@0 1@2 2@3 3@5 4@6");
    // The silence before the first row is a gap like any other.
    check("491921s 491922s", &shape, "0@2 1@3");
    // A gap of the cap is not above it.
    assert_eq!(check("0s 2s", &shape, "0@0 1@2").shortened_gaps, 0);
    // Slower is slower.
    let shape = Shape { speed: speed("0.5"), ..Shape::default() };
    check("1s 2s", &shape, "0@2 1@4");
}

#[test]
fn window_speed_and_cap_compose() {
    let shape = Shape {
        from: Some(ms("100s")),
        to: Some(ms("200s")),
        speed: speed("20"),
        max_gap: Some(ms("1s")),
        duration: Some(ms("2.5s")),
        ..Shape::default()
    };
    let facts = check("99s 100s 110s 190s 199s 210s", &shape, "1@0 2@0.5 3@1.5 4@1.95");
    assert_eq!((facts.left_out, facts.past_end, facts.end), (2, 0, End::Window));
}

#[test]
fn the_earliest_end_wins() {
    let shape = |limit, duration| Shape { limit, duration: Some(ms(duration)), ..Shape::default() };
    let facts = check("0s 1s 2s 3s", &shape(Some(3), "10s"), "0@0 1@1 2@2");
    assert_eq!((facts.end, facts.past_end), (End::Limit, 1));
    let facts = check("0s 1s 2s 3s", &shape(Some(3), "2s"), "0@0 1@1");
    assert_eq!((facts.end, facts.past_end), (End::Duration, 2));
    let facts = check("0s 1s", &shape(Some(0), "2s"), "");
    assert_eq!((facts.end, facts.past_end), (End::Limit, 2));
    // A row that the duration cut has not shortened a gap of the plan.
    let shape = Shape { max_gap: Some(ms("1s")), duration: Some(ms("1s")), ..Shape::default() };
    assert_eq!(check("0s 9s", &shape, "0@0").shortened_gaps, 0);
}

#[test]
fn sessions_are_kept_by_their_start_and_run_on() {
    let shape = Shape { from: Some(ms("10s")), to: Some(ms("20s")), ..Shape::default() };
    // a starts before, b inside, c after; d has one row inside; the last row is its own session.
    let trace = "9s@a 10s@b 12s@a 15s@d 19s 20s 21s@b 22s@c 30s@a 90s@b 91s";
    let facts = check(trace, &shape, "1@0 3@5 4@9 6@11 9@80");
    assert_eq!((facts.left_out, facts.end), (6, End::Source));
    // Only `from`: a stays out for good, a session first seen later is in.
    let shape = Shape { from: Some(ms("10s")), ..Shape::default() };
    check("9s@a 11s@a 12s@b 13s@b", &shape, "2@2 3@3");
}

#[test]
fn limit_and_duration_cut_sessions_and_say_so() {
    let trace = "0s@a 1s@b 2s@c 3s@a 4s@c 5s@a 6s@d 7s@d";
    let limit = Shape { limit: Some(4), ..Shape::default() };
    let facts = check(trace, &limit, "0@0 1@1 2@2 3@3");
    assert_eq!((facts.cut_sessions, facts.past_end), (2, 4), "a and c; b was whole, d never began");
    let duration = Shape { duration: Some(ms("2s")), ..Shape::default() };
    assert_eq!(check(trace, &duration, "0@0 1@1").cut_sessions, 1, "a");
}

#[test]
fn a_later_turn_has_a_pause_and_no_due_time() {
    let pause = |row: Row, pause: &str| row.map(|row| Request { think: Some(ms(pause)), ..row });
    let source = || -> Vec<Row> {
        let pauses = ["9s", "4s", "6s", "1s"];
        rows("1s@a 2s@a 3s@a 50s@b")
            .into_iter()
            .zip(pauses)
            .map(|(row, own)| pause(row, own))
            .collect()
    };
    let shape = Shape { speed: speed("2"), max_gap: Some(ms("5s")), ..Shape::default() };
    let mut plan = plan(source(), &shape);
    let seen: Vec<_> = plan
        .by_ref()
        .map(|planned| planned.expect("no errors here"))
        .map(|planned| (planned.due, planned.request.think))
        .collect();
    // A first turn has nothing to follow; turns do not shorten the gap before the next session.
    let expect = [
        (Some(ms("500ms")), None),
        (None, Some(ms("2s"))),
        (None, Some(ms("3s"))),
        (Some(ms("5500ms")), None),
    ];
    assert_eq!(seen, expect);
    let facts = plan.facts();
    assert_eq!((facts.think_rows, facts.last_due), (2, Some(ms("5500ms"))));
    let mut bytes = Vec::new();
    write_plan(&mut bytes, super::plan(source(), &shape)).expect("a vector takes all");
    let text = String::from_utf8(bytes).expect("text");
    assert!(text.contains("\n1,a,,,,100,10,,1\n"), "{text}");
}

#[test]
fn a_closed_loop_has_rows_but_no_due_times() {
    let shape = Shape {
        from: Some(ms("1s")),
        to: Some(ms("9s")),
        limit: Some(3),
        duration: Some(ms("1s")),
        max_gap: Some(ms("1s")),
        closed_loop: true,
        ..Shape::default()
    };
    let facts = check("0s 1s 5s 6s 7s", &shape, "1@- 2@- 3@-");
    assert_eq!((facts.first_due, facts.last_due, facts.shortened_gaps), (None, None, 0));
    assert_eq!(facts.end, End::Limit);
}

#[test]
fn reading_stops_as_soon_as_nothing_can_follow() {
    let endless = |session: Option<&'static str>| {
        (0..).map(move |row| {
            assert!(row < 100, "read on");
            let session = session.map(Arc::from);
            Row::Ok(Request { row, at: Nanos::from_secs(row), session, ..Request::default() })
        })
    };
    let count = |shape: &Shape| plan(endless(None), shape).count();
    assert_eq!(count(&Shape { to: Some(ms("5s")), ..Shape::default() }), 5);
    assert_eq!(count(&Shape { duration: Some(ms("7s")), ..Shape::default() }), 7);
    // The limit does not even read the row after: a pipe may never give one.
    let limit = Shape { limit: Some(100), ..Shape::default() };
    assert_eq!(plan(endless(Some("a")), &limit).count(), 100);
    let mut ended = plan(endless(None), &Shape { limit: Some(1), ..Shape::default() });
    assert_eq!(ended.by_ref().count(), 1);
    assert!(ended.next().is_none() && ended.next().is_none());
}

#[test]
fn lengths_are_clipped_and_counted() {
    let prefix =
        |blocks: &[u64], block_tok| Some(Box::new(Prefix { blocks: blocks.into(), block_tok }));
    let row = |input_tok, output_tok| Request {
        input_tok,
        output_tok: Some(output_tok),
        ..Request::default()
    };
    let words = Content { prompt: Some("said".into()), ..Content::default() };
    let source = vec![
        Row::Ok(Request { prefix: prefix(&[7, 8, 9], 512), ..row(1_400, 9) }),
        Ok(Request { prefix: prefix(&[7, 8], 512), ..row(1_400, 50) }),
        Ok(Request { prefix: prefix(&[7, 8, 9], 512), ..row(1_025, 51) }),
        Ok(Request { content: Some(Box::new(words)), ..row(5_000, 50) }),
        Ok(Request { content: Some(Box::default()), ..row(5_000, 0) }),
    ];
    let shape = Shape { max_input_tok: Some(1_025), max_output_tok: Some(50), ..Shape::default() };
    let mut plan = plan(source, &shape);
    let got: Vec<_> = plan
        .by_ref()
        .map(|planned| planned.expect("no errors here").request)
        .map(|r| {
            (
                r.input_tok,
                r.output_tok.expect("asked for"),
                r.prefix.map(|prefix| prefix.blocks.len()),
            )
        })
        .collect();
    let whole = [(1_025, 9, Some(3)), (1_025, 50, Some(2)), (1_025, 50, Some(3))];
    // Words are sent as they are; a row that asks for nothing asks for one token.
    assert_eq!(got, [&whole[..], &[(5_000, 50, None), (1_025, 1, None)]].concat());
    let facts = plan.facts();
    assert_eq!((facts.clipped_input, facts.clipped_output, facts.raised_output), (3, 1, 1));
    let shape = Shape { max_input_tok: Some(1_024), ..Shape::default() };
    let source = vec![Row::Ok(Request { prefix: prefix(&[7, 8, 9], 512), ..row(1_100, 9) })];
    let cut = super::plan(source, &shape).next().expect("a row").expect("no errors here");
    assert_eq!(cut.request.prefix.expect("kept").blocks.as_ref(), [7, 8]);
}

#[test]
fn errors_pass_through_in_their_place() {
    let row = |row| Request { row, at: Nanos::from_secs(row), ..Request::default() };
    let source = vec![Ok(row(0)), Err("line 3"), Ok(row(2))];
    let mut plan = plan(source, &Shape::default());
    let seen: Vec<_> = plan.by_ref().map(|r| r.map(|planned| planned.request.row)).collect();
    assert_eq!(seen, [Ok(0), Err("line 3"), Ok(2)]);
    assert_eq!(plan.facts().rows, 2);
}

#[test]
fn the_plan_file_is_what_the_hash_is_over() {
    let request = Request {
        source_row: None,
        row: 18_446_744_073_709_551_615,
        at: Nanos(1_000_000_001),
        input_tok: 1_024,
        output_tok: Some(7),
        session: Some("a,\"b\"".into()),
        turn: Some(2),
        class: Some("batch".into()),
        think: Some(ms("1s")),
        prefix: Some(Box::new(Prefix { blocks: [0, 46, 74].into(), block_tok: 512 })),
        content: None,
    };
    let second =
        Request { row: 3, at: ms("2s"), input_tok: 5, output_tok: Some(1), ..Request::default() };
    let source = || vec![Row::Ok(request.clone()), Ok(second.clone())];
    let mut bytes = Vec::new();
    let mut one = plan(source(), &Shape::default());
    write_plan(&mut bytes, &mut one).expect("a vector takes all");
    let text = String::from_utf8(bytes).expect("text");
    assert_eq!(
        text,
        "row,session,turn,class,due_s,input_tok,output_tok,blocks,source_row\n\
         18446744073709551615,\"a,\"\"b\"\"\",2,batch,1.000000001,1024,7,0 46 74,18446744073709551615\n\
         3,,,,2.000000000,5,1,,3\n"
    );
    let fnv = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    assert_eq!(one.facts().plan_hash, format!("{fnv:016x}"));
    assert_eq!(one.facts().think_rows, 0, "there is no turn before it");
    // A closed loop leaves `due_s` empty, and is another plan.
    let mut bytes = Vec::new();
    let mut closed = plan(source(), &Shape { closed_loop: true, ..Shape::default() });
    write_plan(&mut bytes, &mut closed).expect("a vector takes all");
    assert!(String::from_utf8(bytes).expect("text").contains("\n3,,,,,5,1,,3\n"));
    assert_ne!(closed.facts().plan_hash, one.facts().plan_hash);
}

#[test]
fn a_full_disk_and_a_bad_row_are_told_apart() {
    let source = vec![Err::<Request, _>("line 3: not a number")];
    let error = write_plan(Vec::new(), plan(source, &Shape::default())).expect_err("a bad row");
    assert_eq!(error.to_string(), "line 3: not a number");
    let full = &mut [0_u8; 10][..];
    let error = write_plan(full, plan(rows("0s"), &Shape::default())).expect_err("no room");
    assert!(error.to_string().starts_with("cannot write the plan: "), "{error}");
}

#[test]
fn rows_out_of_order_never_turn_time_back() {
    let facts = check("5s 3s 6s", &Shape::default(), "0@5 1@5 2@6");
    assert_eq!(facts.late_rows, 1);
}

#[test]
fn sessions_are_forgotten_and_a_turn_after_that_is_due_at_its_own_time() {
    const ROWS: u64 = 1_000_000;
    let row = |row: u64| {
        // The first and the last but one are of one session, as are the last two.
        let session = if row == 0 || row + 2 >= ROWS { 0 } else { row };
        let (at, think) = (Nanos::from_secs(row), Some(Nanos::from_secs(1)));
        let (session, think) = (Some(session.to_string().into()), think.filter(|_| session == 0));
        Row::Ok(Request { row, at, session, think, ..Request::default() })
    };
    let mut plan = plan((0..ROWS).map(row), &Shape::default());
    let last = plan.by_ref().flatten().filter(|planned| planned.index + 2 >= ROWS);
    let due: Vec<Option<Nanos>> = last.map(|planned| planned.due).collect();
    assert_eq!(due, [Some(Nanos::from_secs(ROWS - 2)), None]);
    assert!(plan.sessions_held() <= 1 << 19, "{}", plan.sessions_held());
}
