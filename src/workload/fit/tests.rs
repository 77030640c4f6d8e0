//! What is fitted gives back what was there.

use std::convert::Infallible;

use super::*;
use crate::trace::Prefix;

/// The rows of a workload as a trace.
fn rows(text: &str, count: usize) -> Vec<Result<Request, Infallible>> {
    let workload = Workload::parse(text, "x.toml").unwrap_or_else(|error| panic!("{error}"));
    workload.rows(3).take(count).map(Ok).collect()
}

fn fitted(text: &str, count: usize) -> Fit {
    fit(rows(text, count).into_iter(), "a trace").unwrap_or_else(|error| panic!("{error}"))
}

const LENGTHS: &str = "[input]\ndistribution = \"lognormal\"\nmu = 6\nsigma = 1\n\
    [output]\ndistribution = \"exponential\"\nmean = 200\n";

#[test]
fn a_steady_stream_stays_one() {
    let text = format!("[arrival]\nprocess = \"poisson\"\nrate = 8\n{LENGTHS}");
    let fit = fitted(&text, 6_000);
    assert!(
        fit.text.contains("process = \"poisson\"") && !fit.text.contains("envelope"),
        "{}",
        fit.text
    );
    assert!(
        fit.report.iter().any(|line| line.starts_with("prompt tokens: Kolmogorov")),
        "{:?}",
        fit.report
    );
    let again = Workload::parse(&fit.text, "fit.toml").expect("a workload");
    assert_eq!(again.name(), "a trace");
    let mean = again.rows(0).take(4_000).map(|row| f64::from(row.output_tok.unwrap())).sum::<f64>()
        / 4_000.0;
    assert!((mean / 200.0 - 1.0).abs() < 0.08, "{mean}");
}

#[test]
fn bursts_are_found() {
    let text = format!(
        "[arrival]\nprocess = \"poisson\"\nrate = 10\n\
         [arrival.bursts]\nsize = {{ distribution = \"fixed\", requests = 80 }}\n\
         off = {{ distribution = \"fixed\", seconds = 40 }}\n{LENGTHS}"
    );
    let fit = fitted(&text, 4_000);
    // ln 80 = 4.382; ln 40 = 3.689.
    assert!(fit.text.contains("[arrival.bursts]"), "{}", fit.text);
    assert!(fit.text.contains("mu = 4.382") && fit.text.contains("mu = 3.689"), "{}", fit.text);
}

#[test]
fn reuse_and_sessions_come_back() {
    let tree = format!(
        "[arrival]\nprocess = \"poisson\"\nrate = 5\n{LENGTHS}\
         [prefix]\nreuse = 0.5\nage = {{ distribution = \"fixed\", requests = 20 }}\n\
         [[prefix.shared]]\ntokens = 32\n"
    );
    let fit = fitted(&tree, 3_000);
    let (_, reuse) = fit.text.split_once("reuse = ").expect("a tree");
    let reuse: f64 = reuse.lines().next().and_then(|line| line.parse().ok()).expect("a number");
    assert!((0.47..0.55).contains(&reuse), "{reuse}");
    assert!(fit.text.contains("[[prefix.shared]]\ntokens = 32"), "{}", fit.text);
    let sessions = format!(
        "[arrival]\nprocess = \"poisson\"\nrate = 1\n{LENGTHS}\
         [sessions]\nturns = {{ distribution = \"geometric\", mean = 4 }}\n\
         new = {{ distribution = \"fixed\", tokens = 30 }}\nanswers = false\n\
         [[sessions.think]]\ndistribution = \"fixed\"\nseconds = 2.5\n"
    );
    let fit = fitted(&sessions, 3_000);
    assert!(fit.text.contains("[sessions.turns]"), "{}", fit.text);
    assert!(
        fit.text.contains("tokens = 30\n") && fit.text.contains("seconds = 2.5\n"),
        "{}",
        fit.text
    );
}

/// Blocks of 16 tokens for whole prompts: those of the row, then its session's own, or the row's where
/// nothing is repeated.
fn blocked(row: &mut Request, repeats: bool) {
    let session: u64 = row.session.as_ref().map_or(0, |own| own.parse().expect("a number"));
    let scope = (session + 1) << 32 | if repeats { 0 } else { row.row << 48 };
    let mut blocks = row.prefix.take().map_or(Vec::new(), |own| own.blocks.into_vec());
    blocks.extend((blocks.len()..row.input_tok as usize / 16).map(|at| scope + at as u64));
    row.prefix = Some(Box::new(Prefix { blocks: blocks.into(), block_tok: 16 }));
}

const SESSIONS: &str = "[arrival]\nprocess = \"poisson\"\nrate = 0.5\n\
    [input]\ndistribution = \"uniform\"\nmin = 500\nmax = 1500\n\
    [output]\ndistribution = \"exponential\"\nmean = 200\n\
    [sessions]\nturns = { distribution = \"geometric\", mean = 4 }\n\
    new = { distribution = \"exponential\", mean = 300 }\nanswers = false\n\
    [[sessions.think]]\ndistribution = \"exponential\"\nmean = 2\n\
    [prefix]\n[[prefix.shared]]\ntokens = 320\n";

/// The figure in the line of the report that begins with `part`.
fn figure(fit: &Fit, part: &str) -> f64 {
    let line = fit.report.iter().find(|line| line.starts_with(part));
    let line = line.unwrap_or_else(|| panic!("{part}: {:?}", fit.report));
    line.split_whitespace().last().and_then(|word| word.parse().ok()).expect("a number")
}

#[test]
fn every_part_of_sessions_comes_back() {
    let mut rows = rows(SESSIONS, 8_000);
    rows.iter_mut().flatten().for_each(|row| blocked(row, true));
    let fit = fit(rows.into_iter(), "x").expect("it fits");
    for part in [
        "prompt tokens of all turns",
        "prompt tokens of first turns",
        "completion tokens",
        "turns of a session: ",
        "tokens that a turn adds",
        "pauses",
    ] {
        let distance = figure(&fit, part);
        assert!(distance < 0.05, "{part}: {distance}");
    }
    assert!((figure(&fit, "turns of a session, mean") / 4.0 - 1.0).abs() < 0.1, "{:?}", fit.report);
    assert!(fit.text.contains("[[prefix.shared]]\ntokens = 320\n"), "{}", fit.text);
    assert!(!fit.text.contains("[[class]]"), "one kind of session needs no classes");
    let missed = |line: &&String| line.contains("above") || line.contains("blocks seen before");
    assert_eq!(fit.warnings.iter().find(missed), None);
}

#[test]
fn sessions_that_the_model_cannot_carry_are_warned_of() {
    let mut rows = rows(SESSIONS, 800);
    for row in rows.iter_mut().flatten() {
        // All that is new comes with the second turn, and turns have no more than a system prompt in common.
        row.input_tok = 200 + row.turn.map_or(0, |turn| turn + if turn > 1 { 2_000 } else { 0 });
        blocked(row, false);
    }
    let fit = fit(rows.into_iter(), "x").expect("it fits");
    let all = fit.warnings.join("\n");
    for part in ["prompt tokens of all turns", "is above 0.05", "blocks seen before are 0.18"] {
        assert!(all.contains(part) && fit.text.contains(part), "{part}: {all}");
    }
}

#[test]
fn long_sessions_and_short_ones_become_classes() {
    let mut kinds = rows(
        &SESSIONS.replace(
            "turns = { distribution = \"geometric\", mean = 4 }",
            "turns = { distribution = \"fixed\", turns = 30 }",
        ),
        6_000,
    );
    let short = rows(
        &SESSIONS
            .replace("min = 500\nmax = 1500", "min = 30000\nmax = 40000")
            .replace("rate = 0.5", "rate = 5"),
        6_000,
    );
    kinds.extend(short.into_iter().flatten().map(|row| {
        Ok(Request { session: row.session.map(|own| format!("short {own}").into()), ..row })
    }));
    kinds.sort_by_key(|row| row.as_ref().map(|row| row.at).ok());
    let fit = fit(kinds.into_iter(), "x").expect("it fits");
    assert!(fit.text.contains("[[class]]"), "{}", fit.text);
    let distance = figure(&fit, "prompt tokens of all turns");
    assert!(distance < 0.05, "{distance}");
    assert!(Workload::parse(&fit.text, "fit.toml").is_ok());
}

#[test]
fn a_session_is_cut_where_its_prompt_falls_back() {
    let mut turns = RecordedTurns::default();
    let mut starts = Vec::new();
    for (turn, input_tok) in [100, 300, 290, 120, 150].into_iter().enumerate() {
        let think = (turn > 0).then_some(crate::units::Nanos(5_000_000));
        let session = Some("a".into());
        starts.push(turns.add(&Request { input_tok, session, think, ..Request::default() }));
    }
    assert_eq!(starts, [true, false, false, true, false]);
    let parts = sessions::Parts::of(turns.stretches());
    assert_eq!(parts.turns.sorted(), [(2, 1), (3, 1)]);
    assert_eq!(parts.new_tok.sorted(), [(1, 1), (30, 1), (200, 1)]);
    assert!(turns.warnings().join("\n").contains("1 later turns say less"));
}

#[test]
fn what_is_not_carried_is_said() {
    let mut rows = rows(&format!("[arrival]\nprocess = \"constant\"\nrate = 100\n{LENGTHS}"), 500);
    for (at, row) in rows.iter_mut().enumerate() {
        let row = row.as_mut().expect("a row");
        row.class = Some(if at % 2 == 0 { "a" } else { "b" }.into());
        row.at.0 -= row.at.0 % 3_000_000_000;
    }
    let fit = fit(rows.into_iter(), "x").expect("it fits");
    let all = fit.warnings.join("\n");
    for part in ["rounded", "are short for an envelope", "2 classes are fitted together"] {
        assert!(all.contains(part) && fit.text.contains(part), "{part}: {all}");
    }
    let few =
        super::fit(std::iter::empty::<Result<Request, Infallible>>(), "x").expect_err("nothing");
    assert!(few.to_string().contains("too few"), "{few}");
}
