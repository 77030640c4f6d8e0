//! What a calibration says to people.

use std::fmt::Write as _;

use crate::lab::Load;
use crate::report::{grouped, percent, span};
use crate::run::calibration::{
    Calibration, Piece, describe_load, errors, figure, meaning, ms, optional, percents,
};

/// Everything, for people.
pub(super) fn page(calibration: &Calibration) -> String {
    let mut text = String::new();
    let check = &calibration.check;
    let mut line = |name: &str, words: &str| {
        let _ = writeln!(text, "{name:<11}{words}");
    };
    let Load { span: length, .. } = calibration.load;
    line("load", &format!("{} for {}", describe_load(&calibration.load), span(length)));
    let (streams, events) = (figure(calibration.streams), optional(calibration.event_s, figure));
    line("reached", &format!("{streams} streams on average, {events} token events/s"));
    let (due, ok) = (grouped(calibration.due), grouped(calibration.ok));
    let (missing, miscounted) = (grouped(check.missing), grouped(check.miscounted));
    line(
        "requests",
        &format!("{due} · {ok} ok · {missing} not in the server's log · {miscounted} miscounted"),
    );
    if let Some(failure) = &calibration.failure {
        line("", &format!("the first that failed: {failure}"));
    }
    text.push_str(&table(calibration));
    text.push_str(&pieces_table(&calibration.pieces));
    if let (Some((reported, logged)), Some(error)) = (calibration.tok_s, calibration.tok_s_error())
    {
        let _ = writeln!(
            text,
            "tok/s      {reported:.1} reported, {logged:.1} by the server's log: {} off",
            percent(error)
        );
    }
    let cores = |share: Option<f64>| optional(share, |share| format!("{share:.2} of a core"));
    let _ = writeln!(
        text,
        "client     {} µs of CPU per token event · {} · at most {} MB · {} workers",
        optional(calibration.cpu_us_per_event(), figure),
        cores(calibration.share(calibration.cpu)),
        optional(calibration.rss_mb(), |mb| format!("{mb:.1}")),
        calibration.workers,
    );
    let server = cores(calibration.share(calibration.server_cpu));
    let _ = writeln!(text, "server     {server}, in a process of its own on this machine");
    let _ = writeln!(text, "\n{}", meaning(calibration));
    text
}

fn table(calibration: &Calibration) -> String {
    let mut text =
        format!("\n{:<20}{:>10}{:>10}{:>10}{:>11}\n", "error, ms", "p50", "p99", "max", "n");
    let mut row = |name: &str, figures: [Option<f64>; 3], n: u64| {
        let [p50, p99, max] = figures.map(|value| optional(value, |value| format!("{value:.3}")));
        let _ = writeln!(text, "{name:<20}{p50:>10}{p99:>10}{max:>10}{:>11}", grouped(n));
    };
    for (_, name, agreement) in errors(calibration) {
        row(name, ms(agreement), agreement.n());
    }
    let decode = &calibration.check.decode_ppm;
    row("decode tok/s, %", percents(decode), decode.n());
    row("lag, as reported", calibration.lag_ms, calibration.check.arrival.n());
    text
}

/// A table of all pieces; nothing where there are none.
fn pieces_table(pieces: &[Piece]) -> String {
    if pieces.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\n{:<20}{:>10}{:>10}{:>10}{:>11}{:>10}\n",
        "course, due from", "arrival", "TTFT", "gap p99", "n", "RSS MB"
    );
    for piece in pieces {
        let [arrival, ttft, gap, rss] = piece.figures();
        let ms = |value: Option<f64>| optional(value, |ms| format!("{ms:.3}"));
        let rss = optional(rss, |mb| format!("{mb:.1}"));
        let (from, n) = (span(piece.from), grouped(piece.check.ttft.n()));
        let [arrival, ttft, gap] = [arrival, ttft, gap].map(ms);
        let _ = writeln!(text, "{from:<20}{arrival:>10}{ttft:>10}{gap:>10}{n:>11}{rss:>10}");
    }
    text.push_str("errors in ms, p99 or the largest where they are few\n");
    text
}
