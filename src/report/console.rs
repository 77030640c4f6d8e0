//! The summary that a person reads at a glance: about twenty lines of plain text.
//!
//! A pure function of the figures. Latencies are those of the measured window, from due unless a line
//! says otherwise. Deliberately absent: printing, and the decision whether to colour.

mod warnings;

use std::fmt::Write as _;

use self::warnings::{no_window, warnings};
use super::number_format::{NONE, decimal, grouped, percent, rate, span};
use super::run_facts::{OwnError, RunFacts};
use crate::metrics::{ALL, MEASURED, Percentile, Stat, Summary, SummaryLine, Tally};
use crate::record::Outcome;
use crate::units::Nanos;

/// The table's rows: metric, and what people call it.
const TABLE: [(&str, &str); 8] = [
    ("ttft_ms", "TTFT from due"),
    ("ttft_send_ms", "TTFT from sent"),
    ("ttfo_ms", "TTFO from due"),
    ("tpot_ms", "TPOT"),
    ("itl_ms", "ITL"),
    ("gap_ms", "chunk gap"),
    ("e2e_ms", "E2E from due"),
    ("lag_ms", "lag, sent − due"),
];

/// The table's percentiles.
const SHOWN: [(Percentile, &str); 3] =
    [(Percentile::P50, "p50"), (Percentile::P90, "p90"), (Percentile::P99, "p99")];

/// Writes the summary, with ANSI colours when `color`.
#[must_use]
pub fn render(summary: &Summary, facts: &RunFacts, color: bool) -> String {
    let mut page = Page { text: String::new(), color };
    page.head(facts);
    page.requests(summary);
    page.tokens(&summary.all);
    page.rates(summary);
    page.durations(summary);
    if let Some(client) = &facts.client {
        page.line("client", client);
    }
    page.table(summary, facts.own_error.as_ref());
    page.warnings(summary, facts);
    page.notes(summary, facts);
    page.text
}

struct Page {
    text: String,
    color: bool,
}

const BOLD: &str = "1";
const RED: &str = "31";
const YELLOW: &str = "33";

impl Page {
    fn paint(&self, code: &str, text: &str) -> String {
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn line(&mut self, name: &str, text: &str) {
        writeln!(self.text, "{name:<11}{text}").expect("memory takes text");
    }

    fn head(&mut self, facts: &RunFacts) {
        let model = facts.model.as_ref().map_or_else(String::new, |model| format!(" ({model})"));
        let mut head = self.paint(BOLD, &format!("{} → {}{model}", facts.name, facts.target));
        if facts.interrupted {
            let word = self.paint(RED, "interrupted: these are partial results");
            head = format!("{head}  {word}");
        }
        self.text.push_str(&head);
        self.text.push('\n');
        if let Some(reason) = &facts.stopped {
            let word = self.paint(RED, "stopped early");
            self.line("", &format!("{word}: {reason}"));
        }
    }

    fn requests(&mut self, summary: &Summary) {
        let all = &summary.all;
        let mut text = format!("{} · {} ok", grouped(all.rows()), grouped(all.count(Outcome::Ok)));
        for (outcome, n) in all.outcomes.iter().filter(|(outcome, _)| **outcome != Outcome::Ok) {
            let code = if outcome.is_error() { RED } else { YELLOW };
            let part = self.paint(code, &format!("{} {outcome}", grouped(*n)));
            write!(text, " · {part}").expect("memory takes text");
        }
        if let Some(times) = all.resent {
            write!(text, " · sent again {} times", grouped(times)).expect("memory takes text");
        }
        self.line("requests", &text);
        let measured = &summary.measured;
        let mut text = measured.error_rate().map_or_else(|| NONE.to_owned(), percent);
        let warmup = all.rows() - measured.rows();
        if warmup > 0 {
            let (inside, before) = (grouped(measured.rows()), grouped(warmup));
            write!(text, " of the {inside} due in the window ({before} were warm-up)")
                .expect("memory takes text");
        }
        let cut: u64 = measured
            .outcomes
            .iter()
            .filter(|(o, _)| **o == Outcome::Incomplete)
            .map(|(_, n)| n)
            .sum();
        if cut > 0 {
            write!(text, ", {} more cut by us before their end", grouped(cut))
                .expect("memory takes text");
        }
        self.line("errors", &text);
        for (outcome, error) in all.first_errors.iter().filter(|(o, _)| o.is_error()) {
            let text = format!("{outcome}: {}", shortened(error));
            self.line("", &text);
        }
    }

    fn tokens(&mut self, all: &Tally) {
        let got = match all.input_counted {
            0 => "not counted by the server".to_owned(),
            n if n < all.rows() => format!("{} got by {} rows", grouped(all.input_tok), grouped(n)),
            _ => format!("{} got", grouped(all.input_tok)),
        };
        // Prompts of a file ask for no length.
        let asked = match all.input_tok_asked {
            0 => String::new(),
            tok => format!("{} asked, ", grouped(tok)),
        };
        let input = format!("input {asked}{got}");
        // Answers that end by themselves ask for no length, and a sum without them would be none.
        let asked = match all.output_asked.total() {
            Some(tok) => format!("{} asked, ", grouped(tok)),
            None => String::new(),
        };
        let output = format!("output {asked}{} got", grouped(all.output_tok));
        self.line("tokens", &format!("{input} · {output}"));
    }

    fn rates(&mut self, summary: &Summary) {
        let mean = |metric, scope| summary.value(metric, scope, Stat::Mean);
        let offered = rate(mean("offered_s", MEASURED), "req/s");
        let ok = rate(mean("request_s", MEASURED), "req/s");
        self.line("rate", &format!("offered {offered} · completed {ok}"));
        let window = rate(mean("output_tok_s", MEASURED), "tok/s");
        let total = rate(mean("output_tok_s_total", ALL), "tok/s");
        self.line("output", &format!("{window} in the window · {total} over the whole run"));
        if let Some(wasted) = mean("wasted_tok_s", MEASURED).filter(|wasted| *wasted > 0.0) {
            let wasted = rate(Some(wasted), "tok/s");
            self.line("wasted", &format!("{wasted} in the window, on failed requests"));
        }
    }

    fn durations(&mut self, summary: &Summary) {
        let length = |span_of: Option<Nanos>| span_of.map_or_else(|| NONE.to_owned(), span);
        let warmup = match summary.warmup {
            Nanos::ZERO => "no warm-up".to_owned(),
            warmup => format!("after {} of warm-up", span(warmup)),
        };
        let (window, drain) = (length(summary.window()), length(summary.drain()));
        let text = format!("{window} measured by due time, {warmup} · drain {drain}");
        self.line("window", &text);
    }

    fn table(&mut self, summary: &Summary, own_error: Option<&OwnError>) {
        let mut head = format!(
            "{:<20}{:>10}{:>10}{:>10}{:>10}{:>11}{:>7}",
            "latency, ms", "p50", "p90", "p99", "max", "n", "cut"
        );
        if own_error.is_some() {
            head.push_str("        ±");
        }
        let head = self.paint(BOLD, &head);
        writeln!(self.text, "\n{head}").expect("memory takes text");
        let lines = || {
            TABLE.iter().filter_map(|(metric, name)| Some((*name, summary.line(metric, MEASURED)?)))
        };
        let same_answer = summary.line("ttft_ms", MEASURED).map(figures)
            == summary.line("ttfo_ms", MEASURED).map(figures);
        for (name, line) in lines() {
            // Without reasoning the first answer token is the first token: no news.
            if !(same_answer && &*line.metric == "ttfo_ms") {
                let plus_minus = own_error.and_then(|error| error.of(&line.metric));
                table_row(&mut self.text, name, line, plus_minus);
            }
        }
        let missing: Vec<String> = SHOWN
            .iter()
            .filter(|(percentile, _)| {
                lines().any(|(_, line)| line.n > Some(0) && !line.bounds(*percentile))
            })
            .map(|(percentile, name)| format!("{name} {}", percentile.least_n()))
            .collect();
        if !missing.is_empty() {
            let needs = missing.join(", ");
            writeln!(self.text, "{NONE} too few values to bound it; needed: {needs}")
                .expect("memory takes text");
        }
        let falls_on_cut = |line: &SummaryLine| SHOWN.iter().any(|(p, _)| shown(line, *p) == CUT);
        if lines().any(|(_, line)| falls_on_cut(line)) {
            self.text.push_str(
                "cut: the figure falls on a request that was ended before its value was known\n",
            );
        }
    }

    fn warnings(&mut self, summary: &Summary, facts: &RunFacts) {
        for warning in warnings(summary, facts) {
            let word = self.paint(YELLOW, "warning:");
            writeln!(self.text, "{word} {warning}").expect("memory takes text");
        }
    }

    fn notes(&mut self, summary: &Summary, facts: &RunFacts) {
        let mut notes: Vec<String> = no_window(summary).into_iter().collect();
        let all = &summary.all;
        if all.ok_by_events > 0 {
            notes.push(format!(
                "{} answers came without a token count: their tokens are the number of chunks \
                 (token_source events)",
                grouped(all.ok_by_events)
            ));
        }
        if all.ok_by_tokenizer > 0 {
            notes.push(format!(
                "{} answers are counted by --tokenizer, on their text (token_source tokenizer)",
                grouped(all.ok_by_tokenizer)
            ));
        }
        let gaps = summary.line("gap_ms", MEASURED).and_then(|line| line.n).unwrap_or(0);
        if gaps > 0 && summary.line("itl_ms", MEASURED).is_none() {
            notes.push(
                "tokens per chunk are not known for every answer: chunk gap only, no ITL"
                    .to_owned(),
            );
        }
        if all.cached_tok > 0 {
            let cached = grouped(all.cached_tok);
            notes.push(format!("{cached} prompt tokens came from the server's prefix cache"));
        }
        notes.extend(facts.own_error.as_ref().map(OwnError::legend));
        notes.extend(facts.notices.iter().cloned());
        for note in notes {
            writeln!(self.text, "note: {note}").expect("memory takes text");
        }
        if let Some(folder) = &facts.folder {
            self.line("results", folder);
        }
    }
}

/// The first words of an error, in one line of a terminal.
fn shortened(error: &str) -> String {
    const LIMIT: usize = 120;
    let mut text: String = error.chars().take(LIMIT).collect();
    if text.len() < error.len() {
        text.push('…');
    }
    text
}

/// Stands where a percentile falls on a value that was cut off.
const CUT: &str = "cut";

fn shown(line: &SummaryLine, percentile: Percentile) -> String {
    match line.percentile(percentile) {
        Some(ms) => decimal(ms),
        None if line.bounds(percentile) => CUT.to_owned(),
        None => NONE.to_owned(),
    }
}

fn table_row(text: &mut String, name: &str, line: &SummaryLine, plus_minus: Option<f64>) {
    let [p50, p90, p99] = SHOWN.map(|(percentile, _)| shown(line, percentile));
    let max = line.max.map_or_else(|| NONE.to_owned(), decimal);
    let n = grouped(line.n.unwrap_or(0));
    let cut = line.censored.filter(|n| *n > 0).map_or_else(String::new, grouped);
    let plus_minus = plus_minus.map_or_else(String::new, decimal);
    let row =
        format!("{name:<20}{p50:>10}{p90:>10}{p99:>10}{max:>10}{n:>11}{cut:>7}{plus_minus:>9}");
    text.push_str(row.trim_end());
    text.push('\n');
}

fn figures(line: &SummaryLine) -> (Option<u64>, Option<f64>, Option<f64>) {
    (line.n, line.mean, line.max)
}

#[cfg(test)]
mod tests;
