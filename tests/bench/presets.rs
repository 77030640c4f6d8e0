//! Presets and fits against the traces that they were made from: every figure beside its bound.
//!
//! `cargo bench --bench presets -- FOLDER`, where `FOLDER` holds the traces by their own names
//! (`azure2023/…`, `mooncake/…`). Medians over 20 seeds of an hour; exits 1 when a bound is missed.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use underfire::trace::Request;
use underfire::trace::read::{self, Input, ReadOptions};
use underfire::trace::stats::{Shapes, Stats, TraceFigures};
use underfire::workload::Workload;
use underfire::workload::fit::fit;

const SEEDS: u64 = 20;

type Figure = fn(&TraceFigures) -> Option<f64>;

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
        let text = std::fs::read_to_string(
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("workloads/{preset}.toml")),
        );
        check.workload(preset, &text.expect("a preset"), &recorded, &shapes, bounds);
        let fitted = fit(rows.into_iter().map(Ok::<_, std::convert::Infallible>), preset);
        let fitted = fitted.expect("it fits").text;
        check.workload(&format!("{preset}, fitted"), &fitted, &recorded, &shapes, bounds);
    }
    check.agent();
    println!("{} bounds missed", check.missed);
    ExitCode::from(u8::from(check.missed > 0))
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
        let most = 0.02;
        for (name, values) in ["input KS", "output KS"].into_iter().zip(distances) {
            self.figure(of, name, median(values), (0.0, most));
        }
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
        let line = if line.starts_with("duration") { duration } else { line };
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
