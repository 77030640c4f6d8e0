//! Pictures of a trace for the terminal: rate over time, lengths on a logarithmic scale.

use std::fmt::Write as _;

use crate::trace::stats::{Arrivals, Lengths};

/// Columns of a picture.
const WIDTH: usize = 64;
/// Rows of the picture of the rate.
const HEIGHT: usize = 6;
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Requests per second over time.
pub(super) fn rate(arrivals: &Arrivals) -> String {
    let Some((first, last)) = arrivals.span() else { return String::new() };
    if first == last {
        return String::new();
    }
    let rates = arrivals.rates(WIDTH);
    let peak = rates.iter().copied().fold(0.0, f64::max);
    let mut text = format!("requests/s over time, peak {peak:.3}\n");
    for level in (0..HEIGHT).rev() {
        let label = if level + 1 == HEIGHT { format!("{peak:>10.2}") } else { " ".repeat(10) };
        let _ = write!(text, "{label} │");
        text.extend(rates.iter().map(|rate| eighth(rate / peak * HEIGHT as f64 - level as f64)));
        text.push('\n');
    }
    let (from, to) = (first.as_secs_f64(), last.as_secs_f64());
    let _ = writeln!(text, "{:>10} └{}", "", "─".repeat(rates.len()));
    let gap = rates.len().saturating_sub(format!("{from:.0} s").len());
    let _ = writeln!(text, "{:>11} {from:.0} s{:>gap$}", "", format!("{to:.0} s"));
    text
}

/// A column's filling at one level.
fn eighth(part: f64) -> char {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 8")]
    let eighths = (part.clamp(0.0, 1.0) * 8.0).round() as usize;
    EIGHTHS[eighths.min(8)]
}

/// Share of rows by length, a bar for each octave.
pub(super) fn lengths(name: &str, lengths: &Lengths) -> String {
    let sorted = lengths.sorted();
    let all: u64 = sorted.iter().map(|(_, count)| count).sum();
    let mut octaves = [0_u64; 33];
    for (tok, count) in sorted {
        octaves[tok.checked_ilog2().map_or(0, |octave| octave as usize + 1)] += count;
    }
    let filled = |count: &u64| *count > 0;
    let (Some(first), Some(last)) =
        (octaves.iter().position(filled), octaves.iter().rposition(filled))
    else {
        return String::new();
    };
    let most = octaves.iter().copied().max().unwrap_or(1).max(1) as f64;
    let mut text = format!("{name}\n");
    for (octave, &count) in octaves.iter().enumerate().take(last + 1).skip(first) {
        let (from, to) = match octave {
            0 => (0, 0),
            _ => (1_u64 << (octave - 1), (1_u64 << octave) - 1),
        };
        let part = count as f64 / most * 40.0;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 40")]
        let whole = part as usize;
        let rest = eighth_across(part.fract());
        let share = count as f64 / all as f64 * 100.0;
        let _ = writeln!(text, "{from:>9} – {to:<9} │{}{rest} {share:.1}%", "█".repeat(whole));
    }
    text
}

fn eighth_across(part: f64) -> &'static str {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 7")]
    let eighths = (part * 8.0) as usize;
    PARTS[eighths.min(7)]
}
