//! An hour of chat traffic in virtual time: worker, client, decoder, server and metrics, without a
//! socket. Budget: 60 s on one core for 19,366 requests and 4.1 million tokens (15 µs a token).
//!
//! `cargo bench --bench virtual_hour [-- TRACE]`; without a trace, an hour of `workloads/chat.toml`.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::path::{Path, PathBuf};

use underfire::clock::monotonic;
use underfire::lab::{self, Setup};
use underfire::record::Outcome;
use underfire::schedule::{self, Planned, Shape};
use underfire::trace::read::{self, Input, ReadOptions, TraceError};
use underfire::units::Nanos;
use underfire::{sim, workload};

const BUDGET_S: f64 = 60.0;

fn main() {
    let trace = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let plan = plan(trace.map(PathBuf::from));
    let setup = Setup::chat(sim::Settings::default());
    let start = monotonic();
    let outcome = lab::replay(plan, &setup).expect("the run ends");
    let took = monotonic().since(start).as_secs_f64();

    let check = lab::check(&outcome.rows, Nanos::ZERO, &outcome.truth);
    let ok = outcome.rows.iter().filter(|row| row.outcome == Outcome::Ok).count();
    let tokens: u64 = outcome.rows.iter().filter_map(|row| row.output_tok).sum();
    let virtual_s = outcome.summary.end.map_or(0.0, Nanos::as_secs_f64);
    println!(
        "{} requests, {ok} ok, {tokens} tokens, {virtual_s:.1} s of virtual time",
        outcome.rows.len()
    );
    println!(
        "largest error against the server's log: arrival {:?}, TTFT {:?}, gap p99 {:?}; {} miscounted",
        check.arrival.percentile(100),
        check.ttft.percentile(100),
        check.gap_p99.percentile(100),
        check.miscounted,
    );
    println!(
        "took {took:.1} s (budget {BUDGET_S} s), {:.0} times real time, {:.2} us a token",
        virtual_s / took,
        took * 1e6 / tokens as f64
    );
}

fn plan(trace: Option<PathBuf>) -> Box<dyn Iterator<Item = Planned>> {
    let sorted = "a validated source";
    if let Some(path) = trace {
        let trace = read::open(Input::File(path), ReadOptions::default()).expect("a trace");
        let rows = trace.rows().expect(sorted);
        return Box::new(
            schedule::plan(rows, &Shape::default()).map(move |row| row.expect(sorted)),
        );
    }
    let chat = Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads/chat.toml");
    let text = std::fs::read_to_string(chat).expect("the preset");
    let hour = text.replace("duration = \"30s\"", "duration = \"1h\"");
    let chat = workload::Workload::parse(&hour, "chat.toml").expect("the preset");
    let rows = chat.rows(0).map(Ok::<_, TraceError>);
    Box::new(schedule::plan(rows, &Shape::default()).map(move |row| row.expect(sorted)))
}
