//! What the program writes and says, held to stored copies: every file, plan, page and manifest of a
//! fixed set of commands, one for each command and mode.
//!
//! What is exact is compared to the byte: plans, traces, figures made again, and runs in virtual time.
//! Of a run in real time everything is compared but measured figures, which are masked, and warnings,
//! which depend on the machine. `UNDERFIRE_GOLDEN=write cargo test golden` stores anew.

mod masks;
mod virtual_runs;

use std::path::PathBuf;

use crate::program::{Place, Said};
use masks::{figures, header, masked, plain_cells, shape};

/// Compares a text with its stored copy, or stores it.
#[track_caller]
fn hold(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden").join(name);
    if std::env::var_os("UNDERFIRE_GOLDEN").is_some() {
        std::fs::write(&path, text).expect("a writable folder");
    }
    let stored = std::fs::read_to_string(&path).expect("a stored copy");
    if let Some((line, (is, was))) =
        text.lines().zip(stored.lines()).enumerate().find(|(_, (a, b))| a != b)
    {
        panic!("{name}, line {}:\n was {was}\n is  {is}", line + 1);
    }
    assert_eq!(text.len(), stored.len(), "{name} ends elsewhere:\n{text}");
}

/// What a command said and how it ended, in one text.
fn page(said: &Said) -> String {
    format!("exit {:?}\n--- stdout\n{}--- stderr\n{}", said.code, said.stdout, said.stderr)
}

/// A file of a text of several.
fn part(name: &str, text: &str) -> String {
    format!("--- {name}\n{text}\n")
}

/// Two classes, a session with a pause, prefix blocks, rows out of order and one without output.
const MIXED: &str = "at_s,input_tok,output_tok,session,turn,think_s,class,blocks,block_tok\n\
    0.3,700,4,,,,code,1 2,350\n0,40,3,a,1,,chat,1,40\n0.01,20,0,,,,chat,,\n\
    0.0205,100,2,a,2,0.05,chat,1,40\n0.4,90,5,,,,code,1 3,45\n0.4,91,6,,,,chat,,\n\
    1.25,64,7,b,1,,chat,,\n";

const WORKLOAD: &str = "duration = \"20s\"\n[arrival]\nprocess = \"gamma\"\nrate = 5.0\ncv = 2.0\n\
    [input]\ndistribution = \"lognormal\"\nmu = 5.0\nsigma = 0.6\nmax = 900\n\
    [output]\ndistribution = \"uniform\"\nmin = 2\nmax = 9\n";

/// Commands of no load, each exact to the last byte. A second word in `files` is a file they write.
#[test]
fn plans_and_traces_are_the_same_to_the_byte() {
    let place = Place::new();
    place.write("mixed.csv", MIXED).write("w.toml", WORKLOAD);
    place.write("bad.csv", "at_s,input_tok,output_tok\n0,1,x\n2,2,3\n");
    let dry =
        |more: &[&'static str]| [&["run"], more, &["--dry-run", "--plan", "plan.csv"]].concat();
    for (name, arguments, file) in [
        ("plan_open", dry(&["mixed.csv"]), Some("plan.csv")),
        (
            "plan_failed_kept",
            dry(&["mixed.csv", "--failed", "keep", "--max-gap", "200ms"]),
            Some("plan.csv"),
        ),
        (
            "plan_speed",
            dry(&["mixed.csv", "--speed", "2", "--from", "20ms", "--limit", "4"]),
            Some("plan.csv"),
        ),
        ("plan_closed", dry(&["mixed.csv", "--concurrency", "2"]), Some("plan.csv")),
        ("plan_capped", dry(&["mixed.csv", "--max-in-flight", "2"]), Some("plan.csv")),
        (
            "plan_repeat",
            dry(&["mixed.csv", "--repeat", "2", "--max-input-tok", "64"]),
            Some("plan.csv"),
        ),
        ("plan_workload", dry(&["w.toml"]), Some("plan.csv")),
        ("plan_seed", dry(&["w.toml", "--seed", "7", "--limit", "20"]), Some("plan.csv")),
        ("plan_thin", dry(&["w.toml", "--rate", "2", "--scale", "thin"]), Some("plan.csv")),
        ("plan_clone", dry(&["w.toml", "--rate", "7", "--scale", "clone"]), Some("plan.csv")),
        (
            "plan_per_client",
            dry(&["mixed.csv", "--rate", "4", "--scale", "per-client"]),
            Some("plan.csv"),
        ),
        ("plan_dequantise", dry(&["mixed.csv", "--dequantise", "uniform"]), Some("plan.csv")),
        ("inspect", vec!["trace", "inspect", "mixed.csv"], None),
        ("inspect_json", vec!["trace", "inspect", "mixed.csv", "--json"], None),
        (
            "convert",
            vec!["trace", "convert", "mixed.csv", "out.csv", "--speed", "2"],
            Some("out.csv"),
        ),
        ("convert_jsonl", vec!["trace", "convert", "mixed.csv", "out.jsonl"], Some("out.jsonl")),
        ("generate", vec!["trace", "generate", "w.toml", "made.csv"], Some("made.csv")),
        ("fit", vec!["trace", "fit", "made.csv", "fitted.toml"], Some("fitted.toml")),
        ("lint", vec!["trace", "lint", "mixed.csv"], None),
        ("lint_faults", vec!["trace", "lint", "bad.csv", "--json"], None),
        ("bad_row", vec!["run", "bad.csv", "--dry-run"], None),
        ("help_run", vec!["run", "--help"], None),
        ("help_calibrate", vec!["calibrate", "--help"], None),
        ("help_watch", vec!["watch", "--help"], None),
        ("help_sim", vec!["sim", "--help"], None),
    ] {
        let mut text = page(&place.run(&arguments));
        if let Some(file) = file {
            text += &part(file, &place.read(file));
        }
        hold(&format!("{name}.txt"), &text);
    }
}

/// The sample run that the repository shows.
#[test]
fn figures_made_again_are_the_same_to_the_byte() {
    let place = Place::new();
    std::fs::create_dir(place.path("run")).expect("a writable folder");
    let sample = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("results/sample");
    for file in ["requests.csv", "intervals.csv", "run.json"] {
        std::fs::copy(sample.join(file), place.path("run").join(file)).expect("a stored run");
    }
    let said = place.run(&["report", "run"]);
    hold(
        "report.txt",
        &format!("{}--- summary.csv\n{}", page(&said), place.read("run/summary.csv")),
    );
    let said = place.run(&["report", "run", "--json"]);
    hold("report_json.txt", &page(&said));
}

/// Runs in real time, one for each mode.
#[test]
fn runs_write_and_say_the_same_but_for_what_they_measure() {
    let place = Place::new();
    place.write("mixed.csv", MIXED).write("w.toml", WORKLOAD);
    for (name, arguments) in [
        ("run_open", &["mixed.csv", "--chunks", "--label", "a=b", "--warmup", "15ms"][..]),
        ("run_closed", &["mixed.csv", "--concurrency", "2", "--prime", "2"]),
        ("run_capped", &["mixed.csv", "--max-in-flight", "1", "--retries", "2"]),
        ("run_workload", &["w.toml", "--speed", "10", "--json", "--prompt", "Why?"]),
        ("run_cut", &["mixed.csv", "--drain", "0s", "--max-output-tok", "4", "--quiet"]),
    ] {
        let out = name;
        let said = place.run(&[&["run"], arguments, &["--out", out, "--workers", "1"]].concat());
        let mut text = masked(&page(&said));
        let file = |file: &str| place.read(&format!("{out}/{file}"));
        text += &part("requests.csv", &plain_cells(&file("requests.csv")));
        text += &part("summary.csv", &figures(&file("summary.csv")));
        for name in ["intervals.csv", "timeline.csv", "server.csv", "truth.csv"] {
            text += &part(name, &header(&file(name)));
        }
        if place.path(&format!("{out}/chunks.csv")).exists() {
            text += &part("chunks.csv", &header(&file("chunks.csv")));
        }
        text += &part("run.json", &shape(&file("run.json")));
        hold(&format!("{name}.txt"), &text);
    }
}

/// The one other command that sends load.
#[test]
fn a_calibration_says_the_same_but_for_what_it_measures() {
    let place = Place::new();
    let said = place.run(&[
        "calibrate",
        "--streams",
        "10",
        "--duration",
        "300ms",
        "--gap",
        "20ms",
        "--workers",
        "1",
        "--json",
    ]);
    hold("calibrate.txt", &shape(&said.expect(0).stdout));
}
