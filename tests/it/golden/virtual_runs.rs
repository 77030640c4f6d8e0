//! Runs in virtual time, where every figure is exact: rows, figures and the page for people.

use underfire::lab::{self, Setup};
use underfire::record::csv::RowWriter;
use underfire::replay::Mode;
use underfire::replay::drain::Drain;
use underfire::report::{self, RunFacts};
use underfire::schedule::{self, Planned, Shape};
use underfire::sim;
use underfire::trace::Request;
use underfire::trace::read::{self, Input, ReadOptions};
use underfire::units::Nanos;
use underfire::workload;

use super::{MIXED, WORKLOAD, hold};
use crate::faults::fixed;
use crate::program::Place;

/// The plan of a source.
fn plan(name: &str, text: &str, closed_loop: bool) -> Vec<Planned> {
    let place = Place::new();
    place.write(name, text);
    let shape = Shape { closed_loop, ..Shape::default() };
    let path = place.path(name);
    if path.extension().is_some_and(|ending| ending == "toml") {
        let workload = workload::load(&path).expect("a workload");
        let rows = workload.rows(0).map(Ok::<Request, std::convert::Infallible>);
        return schedule::plan(rows, &shape).map(|row| row.expect("a row")).collect();
    }
    let trace = read::open(Input::File(path), ReadOptions::default()).expect("a trace");
    let rows = trace.rows().expect("rows");
    schedule::plan(rows, &shape).map(|row| row.expect("a row")).collect()
}

/// Everything that comes of it, in one text.
fn written(plan: Vec<Planned>, setup: &Setup) -> String {
    let outcome = lab::replay(plan.into_iter(), setup).expect("a run");
    let mut rows = Vec::new();
    let mut file = RowWriter::new(&mut rows, false).expect("memory");
    outcome.rows.iter().for_each(|row| file.write(row).expect("memory"));
    file.flush().expect("memory");
    drop(file);
    let mut summary = Vec::new();
    report::write_summary(&outcome.summary, &mut summary).expect("memory");
    let facts =
        RunFacts { name: "golden".to_owned(), target: "sim".to_owned(), ..RunFacts::default() };
    let text = |bytes| String::from_utf8(bytes).expect("text");
    format!(
        "--- requests.csv\n{}--- summary.csv\n{}--- page\n{}",
        text(rows),
        text(summary),
        report::render(&outcome.summary, &facts, false)
    )
}

#[test]
fn virtual_runs_are_the_same_to_the_byte() {
    let jittery = sim::Settings { jitter: 0.2, seed: 3, ..sim::Settings::default() };
    let closed = Mode::Closed { slots: 2, ramp: Nanos::ZERO, until: Nanos::MAX };
    let capped = Mode::Capped { slots: 2, last_due: Some(Nanos::from_millis(1_250)) };
    let cut = Drain::After(Nanos::from_millis(100));
    let plain = Setup::chat(fixed(&[]));
    for (name, is_closed, setup) in [
        ("virtual_open", false, plain.clone()),
        ("virtual_closed", true, Setup { mode: closed, ..plain.clone() }),
        ("virtual_capped", false, Setup { mode: capped, ..plain.clone() }),
        ("virtual_cut", false, Setup { drain: cut, warmup: Nanos::from_millis(20), ..plain }),
    ] {
        hold(&format!("{name}.txt"), &written(plan("t.csv", MIXED, is_closed), &setup));
    }
    hold("virtual_workload.txt", &written(plan("w.toml", WORKLOAD, false), &Setup::chat(jittery)));
}
