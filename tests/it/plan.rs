//! Dry runs: the same plan, byte for byte, whatever will send it.

use crate::program::{Place, small_trace};

const WORKLOAD: &str = "duration = \"20s\"\n[arrival]\nprocess = \"gamma\"\nrate = 10\ncv = 3\n\
    [input]\ndistribution = \"lognormal\"\nmu = 6.6\nsigma = 1.0\nmax = 4000\n\
    [output]\ndistribution = \"quantiles\"\nq = [0, 0.5, 1]\ntokens = [1, 100, 900]\n";

fn plan(place: &Place, arguments: &[&str]) -> String {
    let all = [&["run"], arguments, &["--dry-run", "--plan", "plan.csv"]].concat();
    place.run(&all).expect(0);
    place.read("plan.csv")
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let place = Place::new();
    place.write("w.toml", WORKLOAD);
    let first = plan(&place, &["w.toml", "--seed", "7"]);
    assert!(first.lines().count() > 100);
    assert_eq!(first, plan(&place, &["w.toml", "--seed", "7", "--workers", "3"]));
    assert_ne!(first, plan(&place, &["w.toml", "--seed", "8"]));
    let limited = plan(&place, &["w.toml", "--seed", "7", "--limit", "50"]);
    assert!(first.starts_with(&limited), "a limit cuts and changes nothing else");
}

#[test]
fn shaping_options_act_in_their_order() {
    let place = Place::new();
    place.write("t.csv", "at_s,input_tok,output_tok\n0,1,1\n1,2,2\n5,300,3\n9,4,400\n10,5,5\n");
    let due = |arguments: &[&str]| -> Vec<String> {
        plan(&place, &[&["t.csv"], arguments].concat())
            .lines()
            .skip(1)
            .map(|line| line.split(',').nth(4).unwrap_or("").to_owned())
            .collect()
    };
    assert_eq!(due(&["--speed", "2"])[..3], ["0.000000000", "0.500000000", "2.500000000"]);
    assert_eq!(
        due(&["--from", "1s", "--to", "10s"]),
        ["0.000000000", "4.000000000", "8.000000000"]
    );
    let capped = due(&["--speed", "2", "--max-gap", "1s"]);
    assert_eq!(capped, ["0.000000000", "0.500000000", "1.500000000", "2.500000000", "3.000000000"]);
    assert_eq!(due(&["--duration", "5s"]).len(), 2, "the end is exclusive");
    assert_eq!(
        due(&["--concurrency", "2"]),
        ["", "", "", "", ""],
        "a closed loop has no due times"
    );
    let clipped = plan(&place, &["t.csv", "--max-input-tok", "100", "--max-output-tok", "50"]);
    let sums: Vec<u64> = [5, 6]
        .into_iter()
        .map(|column| {
            let cells =
                clipped.lines().skip(1).map(|line| line.split(',').nth(column).unwrap_or(""));
            cells.map(|cell| cell.parse::<u64>().expect("tokens")).sum()
        })
        .collect();
    assert_eq!(sums, [1 + 2 + 100 + 4 + 5, 1 + 2 + 3 + 50 + 5]);
}

#[test]
fn a_dry_run_sends_nothing_and_leaves_no_folder() {
    let place = Place::new();
    place.write("t.csv", small_trace(3, 10));
    let said = place.run(&["run", "t.csv", "--dry-run", "--url", "http://127.0.0.1:9"]).expect(0);
    assert!(said.stdout.contains("3 rows"), "{said:?}");
    assert!(!place.path("results").exists());
}

#[test]
fn a_repeated_source_is_one_plan_and_one_run() {
    let place = Place::new();
    place.write("t.csv", small_trace(5, 10));
    let text = plan(&place, &["t.csv", "--repeat", "3"]);
    let cell = |column: usize| -> Vec<String> {
        let cells = text.lines().skip(1).map(|line| line.split(',').nth(column).unwrap_or(""));
        cells.map(str::to_owned).collect()
    };
    assert_eq!(cell(0), (0..15).map(|row| row.to_string()).collect::<Vec<_>>());
    assert_eq!(cell(8), (0..15).map(|row| (row % 5).to_string()).collect::<Vec<_>>());
    for (out, more) in [("open", &[][..]), ("closed", &["--concurrency", "2"])] {
        place.run(&[&["run", "t.csv", "--repeat", "3", "--out", out], more].concat()).expect(0);
        let mut rows: Vec<u64> = place.rows(out).iter().map(|row| row.row).collect();
        rows.sort_unstable();
        assert_eq!(rows, (0..15).collect::<Vec<_>>(), "{out}");
    }
    place.write("w.toml", WORKLOAD.replace("20s", "2s"));
    let once = plan(&place, &["w.toml"]).lines().count() - 1;
    assert_eq!(plan(&place, &["w.toml", "--repeat", "4"]).lines().count() - 1, 4 * once);
    let said = place.run(&["run", "-", "--repeat", "2", "--dry-run"]).expect(2);
    assert!(said.stderr.contains("standard input can be read once only"), "{said:?}");
}
