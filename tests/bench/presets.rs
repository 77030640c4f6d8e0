//! Presets and fits against the traces that they were made from: every figure beside its bound.
//!
//! `cargo bench --bench presets -- FOLDER`, where `FOLDER` holds the traces by their own names
//! (`azure2023/…`, `mooncake/…`, `lengths/…`). Medians over 20 seeds of an hour; exits 1 when a bound is
//! missed. Sources whose rows are not there are known by less: RAG's by the quantiles in `quantiles.json`,
//! whose own distance from the rows is added; reasoning's by published percentiles, at which alone it is held
//! to them.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use underfire::trace::Request;
use underfire::trace::read::{self, Input, ReadOptions};
use underfire::trace::stats::{Lengths, Shapes, Stats, TraceFigures};
use underfire::workload::Workload;
use underfire::workload::fit::fit;

const SEEDS: u64 = 20;
/// The largest distance of lengths from their source.
const MOST_KS: f64 = 0.02;

/// Probabilities of published percentiles, and prompt and completion lengths at them.
const REASONING: [(f64, [u32; 2]); 8] = [
    (0.01, [9, 141]),
    (0.1, [18, 287]),
    (0.25, [41, 427]),
    (0.5, [208, 792]),
    (0.75, [482, 1_499]),
    (0.9, [2_092, 3_432]),
    (0.95, [6_714, 5_701]),
    (0.99, [23_423, 12_607]),
];
/// Rows that are held to them; a sample of so many is within 0.002 of what it is drawn from.
const REASONING_ROWS: usize = 200_000;
/// The source's mean lengths, which hang on what lies between its percentiles.
const REASONING_MEAN: [f64; 2] = [1_268.0, 1_527.0];

type Figure = fn(&TraceFigures) -> Option<f64>;
type Side = fn(&Shapes) -> &Lengths;

/// Prompt and completion lengths.
const SIDES: [(&str, Side); 2] =
    [("input", |own| &own.input_tok), ("output", |own| &own.output_tok)];

/// A figure with its bounds.
struct Bound(&'static str, Figure, f64, f64);

fn idc(figures: &TraceFigures, place: usize) -> Option<f64> {
    figures.arrivals.scales.get(place)?.idc
}

const CHAT: [Bound; 4] = [
    Bound("dispersion 1 s", |f| idc(f, 0), 1.4 * 0.75, 1.4 * 1.25),
    Bound("dispersion 10 s", |f| idc(f, 1), 3.9 * 0.75, 3.9 * 1.25),
    Bound("dispersion 60 s", |f| idc(f, 2), 16.0 * 0.75, 16.0 * 1.25),
    Bound("peak/mean 60 s", |f| f.arrivals.scales[2].peak_to_mean, 1.52 * 0.85, 1.52 * 1.15),
];
const CODE: [Bound; 4] = [
    Bound("dispersion 1 s", |f| idc(f, 0), 9.0, 19.0),
    Bound("dispersion 10 s", |f| idc(f, 1), 43.0, 100.0),
    Bound("dispersion 60 s", |f| idc(f, 2), 95.0, 230.0),
    Bound("silent seconds", |f| f.arrivals.scales[0].empty, 0.67, 0.78),
];
const LONG: [Bound; 1] =
    [Bound("block reuse", |f| f.reuse.as_ref().map(|reuse| reuse.block_hit), 0.34, 0.40)];

fn main() -> ExitCode {
    let folder = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let Some(folder) = folder.map(PathBuf::from) else {
        println!("no folder of traces is named; nothing was compared");
        return ExitCode::SUCCESS;
    };
    let azure = |kind: &str| folder.join(format!("azure2023/AzureLLMInferenceTrace_{kind}.csv"));
    let mooncake = folder.join("mooncake/conversation_trace.jsonl");
    let mut check = Check { missed: 0 };
    for (preset, trace, bounds) in [
        ("chat", azure("conv"), &CHAT[..]),
        ("code", azure("code"), &CODE[..]),
        ("long-context", mooncake, &LONG[..]),
    ] {
        let (recorded, shapes, rows) = measure_trace(&trace);
        check.workload(preset, &preset_text(preset), &recorded, &shapes, bounds);
        let fitted = fit(rows.into_iter().map(Ok::<_, std::convert::Infallible>), preset);
        let fitted = fitted.expect("it fits").text;
        check.workload(&format!("{preset}, fitted"), &fitted, &recorded, &shapes, bounds);
    }
    check.retrieval(&folder.join("quantiles.json"));
    check.reasoning();
    check.batch(&folder.join("lengths/sharegpt_8k_filtered_stats_llama2_tokenizer.csv"));
    check.agent();
    println!("{} bounds missed", check.missed);
    ExitCode::from(u8::from(check.missed > 0))
}

fn preset_text(preset: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("workloads/{preset}.toml"));
    std::fs::read_to_string(path).expect("a preset")
}

/// Lengths of a preset's first rows, for each seed.
fn lengths(preset: &str, rows: usize) -> impl Iterator<Item = Shapes> {
    let workload = lasting(&preset_text(preset), "duration = \"1000h\"");
    (0..SEEDS).map(move |seed| {
        let mut stats = Stats::default();
        let made: Vec<Request> = workload.rows(seed).take(rows).collect();
        assert_eq!(made.len(), rows, "no fewer rows than the source");
        for row in &made {
            stats.add(row);
        }
        stats.finish().1
    })
}

/// Lengths with the distribution that quantiles give, straight between them.
fn of_quantiles(q: &[f64], tokens: &[f64]) -> Lengths {
    const STEPS: u32 = 100_000;
    let mut lengths = Lengths::default();
    for step in 0..STEPS {
        let u = (f64::from(step) + 0.5) / f64::from(STEPS);
        let place = q.partition_point(|own| *own < u).clamp(1, q.len() - 1);
        let share = (u - q[place - 1]) / (q[place] - q[place - 1]);
        let tok = tokens[place - 1] + share * (tokens[place] - tokens[place - 1]);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a length")]
        lengths.add(tok.round() as u32);
    }
    lengths
}

/// The share of lengths up to `tok`.
fn share_up_to(lengths: &Lengths, tok: u32) -> f64 {
    let (mut below, mut all) = (0, 0);
    for (own, count) in lengths.sorted() {
        all += count;
        below += if own <= tok { count } else { 0 };
    }
    below as f64 / all as f64
}

fn measure_trace(path: &Path) -> (TraceFigures, Shapes, Vec<Request>) {
    let trace = read::open(Input::File(path.to_owned()), ReadOptions::default()).expect("a trace");
    let rows: Vec<Request> = trace.rows().expect("rows").map(|row| row.expect("valid")).collect();
    let mut stats = Stats::default();
    for row in &rows {
        stats.add(row);
    }
    let (figures, shapes) = stats.finish();
    (figures, shapes, rows)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

struct Check {
    missed: u32,
}

impl Check {
    fn figure(&mut self, of: &str, name: &str, value: f64, (least, most): (f64, f64)) {
        let holds = (least..=most).contains(&value);
        self.missed += u32::from(!holds);
        let word = if holds { "ok" } else { "MISSED" };
        println!("{of:<22}{name:<18}{value:>10.4}   {least:.3} to {most:.3}   {word}");
    }

    fn workload(
        &mut self,
        of: &str,
        text: &str,
        recorded: &TraceFigures,
        shapes: &Shapes,
        bounds: &[Bound],
    ) {
        let workload = for_an_hour(text);
        let made: Vec<(TraceFigures, Shapes)> = (0..SEEDS)
            .map(|seed| {
                let mut stats = Stats::default();
                workload.rows(seed).for_each(|row| stats.add(&row));
                stats.finish()
            })
            .collect();
        for Bound(name, figure, least, most) in bounds {
            let value = median(made.iter().filter_map(|own| figure(&own.0)).collect());
            self.figure(of, name, value, (*least, *most));
        }
        // An hour may hold fewer rows than the trace: lengths are compared at no fewer.
        let rows = usize::try_from(recorded.rows).expect("they are held");
        let endless = for_ten_hours(text);
        let mut distances = [Vec::new(), Vec::new()];
        for seed in 0..SEEDS {
            let mut stats = Stats::default();
            endless.rows(seed).take(rows).for_each(|row| stats.add(&row));
            let (_, own) = stats.finish();
            distances[0].extend(shapes.input_tok.distance(&own.input_tok));
            distances[1].extend(shapes.output_tok.distance(&own.output_tok));
        }
        for (name, values) in ["input KS", "output KS"].into_iter().zip(distances) {
            self.figure(of, name, median(values), (0.0, MOST_KS));
        }
    }

    /// Against the quantiles of rows that are not there, whose own distance from the rows counts too.
    fn retrieval(&mut self, quantiles: &Path) {
        let text = std::fs::read_to_string(quantiles).expect("the quantiles");
        let all: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let source = &all["ragpulse"];
        let numbers = |list: &serde_json::Value| -> Vec<f64> {
            let list = list.as_array().expect("a list").iter();
            list.map(|number| number.as_f64().expect("a number")).collect()
        };
        let rows = source["n"].as_u64().expect("a count");
        let made: Vec<Shapes> = lengths("rag", usize::try_from(rows).expect("few")).collect();
        for (side, of) in SIDES {
            let grid = of_quantiles(&numbers(&all["q"]), &numbers(&source[side]));
            let own = source[format!("{side}_interp_ks")].as_f64().expect("a distance");
            let distances = made.iter().filter_map(|made| grid.distance(of(made))).collect();
            self.figure("rag", &format!("{side} KS"), median(distances) + own, (0.0, MOST_KS));
        }
    }

    /// Against published percentiles, and the means for what lies between them.
    fn reasoning(&mut self) {
        let made: Vec<Shapes> = lengths("reasoning", REASONING_ROWS).collect();
        for (place, (side, of)) in SIDES.into_iter().enumerate() {
            let worst = |own: &Shapes| {
                let apart = REASONING.iter().map(|(q, tok)| share_up_to(of(own), tok[place]) - q);
                apart.map(f64::abs).fold(0.0, f64::max)
            };
            let distances = made.iter().map(worst).collect();
            self.figure(
                "reasoning",
                &format!("{side} at points"),
                median(distances),
                (0.0, MOST_KS),
            );
            let mean = |own: &Shapes| {
                of(own).figures().map(|figures| figures.mean / REASONING_MEAN[place])
            };
            let ratio = median(made.iter().filter_map(mean).collect());
            self.figure("reasoning", &format!("{side} mean ratio"), ratio, (0.98, 1.02));
        }
    }

    /// Prompt lengths alone: answers end by themselves.
    fn batch(&mut self, trace: &Path) {
        let (recorded, shapes, _) = measure_trace(trace);
        let rows = usize::try_from(recorded.rows).expect("they are held");
        let made = lengths("batch", rows);
        let distances = made.filter_map(|own| shapes.input_tok.distance(&own.input_tok)).collect();
        self.figure("batch", "input KS", median(distances), (0.0, MOST_KS));
    }

    /// Sessions: what a turn says again of what the turn before said.
    fn agent(&mut self) {
        let text = include_str!("../../workloads/coding-agent.toml");
        let workload = for_ten_hours(text);
        let (mut last, mut again, mut total) = (HashMap::new(), 0_u64, 0_u64);
        for row in workload.rows(0).take(100_000) {
            let before = last.insert(row.session.clone(), row.input_tok).unwrap_or(0);
            again += u64::from(before.min(row.input_tok));
            total += u64::from(row.input_tok);
        }
        self.figure("coding-agent", "said again", again as f64 / total as f64, (0.94, 0.98));
    }
}

fn lasting(text: &str, duration: &str) -> Workload {
    let other = |line: &str| {
        // A preset that ends by its rows has none, but no use for a longer end either.
        let line = if line.starts_with("duration") { duration } else { line };
        let line = if line.starts_with("rows = ") { "" } else { line };
        format!("{line}\n")
    };
    let text: String = text.lines().map(other).collect();
    Workload::parse(&text, "preset.toml").expect("a workload")
}

fn for_an_hour(text: &str) -> Workload {
    lasting(text, "duration = \"1h\"")
}

fn for_ten_hours(text: &str) -> Workload {
    lasting(text, "duration = \"10h\"")
}
