//! The rows of a workload: where they stand, how long they are, and that they stay the same.

mod mistakes;

use super::*;

const CHAT: &str = include_str!("../../workloads/chat.toml");
const CODE: &str = include_str!("../../workloads/code.toml");
const REASONING: &str = include_str!("../../workloads/reasoning.toml");

/// A workload of parts, without an end.
fn made(arrival: &str, input: &str) -> Workload {
    let output = "distribution = \"fixed\"\ntokens = 7";
    let text = format!("[arrival]\n{arrival}\n[input]\n{input}\n[output]\n{output}\n");
    Workload::parse(&text, "made.toml").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

const FIXED: &str = "distribution = \"fixed\"\ntokens = 5";

#[test]
fn presets_parse_and_end() {
    for (text, file) in [(CHAT, "chat"), (CODE, "code"), (REASONING, "reasoning")] {
        let workload = Workload::parse(text, &format!("workloads/{file}.toml")).expect(file);
        assert_eq!(workload.name(), file);
        assert!(workload.has_end());
        let rows: Vec<_> = workload.rows(0).collect();
        assert!(rows.len() > 50 && rows.len() < 400, "{file}: {}", rows.len());
        assert!(rows.is_sorted_by_key(|row| row.at));
        assert!(rows.iter().enumerate().all(|(i, row)| row.row == i as u64));
        assert!(rows[rows.len() - 1].at < workload.duration.expect("a preset ends"));
    }
}

#[test]
fn golden_rows() {
    // Held against a second implementation (ChaCha8, sampler and grid written apart from this one).
    // A change here means that every plan under every seed changes: a dependency drifted, or the
    // domain of `draw` has to move on.
    let check = |text: &str, seed: u64, rows: [(u64, u32, u32); 3]| {
        let workload = Workload::parse(text, "x.toml").expect("a preset");
        let got: Vec<_> =
            workload.rows(seed).take(3).map(|r| (r.at.0, r.input_tok, r.output_tok)).collect();
        assert_eq!(got, rows);
    };
    check(CHAT, 0, [(157_132_083, 4072, 143), (259_680_542, 192, 422), (530_206_168, 2985, 163)]);
    check(CODE, 0, [(12_176_600, 5960, 14), (139_521_188, 89, 54), (139_716_265, 5393, 15)]);
    let reasoning =
        [(707_877_422, 203, 1633), (2_120_832_701, 598, 7664), (2_249_384_879, 110, 1120)];
    check(REASONING, 42, reasoning);
}

#[test]
fn a_row_is_the_same_however_many_are_drawn_and_at_any_rate() {
    let lengths = |arrival: &str, n: usize| -> Vec<(u32, u32)> {
        let workload = made(arrival, "distribution = \"lognormal\"\nmu = 5\nsigma = 2");
        workload.rows(9).take(n).map(|row| (row.input_tok, row.output_tok)).collect()
    };
    let slow = lengths("process = \"poisson\"\nrate = 0.1", 500);
    assert_eq!(slow[..20], lengths("process = \"poisson\"\nrate = 0.1", 20));
    assert_eq!(slow, lengths("process = \"gamma\"\nrate = 900\ncv = 3", 500));
    // Doubling a power-of-two rate halves every time, to the rounding of each gap.
    let at = |rate: u32| -> Vec<u64> {
        let arrival = format!("process = \"poisson\"\nrate = {rate}");
        made(&arrival, FIXED).rows(4).take(200).map(|row| row.at.0).collect()
    };
    for (i, (one, two)) in at(1).iter().zip(at(2)).enumerate() {
        assert!(one.abs_diff(2 * two) <= 2 * (i as u64 + 1), "{one} {two}");
    }
}

#[test]
fn constant_arrivals_are_exact() {
    let third = made("process = \"constant\"\nrate = 3", FIXED);
    let at: Vec<u64> = third.rows(0).take(4).map(|row| row.at.0).collect();
    assert_eq!(at, [0, 333_333_333, 666_666_666, 1_000_000_000]);
    // No drift: row 553,000 of 5.53/s stands at 100,000 s to the nanosecond.
    let chat = made("process = \"constant\"\nrate = 5.53", FIXED);
    let row = chat.rows(0).nth(553_000).expect("no end");
    assert_eq!(row.at, Nanos::from_secs(100_000));
}

#[test]
fn ends_are_exclusive_and_the_earlier_wins() {
    let count = |top: &str| {
        let text = format!(
            "{top}\n[arrival]\nprocess = \"constant\"\nrate = 10\n[input]\n{FIXED}\n[output]\n{FIXED}"
        );
        Workload::parse(&text, "x.toml").expect("parses").rows(0).count()
    };
    assert_eq!(count("duration = \"1s\""), 10);
    assert_eq!(count("duration = \"1001ms\""), 11);
    assert_eq!(count("rows = 7"), 7);
    assert_eq!(count("rows = 7\nduration = \"300ms\""), 3);
    let endless = made("process = \"constant\"\nrate = 10", FIXED);
    assert!(!endless.has_end());
    // Without an end it runs until time itself is used up, and then stops.
    let slow = made("process = \"constant\"\nrate = 1e-6", FIXED);
    assert_eq!(slow.rows(0).count(), 18_447);
}

/// Mean and coefficient of variation of the gaps.
fn gaps(workload: &Workload, seed: u64, rows: usize) -> (f64, f64) {
    let at: Vec<u64> = workload.rows(seed).take(rows).map(|row| row.at.0).collect();
    let gaps: Vec<f64> = std::iter::once(at[0])
        .chain(at.windows(2).map(|pair| pair[1] - pair[0]))
        .map(|gap| gap as f64 / 1e9)
        .collect();
    let n = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / n;
    let variance = gaps.iter().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / n;
    (mean, libm::sqrt(variance) / mean)
}

#[test]
fn rate_and_cv_are_those_asked_for() {
    for (arrival, rate, cv) in [
        ("process = \"poisson\"\nrate = 5.53", 5.53, 1.0),
        ("process = \"gamma\"\nrate = 5.53\ncv = 2.0", 5.53, 2.0),
        ("process = \"gamma\"\nrate = 100\ncv = 0.25", 100.0, 0.25),
        ("process = \"gamma\"\nrate = 2.5616\nshape = 0.231", 2.5616, 2.0806),
        ("process = \"weibull\"\nrate = 3\ncv = 1.7", 3.0, 1.7),
        ("process = \"weibull\"\nrate = 3\nshape = 1", 3.0, 1.0),
    ] {
        let (mean, got_cv) = gaps(&made(arrival, FIXED), 11, 10_000);
        // Four standard errors of a mean over 10,000 gaps.
        assert!((mean * rate - 1.0).abs() < 4.0 * cv / 100.0, "{arrival}: rate {}", 1.0 / mean);
        assert!((got_cv / cv - 1.0).abs() < 0.05, "{arrival}: cv {got_cv}");
    }
}

/// Kolmogorov-Smirnov distance between lengths and a distribution function on whole tokens.
fn ks(mut lengths: Vec<u32>, cdf: impl Fn(f64) -> f64) -> f64 {
    lengths.sort_unstable();
    let n = lengths.len() as f64;
    let mut worst: f64 = 0.0;
    for value in lengths.iter().copied().collect::<std::collections::BTreeSet<_>>() {
        let upto = lengths.partition_point(|&length| length <= value) as f64 / n;
        // A length of k stands for everything that rounds to k.
        worst = worst.max((upto - cdf(f64::from(value) + 0.5)).abs());
    }
    worst
}

/// The grid's own distribution function; an atom counts whole from its value on.
fn grid_cdf(grid: &[(f64, f64)], x: f64) -> f64 {
    let right = grid.partition_point(|&(_, tokens)| tokens <= x);
    if right == 0 || right == grid.len() {
        return if right == 0 { 0.0 } else { 1.0 };
    }
    let ((q0, x0), (q1, x1)) = (grid[right - 1], grid[right]);
    q0 + (q1 - q0) * (x - x0) / (x1 - x0)
}

#[test]
fn lengths_follow_their_grids() {
    let grid_of = |text: &str, section: &str| -> Vec<(f64, f64)> {
        // Read a second way, by the words alone.
        let numbers = |key: &str| -> Vec<f64> {
            let (_, tail) = text.split_once(&format!("\n[{section}]")).expect("the section");
            let (_, tail) = tail.split_once(&format!("\n{key} = [")).expect("the key");
            let (list, _) = tail.split_once(']').expect("the end of the list");
            let items = list.split(',').map(str::trim).filter(|item| !item.is_empty());
            items.map(|item| item.parse().expect("a number")).collect()
        };
        numbers("q").into_iter().zip(numbers("tokens")).collect()
    };
    for (text, sections) in
        [(CHAT, &["input", "output"][..]), (CODE, &["input", "output"]), (REASONING, &["output"])]
    {
        let mut workload = Workload::parse(text, "x.toml").expect("a preset");
        workload.duration = None;
        let rows: Vec<_> = workload.rows(5).take(10_000).collect();
        for &section in sections {
            let grid = grid_of(text, section);
            let pick =
                |row: &Request| if section == "input" { row.input_tok } else { row.output_tok };
            let distance = ks(rows.iter().map(pick).collect(), |x| grid_cdf(&grid, x));
            assert!(distance <= 0.02, "{section}: {distance}");
        }
    }
}

#[test]
fn lognormal_uniform_and_clips() {
    let lengths = |input: &str| -> Vec<u32> {
        let workload = made("process = \"poisson\"\nrate = 1", input);
        workload.rows(2).take(10_000).map(|row| row.input_tok).collect()
    };
    let mut lognormal =
        lengths("distribution = \"lognormal\"\nmu = 5.24\nsigma = 1.84\nmax = 57284");
    lognormal.sort_unstable();
    assert!((176..=203).contains(&lognormal[5_000]), "median e^5.24 = 189: {}", lognormal[5_000]);
    assert!((1_700..=2_350).contains(&lognormal[9_000]), "p90 = 1,994: {}", lognormal[9_000]);
    assert_eq!(lognormal[9_999], 57_284);
    assert_eq!(lognormal[0], 1);
    let uniform = lengths("distribution = \"uniform\"\nmin = 3\nmax = 6");
    for value in 3..=6 {
        let n = uniform.iter().filter(|&&length| length == value).count();
        assert!((2_320..2_680).contains(&n), "{value}: {n}");
    }
    assert_eq!(uniform.iter().filter(|&&length| (3..=6).contains(&length)).count(), 10_000);
    let clipped =
        lengths("distribution = \"quantiles\"\nq = [0, 1]\ntokens = [1, 100]\nmin = 40\nmax = 60");
    assert!(clipped.iter().all(|length| (40..=60).contains(length)));
    assert!(clipped.contains(&40) && clipped.contains(&50) && clipped.contains(&60));
}
