//! `--max-in-flight`: rows wait for a slot, from due, and none is lost.

use underfire::lab::{self, Setup};
use underfire::record::Outcome;
use underfire::replay::Mode;
use underfire::replay::drain::Drain;
use underfire::units::Nanos;

use crate::faults::{fixed, plan};
use crate::program::{Place, small_trace};

#[expect(clippy::unnecessary_wraps, reason = "cells of a row are optional")]
fn ms(at: u64) -> Option<Nanos> {
    Some(Nanos::from_millis(at))
}

#[test]
fn a_row_waits_from_due_and_the_wait_is_lag() {
    // Each answer takes 450 ms; a row is due every 100 ms, and one may be in flight.
    let mode = Mode::Capped { slots: 1, last_due: ms(400) };
    let setup = Setup { mode, ..Setup::chat(fixed(&[])) };
    let outcome = lab::replay(plan(5, 100), &setup).expect("a run");
    assert_eq!(outcome.truth.len(), 5);
    for (row, at) in outcome.rows.iter().zip(0u64..) {
        assert_eq!(row.row, at, "in the order of the schedule");
        let lag = at * 350;
        assert_eq!((row.scheduled, row.lag), (ms(at * 100), ms(lag)));
        assert_eq!((row.ttft, row.ttft_send), (ms(lag + 200), ms(200)), "counted from due");
        assert_eq!(row.outcome, Outcome::Ok);
    }
}

#[test]
fn a_cap_that_is_never_reached_changes_nothing() {
    let capped = Mode::Capped { slots: 5, last_due: None };
    let run = |mode| {
        let setup = Setup { mode, ..Setup::chat(fixed(&[])) };
        lab::replay(plan(50, 100), &setup).expect("a run").rows
    };
    assert_eq!(run(capped), run(Mode::Open), "450 ms each, so five at the most");
}

#[test]
fn rows_that_the_end_of_the_run_finds_waiting_are_unsent() {
    // The first two hold both slots and never go on.
    let mode = Mode::Capped { slots: 2, last_due: ms(900) };
    for (drain, ends) in [
        (Drain::After(Nanos::from_secs(5)), 5_900..6_400),
        (Drain::Quiet(Nanos::from_secs(60)), 60_200..61_400),
    ] {
        let setup = Setup { mode, drain, ..Setup::chat(fixed(&["stall=1h"])) };
        let outcome = lab::replay(plan(10, 100), &setup).expect("a run that ends");
        assert_eq!((outcome.rows.len(), outcome.truth.len()), (10, 2));
        for row in &outcome.rows {
            let sent = row.row < 2;
            let expect = if sent { Outcome::Incomplete } else { Outcome::Unsent };
            assert_eq!(row.outcome, expect, "{row:?}");
            assert_eq!(row.scheduled, ms(row.row * 100), "each has its own due time");
            if sent {
                let end = (row.scheduled.expect("due") + row.close.expect("an end")).0 / 1_000_000;
                assert!(ends.contains(&end), "cut at {end} ms under {drain:?}");
            } else {
                let error = row.error.as_deref().unwrap_or("");
                assert!(error.contains("--max-in-flight"), "{error}");
            }
        }
    }
}

#[test]
fn the_program_keeps_its_number_over_all_workers() {
    let place = Place::new();
    place.write("t.csv", small_trace(40, 2));
    let run =
        ["run", "t.csv", "--out", "run", "--max-in-flight", "3", "--workers", "2", "--seed", "1"];
    place.run(&run).expect(0);
    let rows = place.rows("run");
    assert_eq!(rows.len(), 40);
    let span = |row: &underfire::record::Row| {
        let due = row.scheduled.expect("a due time");
        (due + row.lag.expect("sent"), due + row.close.expect("an end"))
    };
    let spans: Vec<_> = rows.iter().map(span).collect();
    for (start, _) in &spans {
        let open = spans.iter().filter(|(from, to)| from <= start && start < to).count();
        assert!(open <= 3, "{open} in flight at {start}");
    }
    assert!(rows.iter().all(|row| row.outcome == Outcome::Ok), "{rows:#?}");
    // 40 answers of 50 ms, three at a time, all due within 78 ms.
    assert!(rows.iter().any(|row| row.lag > ms(200)), "the wait is in the lag");
    place.run(&["run", "t.csv", "--max-in-flight", "3", "--concurrency", "3"]).expect(2);
}
