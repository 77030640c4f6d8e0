//! The workload file that comes out.

use std::fmt::Write as _;

use super::Sample;
use super::goodness::Goodness;
use crate::trace::stats::{Shapes, TraceFigures};

/// Below this rank correlation two lengths are drawn independently.
const LEAST_CORRELATION: f64 = 0.1;

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
    pub(super) fn new(
        sample: &Sample,
        recorded: &TraceFigures,
        shapes: &Shapes,
        name: &str,
    ) -> Self {
        let fit = |c: char| c.is_alphanumeric() || "-_.+ ".contains(c);
        let name: String = name.chars().filter(|c| fit(*c)).take(60).collect();
        let name = name.trim_start_matches('.').trim();
        let name = if name.is_empty() { "fitted" } else { name };
        let duration_s = sample.times.span().div_ceil(crate::units::NS_PER_S).max(1);
        let has_turns = sample.turns.are_there();
        let input = if has_turns { sample.turns.first_input() } else { shapes.input_tok.sorted() };
        let spearman = recorded.correlation.as_ref().and_then(|both| both.spearman);
        let spearman = spearman.filter(|own| own.abs() >= LEAST_CORRELATION && !has_turns);
        let correlation =
            spearman.map_or(String::new(), |own| format!("rank_correlation = {own:.3}\n"));
        Self {
            head: format!("name = \"{name}\"\nduration = \"{duration_s}s\"\n"),
            arrival: sample.times.text(&recorded.arrivals),
            input: format!("[input]\n{}", distribution("tokens", &grid(&input))),
            output: match &shapes.output_tok.sorted()[..] {
                [] => "[output]\ndistribution = \"natural\"\n".to_owned(),
                counts => {
                    format!("[output]\n{correlation}{}", distribution("tokens", &grid(counts)))
                }
            },
            sessions: sample.turns.text(),
            prefix: sample.blocks.text(&sample.turns),
        }
    }

    /// The file without a word beside it.
    pub(super) fn plain(&self) -> String {
        [&self.head, &self.arrival, &self.input, &self.output, &self.sessions, &self.prefix]
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
            (&self.head, &[][..]),
            (&self.arrival, &goodness.arrival[..]),
            (&self.input, &goodness.input),
            (&self.output, &goodness.output),
            (&self.sessions, &goodness.sessions),
            (&self.prefix, &goodness.prefix),
        ];
        for (part, notes) in parts.iter().filter(|(part, _)| !part.is_empty()) {
            for note in *notes {
                let _ = writeln!(text, "# {note}");
            }
            text.push_str(part);
            text.push('\n');
        }
        text
    }
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
    probabilities()
        .map(|q| {
            // A value with n rows up to it stands at the probability n / total.
            while (upto as f64) < (q * total as f64).max(1.0) {
                let Some((next, count)) = values.next() else { break };
                (value, upto) = ((*next).max(1), upto + count);
            }
            (q, f64::from(value))
        })
        .collect()
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
