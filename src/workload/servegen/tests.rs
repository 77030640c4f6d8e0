//! Folders of our own making, and the public ones where a checkout has them beside it.

use std::collections::HashMap;

use super::*;

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

const LENGTHS: &str = r#"{"0": {"input_tokens": "{}", "output_tokens": "{}", "reason_ratio": "{}"},
    "600": {"input_tokens": "{10: 0.5, 20: 0.5}", "output_tokens": "{1: 0.5, 9: 0.5}", "reason_ratio": "{0.5: 1.0}"}}"#;
/// CRLF, no last line break, an idle window.
const RATES: &str = "0,0,0,,0,0\r\n600,2.0,1.1,Gamma,0.5,99\r\n1200,0.5,1,Weibull,0.7,1";

#[test]
fn windows_hold_exactly_their_rate_and_lengths_are_drawn_apart() {
    let folder = folder(&[
        ("chunk-3-trace.csv", RATES),
        ("chunk-3-dataset.json", LENGTHS),
        ("chunk-12-trace.csv", "600,1,1,,0,0\r\n1200,0,0,,0,0"),
        ("chunk-12-dataset.json", LENGTHS),
        ("chunk-20-trace.csv", "600,1.0,1,,0,0"),
    ]);
    assert!(is_servegen(folder.path()));
    let source = load(folder.path()).unwrap();
    let rows: Vec<Request> = source.rows(7).collect();
    assert_eq!(rows.len(), 1_200 + 300 + 600);
    assert!(rows.is_sorted_by_key(|row| row.at));
    assert!(rows.iter().enumerate().all(|(place, row)| row.row == place as u64));
    let count = |name: &str, from: u64, to: u64| {
        let within = |row: &&Request| {
            row.class.as_deref() == Some(name)
                && row.at >= Nanos::from_secs(from)
                && row.at < Nanos::from_secs(to)
        };
        rows.iter().filter(within).count()
    };
    assert_eq!([count("chunk-3", 600, 1200), count("chunk-3", 1200, 1800)], [1_200, 300]);
    assert_eq!(count("chunk-12", 600, 1200), 600);
    // Four pairs of lengths, each in a quarter of the rows.
    let mut pairs: HashMap<(u32, u32), u32> = HashMap::new();
    for row in &rows {
        *pairs.entry((row.input_tok, row.output_tok.unwrap())).or_default() += 1;
    }
    assert!(
        pairs.len() == 4 && pairs.values().all(|count| (450..600).contains(count)),
        "{pairs:?}"
    );
    let said = source.notices().join("\n");
    assert!(said.contains("1 clients have no lengths") && said.contains("22.2%"), "{said}");
    assert!(said.contains("not replayed: reason_ratio"), "{said}");
    assert!(source.rows(7).zip(&rows).all(|(a, b)| (a.at, a.input_tok) == (b.at, b.input_tok)));
    assert!(source.rows(8).zip(&rows).any(|(a, b)| a.at != b.at));
}

#[test]
fn bad_files_say_where_and_what() {
    let check = |rates: &str, lengths: &str, parts: &[&str]| {
        let folder = folder(&[("chunk-1-trace.csv", rates), ("chunk-1-dataset.json", lengths)]);
        let message = load(folder.path()).unwrap_err().to_string();
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    };
    check("0,1,1,Gamma,1", LENGTHS, &["chunk-1-trace.csv, line 1", "5 fields", "write six"]);
    check("0,1,1,Pareto,1,1", LENGTHS, &["`pattern`", "`Pareto`", "Gamma, Weibull"]);
    check("0,1,1,Gamma,0,1", LENGTHS, &["`shape`"]);
    check("0,x,1,Gamma,1,1", LENGTHS, &["`rate`", "`x`"]);
    check("600,1,1,,0,0\n0,1,1,,0,0", LENGTHS, &["line 2", "`start_s`", "sort"]);
    check("0,99999,1,,0,0", LENGTHS, &["`rate`", "requests in one window"]);
    check(RATES, "{\"0\": 5}", &["chunk-1-dataset.json, line 1"]);
    check(RATES, "{\"0\": {\"input_tokens\": \"{5}\"}}", &["window `0`", "`input_tokens`", "`5`"]);
    check(RATES, "{\"x\": {}}", &["window `x`", "whole second"]);
    check(RATES, "{}", &["holds no client"]);
    assert!(load(Path::new("/nowhere")).unwrap_err().to_string().contains("/nowhere"));
}

#[test]
fn public_clients_come_at_their_recorded_rates() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/traces/servegen");
    for (name, clients, requests) in
        [("reason/deepseek-r1", 5, 386_601_u64), ("multimodal/mm-image", 4, 347_643)]
    {
        let folder = path.join(name);
        if !folder.exists() {
            return;
        }
        let source = load(&folder).unwrap();
        let mut classes: HashMap<Arc<str>, u64> = HashMap::new();
        let mut count = 0;
        let mut last = Nanos::ZERO;
        for row in source.rows(0).take(5_000) {
            *classes.entry(row.class.unwrap()).or_default() += 1;
            count += 1;
            last = row.at;
        }
        assert_eq!((source.clients.len(), source.requests()), (clients, requests), "{name}");
        // What the windows up to the last row hold.
        let windows = source.clients.iter().flat_map(|client| &client.windows);
        let (before, with) = windows.fold((0, 0), |(before, with), window| {
            let of = |is: bool| if is { window.requests } else { 0 };
            let (end, start) = (Nanos::from_secs(window.end_s), Nanos::from_secs(window.start_s));
            (before + of(end <= last), with + of(start <= last))
        });
        assert!(count == 5_000 && before <= count && count <= with, "{before} {count} {with}");
        assert!(!classes.is_empty());
    }
}
