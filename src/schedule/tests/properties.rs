//! What holds for every plan.

use proptest::prelude::*;

use super::*;

fn any_span(most_ms: u64) -> impl Strategy<Value = Option<Nanos>> {
    proptest::option::of((0..most_ms).prop_map(Nanos::from_millis))
}

fn any_shape() -> impl Strategy<Value = Shape> {
    let cuts = (any_span(2_000), any_span(4_000), any_span(300), any_span(3_000));
    let tokens = (proptest::option::of(1..300_u32), proptest::option::of(1..300_u32));
    let factor = (1..5_000_u32).prop_map(|factor| speed(&format!("{}", f64::from(factor) / 100.0)));
    (cuts, proptest::option::of(0..60_u64), tokens, factor, any::<bool>()).prop_map(
        |((from, to, max_gap, duration), limit, tokens, speed, closed_loop)| Shape {
            from,
            to,
            speed,
            max_gap,
            limit,
            duration,
            max_input_tok: tokens.0,
            max_output_tok: tokens.1,
            closed_loop,
            server_length: None,
        },
    )
}

/// A trace of up to 60 rows within 5 s, some with sessions, in order unless `sorted` is false.
fn any_trace(sorted: bool) -> impl Strategy<Value = Vec<Request>> {
    let row = (0..5_000_000_000_u64, 0..6_u32, 0..500_u32, 0..500_u32);
    proptest::collection::vec(row, 0..60).prop_map(move |mut rows| {
        if sorted {
            rows.sort_by_key(|row| row.0);
        }
        let request =
            |(row, (at, session, input_tok, output_tok)): (usize, (u64, u32, u32, u32))| {
                let session = (session < 4).then(|| Arc::from(session.to_string()));
                let row = row as u64;
                Request {
                    row,
                    at: Nanos(at),
                    input_tok,
                    output_tok: Some(output_tok),
                    session,
                    ..Request::default()
                }
            };
        rows.into_iter().enumerate().map(request).collect()
    })
}

/// The rows of the window, found the slow way: by looking up every session's first row.
fn window(trace: &[Request], shape: &Shape) -> Vec<u64> {
    let start = |request: &Request| {
        let same = |other: &&Request| other.session == request.session;
        match request.session {
            Some(_) => trace.iter().find(same).expect("the row itself").at,
            None => request.at,
        }
    };
    let inside =
        |at: Nanos| at >= shape.from.unwrap_or_default() && at < shape.to.unwrap_or(Nanos::MAX);
    trace.iter().filter(|request| inside(start(request))).map(|request| request.row).collect()
}

proptest! {
    #[test]
    fn plans_are_sorted_complete_and_within_their_bounds(
        trace in any_trace(true),
        shape in any_shape(),
    ) {
        let mut plan = plan(trace.iter().cloned().map(Row::Ok), &shape);
        let planned: Vec<Planned> = plan.by_ref().map(|row| row.expect("no errors here")).collect();
        let facts = plan.read_rest().expect("no errors here").clone();
        prop_assert!(planned.is_sorted_by_key(|planned| planned.due));
        prop_assert!(planned.iter().enumerate().all(|(i, planned)| planned.index == i as u64));
        prop_assert_eq!(facts.rows, planned.len() as u64);
        prop_assert_eq!(facts.rows + facts.left_out + facts.past_end, trace.len() as u64);
        // Nothing but a beginning of the window, and all of it unless an end is named.
        let inside = window(&trace, &shape);
        let rows: Vec<u64> = planned.iter().map(|planned| planned.request.row).collect();
        prop_assert_eq!(&rows[..], &inside[..rows.len()]);
        prop_assert_eq!(facts.past_end, (inside.len() - rows.len()) as u64);
        prop_assert_eq!(facts.past_end > 0 && rows.len() as u64 != shape.limit.unwrap_or(u64::MAX),
            facts.end == End::Duration);
        let mut before = Nanos::ZERO;
        for planned in &planned {
            let Some(due) = planned.due else { prop_assert!(shape.closed_loop); continue };
            prop_assert!(due < shape.duration.unwrap_or(Nanos::MAX));
            prop_assert!(due.since(before) <= shape.max_gap.unwrap_or(Nanos::MAX));
            before = due;
        }
        let sum: u64 = planned.iter().map(|planned| u64::from(planned.request.input_tok)).sum();
        prop_assert_eq!(facts.input_tok, sum);
    }

    #[test]
    fn without_a_cap_every_due_time_is_its_trace_time_scaled(
        trace in any_trace(true),
        shape in any_shape(),
    ) {
        let shape = Shape { max_gap: None, closed_loop: false, ..shape };
        for planned in plan(trace.iter().cloned().map(Row::Ok), &shape) {
            let planned = planned.expect("no errors here");
            let span = planned.request.at.since(shape.from.unwrap_or_default());
            prop_assert_eq!(planned.due, Some(shape.speed.shorten(span)));
        }
    }

    #[test]
    fn whatever_comes_time_never_goes_back(trace in any_trace(false), shape in any_shape()) {
        let rows = plan(trace.into_iter().map(Row::Ok), &shape);
        let due: Vec<_> = rows.map(|row| row.expect("no errors here").due).collect();
        prop_assert!(due.is_sorted());
    }
}
