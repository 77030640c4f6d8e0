//! The workload file that comes out.

use std::fmt::Write as _;

use super::Sample;
use super::goodness::Goodness;
use super::sessions::{Parts, Stretch};
use crate::trace::stats::{Lengths, Shapes, TraceFigures};

/// Below this rank correlation two lengths are drawn independently.
const LEAST_CORRELATION: f64 = 0.1;
/// The most turns that a workload can say.
const MOST_TURNS: u32 = 4_095;

/// The parts of a file.
#[derive(Debug)]
pub(super) struct Draft {
    head: String,
    arrival: String,
    input: String,
    output: String,
    sessions: String,
    prefix: String,
}

impl Draft {
    /// With sessions in these groups; none: rows stand alone.
    pub(super) fn new(
        sample: &Sample,
        recorded: &TraceFigures,
        shapes: &Shapes,
        groups: &[Vec<Stretch>],
        name: &str,
    ) -> Self {
        let fit = |c: char| c.is_alphanumeric() || "-_.+ ".contains(c);
        let name: String = name.chars().filter(|c| fit(*c)).take(60).collect();
        let name = name.trim_start_matches('.').trim();
        let name = if name.is_empty() { "fitted" } else { name };
        let duration_s = sample.times.span().div_ceil(crate::units::NS_PER_S).max(1);
        let alone = Self {
            head: format!("name = \"{name}\"\nduration = \"{duration_s}s\"\n"),
            arrival: sample.times.text(&recorded.arrivals),
            input: String::new(),
            output: String::new(),
            sessions: String::new(),
            prefix: sample.blocks.text(&sample.turns),
        };
        if let [all] = groups {
            let parts = Parts::of(all);
            return Self {
                input: lengths("[input]\n", &parts.first_tok),
                output: answers("[output]\n", "", &parts.output_tok),
                sessions: sessions("sessions", &parts, &parts.think_ms),
                ..alone
            };
        }
        if !groups.is_empty() {
            let all = Parts::of(groups.iter().flatten());
            let class = |group: &Vec<Stretch>| class(&Parts::of(group), &all.think_ms);
            return Self { sessions: groups.iter().map(class).collect(), ..alone };
        }
        let spearman = recorded.correlation.as_ref().and_then(|both| both.spearman);
        let spearman = spearman.filter(|own| own.abs() >= LEAST_CORRELATION);
        let correlation =
            spearman.map_or(String::new(), |own| format!("rank_correlation = {own:.3}\n"));
        Self {
            input: lengths("[input]\n", &shapes.input_tok),
            output: answers("[output]\n", &correlation, &shapes.output_tok),
            ..alone
        }
    }

    /// The file without a word beside it.
    pub(super) fn plain(&self) -> String {
        [&self.head, &self.arrival, &self.input, &self.output, &self.prefix, &self.sessions]
            .map(String::as_str)
            .join("\n")
    }

    /// The file, with how well each part fits above it.
    pub(super) fn with(&self, goodness: &Goodness, warnings: &[String]) -> String {
        let mut text = String::from(
            "# Fitted by `underfire trace fit`. Recorded ÷ generated, median of seeds:\n",
        );
        for warning in warnings {
            let _ = writeln!(text, "# Not carried: {warning}.");
        }
        let parts = [
            (&self.head, &Vec::new()),
            (&self.arrival, &goodness.arrival),
            (&self.input, &goodness.input),
            (&self.output, &goodness.output),
            (&self.prefix, &goodness.prefix),
            (&self.sessions, &goodness.sessions),
        ];
        for (part, notes) in parts {
            for note in notes {
                let _ = writeln!(text, "# {note}");
            }
            text.push_str(part);
            if !part.is_empty() || !notes.is_empty() {
                text.push('\n');
            }
        }
        text
    }
}

/// Lengths of answers; natural ones where none was asked for.
fn answers(head: &str, correlation: &str, counts: &Lengths) -> String {
    if counts.sorted().is_empty() {
        return format!("{head}distribution = \"natural\"\n");
    }
    lengths(&format!("{head}{correlation}"), counts)
}

fn lengths(head: &str, lengths: &Lengths) -> String {
    format!("{head}{}", distribution("tokens", &grid(&lengths.sorted())))
}

/// `[sessions]`, or that of a class; `all_think_ms` for where no pause was recorded.
fn sessions(section: &str, parts: &Parts, all_think_ms: &Lengths) -> String {
    let own = parts.think_ms.sorted();
    let think = grid(&if own.is_empty() { all_think_ms.sorted() } else { own });
    let think: Vec<(f64, f64)> = think.into_iter().map(|(q, ms)| (q, ms / 1_000.0)).collect();
    let turns: Vec<_> =
        parts.turns.sorted().into_iter().map(|(n, count)| (n.min(MOST_TURNS), count)).collect();
    let new = parts.new_tok.sorted();
    let new = if new.is_empty() { vec![(1, 1)] } else { new };
    format!(
        "[{section}]\nanswers = false   # what is new holds the answer before it\n\n\
         [{section}.turns]\n{}\n[{section}.new]\n{}\n[[{section}.think]]\n{}",
        distribution("turns", &grid(&turns)),
        distribution("tokens", &grid(&new)),
        distribution("seconds", &think),
    )
}

/// Sessions that are alike, as a class.
fn class(parts: &Parts, all_think_ms: &Lengths) -> String {
    let ends = |lengths: &Lengths| {
        let sorted = lengths.sorted();
        let ends = sorted.first().zip(sorted.last());
        ends.map_or(String::new(), |(first, last)| format!("{}-{}", first.0, last.0))
    };
    format!(
        "[[class]]\nname = \"{} turns from {} tok\"\nweight = {}\n\n{}\n{}\n{}\n",
        ends(&parts.turns),
        ends(&parts.first_tok),
        parts.stretches,
        lengths("[class.input]\n", &parts.first_tok),
        answers("[class.output]\n", "", &parts.output_tok),
        sessions("class.sessions", parts, all_think_ms),
    )
}

/// The probabilities of a grid: every hundredth, and closer at the ends.
fn probabilities() -> impl Iterator<Item = f64> {
    let middle = (1..100).map(|percent| f64::from(percent) / 100.0);
    [0.0, 0.001, 0.005].into_iter().chain(middle).chain([0.995, 0.999, 1.0])
}

/// The inverse distribution function of counted values.
pub(super) fn grid(counts: &[(u32, u64)]) -> Vec<(f64, f64)> {
    let total: u64 = counts.iter().map(|(_, count)| count).sum();
    let mut values = counts.iter();
    let (mut value, mut upto) = (0, 0);
    let all: Vec<(f64, f64)> = probabilities()
        .map(|q| {
            // A value with n rows up to it stands at the probability n / total.
            while (upto as f64) < (q * total as f64).max(1.0) {
                let Some((next, count)) = values.next() else { break };
                (value, upto) = ((*next).max(1), upto + count);
            }
            (q, f64::from(value))
        })
        .collect();
    // A point between two of the same value says nothing.
    let value = |place: usize| all[place].1.to_bits();
    let says = |place: &usize| {
        *place == 0
            || place + 1 == all.len()
            || value(place - 1) != value(*place)
            || value(place + 1) != value(*place)
    };
    (0..all.len()).filter(says).map(|place| all[place]).collect()
}

/// The keys of a grid.
pub(super) fn distribution(key: &str, grid: &[(f64, f64)]) -> String {
    if let (Some(first), Some(last)) = (grid.first(), grid.last())
        && first.1.total_cmp(&last.1).is_eq()
    {
        return format!("distribution = \"fixed\"\n{key} = {}\n", number(first.1));
    }
    format!(
        "distribution = \"quantiles\"\nq = {}{key} = {}",
        list(grid.iter().map(|(q, _)| number(*q))),
        list(grid.iter().map(|(_, value)| number(*value)))
    )
}

/// A number as short as it reads back the same, to six digits.
pub(super) fn number(value: f64) -> String {
    let rounded: f64 = format!("{value:.6e}").parse().unwrap_or(value);
    rounded.to_string()
}

/// A list over as many lines as it takes.
pub(super) fn list(items: impl Iterator<Item = String>) -> String {
    let mut text = String::from("[\n");
    let mut line = String::from("   ");
    for item in items {
        if line.len() + item.len() > 96 {
            text.push_str(&line);
            text.push('\n');
            line = String::from("   ");
        }
        let _ = write!(line, " {item},");
    }
    text + &line + "\n]\n"
}
