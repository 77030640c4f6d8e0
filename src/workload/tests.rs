//! The rows of a workload: where they stand, how long they are, and that they stay the same.

mod mistakes;

use super::*;

const CHAT: &str = include_str!("../../workloads/chat.toml");
const CODE: &str = include_str!("../../workloads/code.toml");
const LONG: &str = include_str!("../../workloads/long-context.toml");
const AGENT: &str = include_str!("../../workloads/coding-agent.toml");

/// Every preset, by its file.
const PRESETS: [(&str, &str); 10] = [
    ("batch", include_str!("../../workloads/batch.toml")),
    ("chat", CHAT),
    ("code", CODE),
    ("coding-agent", AGENT),
    ("day", include_str!("../../workloads/day.toml")),
    ("long-context", LONG),
    ("rag", include_str!("../../workloads/rag.toml")),
    ("reasoning", include_str!("../../workloads/reasoning.toml")),
    ("single", include_str!("../../workloads/single.toml")),
    ("stress", include_str!("../../workloads/stress.toml")),
];

/// A workload of parts, without an end.
fn made(arrival: &str, input: &str) -> Workload {
    let output = "distribution = \"fixed\"\ntokens = 7";
    let text = format!("[arrival]\n{arrival}\n[input]\n{input}\n[output]\n{output}\n");
    Workload::parse(&text, "made.toml").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

const FIXED: &str = "distribution = \"fixed\"\ntokens = 5";

#[test]
fn presets_parse_and_end() {
    for (file, text) in PRESETS {
        let workload = Workload::parse(text, &format!("workloads/{file}.toml"));
        let workload = workload.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(workload.name(), file);
        assert!(workload.has_end());
        let rows: Vec<_> = workload.rows(0).take(2_000).collect();
        assert!(rows.len() >= 10, "{file}: {}", rows.len());
        assert!(rows.is_sorted_by_key(|row| row.at), "{file}");
        assert!(rows.iter().enumerate().all(|(i, row)| row.row == i as u64));
        assert!(
            rows.iter().all(|row| row.input_tok > 0 && row.output_tok.is_none_or(|tok| tok > 0))
        );
    }
}

/// The lengths of a preset under other arrivals.
fn with_arrival(text: &str, arrival: &str) -> Workload {
    let lengths = &text[text.find("[input]").expect("a section")..];
    Workload::parse(&format!("[arrival]\n{arrival}\n{lengths}"), "x.toml").expect("a workload")
}

#[test]
fn golden_rows() {
    // Held against a second implementation (ChaCha8, sampler and grid written apart from this one).
    // A change here means that every plan under every seed changes: a dependency drifted, or the
    // domain of `draw` has to move on.
    let check = |text: &str, arrival: &str, rows: [(u64, u32, u32); 3]| {
        let workload = with_arrival(text, arrival);
        let got: Vec<_> = workload
            .rows(0)
            .take(3)
            .map(|r| (r.at.0, r.input_tok, r.output_tok.unwrap()))
            .collect();
        assert_eq!(got, rows);
    };
    let chat = [(157_132_083, 4072, 143), (259_680_542, 192, 422), (530_206_168, 2985, 163)];
    check(CHAT, "process = \"poisson\"\nrate = 5.53", chat);
    let code = [(12_176_600, 5960, 14), (139_521_188, 89, 54), (139_716_265, 5393, 15)];
    check(CODE, "process = \"gamma\"\nrate = 2.5616\nshape = 0.231", code);
}

/// A preset for another time, as three seeds make it.
fn figures(text: &str, duration: &str) -> Vec<crate::trace::stats::TraceFigures> {
    let mut workload = Workload::parse(text, "x.toml").expect("a preset");
    workload.duration = Some(Nanos::parse_duration(duration).expect("a duration"));
    let one = |seed| {
        let mut stats = crate::trace::stats::Stats::default();
        workload.rows(seed).for_each(|row| stats.add(&row));
        stats.finish().0
    };
    (0..3).map(one).collect()
}

/// That the median of a figure is within bounds.
#[track_caller]
fn check_median(mut values: Vec<f64>, least: f64, most: f64) {
    values.sort_unstable_by(f64::total_cmp);
    let median = values[values.len() / 2];
    assert!((least..=most).contains(&median), "{median} is not from {least} to {most}: {values:?}");
}

#[test]
fn chat_arrivals_scatter_as_recorded() {
    let made = figures(CHAT, "1h");
    let idc = |place: usize| {
        made.iter().map(|own| own.arrivals.scales[place].idc.expect("an hour")).collect()
    };
    check_median(idc(0), 1.05, 1.75);
    check_median(idc(1), 2.9, 4.9);
    check_median(idc(2), 12.0, 20.0);
    let peaks = made.iter().map(|own| own.arrivals.scales[2].peak_to_mean.expect("an hour"));
    check_median(peaks.collect(), 1.29, 1.75);
}

#[test]
fn code_arrives_in_bursts() {
    let made = figures(CODE, "1h");
    let idc = |place: usize| {
        made.iter().map(|own| own.arrivals.scales[place].idc.expect("an hour")).collect()
    };
    // Three seeds scatter; the bench holds the median of twenty to the narrower bounds.
    check_median(idc(0), 8.0, 19.0);
    check_median(idc(1), 35.0, 100.0);
    check_median(idc(2), 70.0, 230.0);
    let silent = made.iter().map(|own| own.arrivals.scales[0].empty.expect("an hour"));
    check_median(silent.collect(), 0.62, 0.80);
}

#[test]
fn long_context_repeats_its_share_of_blocks() {
    let reuse =
        |own: &crate::trace::stats::TraceFigures| own.reuse.as_ref().expect("blocks").block_hit;
    let made = figures(LONG, "20m");
    check_median(made.iter().map(reuse).collect(), 0.34, 0.40);
    // The same rows at another rate: blocks count back in rows, not in time.
    let blocks = |rate: &str| -> Vec<_> {
        let text = LONG.replace("rate = 3.4015", rate);
        let workload = Workload::parse(&text, "x.toml").expect("a preset");
        workload.rows(3).take(50).map(|row| row.prefix.expect("blocks").blocks).collect()
    };
    assert_eq!(blocks("rate = 3.4015"), blocks("rate = 34"));
}

#[test]
fn a_coding_agent_says_again_what_it_said() {
    let workload = Workload::parse(AGENT, "x.toml").expect("a preset");
    let (mut last, mut again, mut total) = (std::collections::HashMap::new(), 0, 0);
    for row in workload.rows(1).take(20_000) {
        let session = row.session.clone().expect("a session");
        let (turn, before) = last.insert(session, (row.turn, row.input_tok)).unwrap_or((None, 0));
        assert_eq!(row.turn, Some(turn.unwrap_or(0) + 1), "turns in order");
        assert!(row.input_tok >= before, "a history only grows");
        assert_eq!(row.think.is_some(), row.turn > Some(1));
        again += u64::from(before);
        total += u64::from(row.input_tok);
    }
    let share = again as f64 / total as f64;
    assert!((0.94..0.98).contains(&share), "{share}");
    let sessions = last.len() as f64;
    assert!((300.0..1_500.0).contains(&sessions) || sessions < 60.0, "{sessions}");
}

#[test]
fn lengths_follow_a_rank_correlation() {
    let text = "[arrival]\nprocess = \"constant\"\nrate = 1\n\
                [input]\ndistribution = \"lognormal\"\nmu = 7\nsigma = 1\n\
                [output]\ndistribution = \"exponential\"\nmean = 3000\nrank_correlation = ";
    for wanted in [-0.5, 0.42, 0.8] {
        let workload = Workload::parse(&format!("{text}{wanted}"), "x.toml").expect("a workload");
        let mut stats = crate::trace::stats::Stats::default();
        workload.rows(1).take(10_000).for_each(|row| stats.add(&row));
        let got = stats.finish().0.correlation.and_then(|own| own.spearman).expect("two lengths");
        assert!((got - wanted).abs() < 0.03, "{got} for {wanted}");
    }
}

#[test]
fn classes_share_arrivals_by_weight_and_keep_their_own() {
    let fixed = |tokens: u32| format!("distribution = \"fixed\"\ntokens = {tokens}\n");
    let text = format!(
        "[arrival]\nprocess = \"poisson\"\nrate = 50\n[input]\n{}[output]\n{}\
         [[class]]\nname = \"a\"\nweight = 3\nmodel = \"m\"\nslo = [\"ttft_ms.p99<=500\"]\n\
         [[class]]\nname = \"b\"\ntenant = \"t\"\n[class.input]\n{}[class.request]\ntop_p = 0.5\n\
         [[class]]\nname = \"c\"\n[class.arrival]\nprocess = \"constant\"\nrate = 10\n",
        fixed(5),
        fixed(6),
        fixed(7)
    );
    let workload = Workload::parse(&text, "x.toml").expect("a workload");
    let rows: Vec<_> = workload.rows(2).take_while(|row| row.at < Nanos::from_secs(100)).collect();
    let of = |name: &str| rows.iter().filter(|row| row.class.as_deref() == Some(name)).count();
    assert_eq!(of("c"), 1_000);
    assert!((3_550..3_950).contains(&of("a")) && (1_100..1_400).contains(&of("b")), "{}", of("a"));
    let first = |name: &str| rows.iter().find(|row| row.class.as_deref() == Some(name));
    let body = |name: &str| {
        let content = first(name).expect("a row").content.as_ref()?;
        Some(content.body.as_ref().expect("a body").get().to_owned())
    };
    assert_eq!(body("a").as_deref(), Some("{\"model\":\"m\"}"));
    assert_eq!(body("b").as_deref(), Some("{\"user\":\"t\",\"top_p\":0.5}"));
    assert_eq!((body("c"), first("b").map(|row| row.input_tok)), (None, Some(7)));
    let slo: Vec<_> = workload.slo().collect();
    assert_eq!(slo, [("a", &["ttft_ms.p99<=500".to_owned()][..])]);
}

#[test]
fn a_row_is_the_same_however_many_are_drawn_and_at_any_rate() {
    let lengths = |arrival: &str, n: usize| -> Vec<(u32, u32)> {
        let workload = made(arrival, "distribution = \"lognormal\"\nmu = 5\nsigma = 2");
        workload.rows(9).take(n).map(|row| (row.input_tok, row.output_tok.unwrap())).collect()
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
    // No drift: row 5,530 of 5.53/s stands at 1,000 s to the nanosecond.
    let chat = made("process = \"constant\"\nrate = 5.53", FIXED);
    let row = chat.rows(0).nth(5_530).expect("no end");
    assert_eq!(row.at, Nanos::from_secs(1_000));
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
    for (text, sections) in [(CHAT, ["input", "output"]), (CODE, ["input", "output"])] {
        let mut workload = Workload::parse(text, "x.toml").expect("a preset");
        workload.duration = None;
        let rows: Vec<_> = workload.rows(5).take(10_000).collect();
        for section in sections {
            let grid = grid_of(text, section);
            let pick = |row: &Request| {
                if section == "input" { Some(row.input_tok) } else { row.output_tok }
            };
            let distance = ks(rows.iter().filter_map(pick).collect(), |x| grid_cdf(&grid, x));
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
