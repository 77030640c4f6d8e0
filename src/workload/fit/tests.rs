//! What is fitted gives back what was there.

use std::convert::Infallible;

use super::*;

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
