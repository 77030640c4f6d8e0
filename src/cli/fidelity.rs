//! The fidelity report: what was asked, planned and sent, side by side.

use std::fmt::Write as _;

use crate::metrics::fidelity::SentFigures;
use crate::report::NONE;
use crate::schedule::fidelity::{FidelityFigures, SideFigures};
use crate::trace::stats::ArrivalFigures;

/// The report as a table. `sent` is missing in a dry run.
pub(super) fn table(figures: &FidelityFigures, sent: Option<&SentFigures>) -> String {
    let mut text = String::new();
    let heads = ["asked", "planned", "sent"];
    let columns = if sent.is_some() { 3 } else { 2 };
    line(&mut text, "fidelity:", heads[..columns].iter().map(|head| (*head).to_owned()));
    let rows = [figures.asked.rows, figures.planned.rows];
    let rows = rows.into_iter().chain(sent.map(|sent| sent.rows));
    line(&mut text, "      requests", rows.map(|rows| rows.to_string()));
    let asked = figures.asked.arrivals.as_ref();
    let arrivals = [asked, figures.planned.arrivals.as_ref(), sent.map(|sent| &sent.arrivals)];
    let mut figure = |name: &str, of: &dyn Fn(&ArrivalFigures) -> Option<f64>| {
        let shown = arrivals[..columns].iter().map(|side| shown(side.and_then(of)));
        line(&mut text, name, shown);
    };
    if arrivals.iter().any(Option::is_some) {
        figure("      requests/s", &|side| side.rate);
        figure("      gap CV", &|side| side.gap_cv);
        for (place, name) in ["1", "10", "60"].iter().enumerate() {
            let name = format!("      dispersion, {name} s");
            figure(&name, &|side| side.scales.get(place)?.idc);
        }
        figure("      peak/mean, 60 s", &|side| side.scales.get(2)?.peak_to_mean);
    }
    let lengths = |of: &dyn Fn(&SideFigures) -> Option<String>| {
        [&figures.asked, &figures.planned].map(|side| of(side).unwrap_or_else(|| NONE.to_owned()))
    };
    let ks = |value: Option<f64>| {
        value.map_or(String::new(), |value| format!("   (distance {value:.3})"))
    };
    let input =
        lengths(&|side| side.input_tok.as_ref().map(|own| format!("{} {}", own.p50, own.p99)));
    let output =
        lengths(&|side| side.output_tok.as_ref().map(|own| format!("{} {}", own.p50, own.p99)));
    line(&mut text, "      prompt tokens, p50 p99", input.into_iter());
    text.insert_str(text.len() - 1, &ks(figures.input_tok_ks));
    line(&mut text, "      completion tokens, p50 p99", output.into_iter());
    text.insert_str(text.len() - 1, &ks(figures.output_tok_ks));
    if let Some(sent) = sent {
        let _ = writeln!(
            text,
            "      sent against planned: {} of seconds equal, {} requests apart in the worst; gaps {} ms apart \
             at p99",
            sent.equal_seconds.map_or(NONE.to_owned(), |share| format!("{:.1}%", share * 100.0)),
            sent.worst_second,
            shown(sent.gap_error_p99_ms)
        );
        if let Some(ratio) = sent.input_tok_ratio {
            let _ = writeln!(
                text,
                "      prompt tokens by the server's count: {:.2}% of those asked for",
                ratio * 100.0
            );
        }
    }
    text
}

/// Three decimals, where there is a figure.
pub(super) fn shown(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| format!("{value:.3}"))
}

fn line(text: &mut String, name: &str, cells: impl Iterator<Item = String>) {
    let _ = write!(text, "{name:<33}");
    for cell in cells {
        let _ = write!(text, "{cell:>13}");
    }
    text.push('\n');
}
