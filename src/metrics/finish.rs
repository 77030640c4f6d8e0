//! From what was gathered to the lines of the summary.

use std::sync::Arc;

use super::distribution::Distribution;
use super::gather::Metrics;
use super::ledger::{Account, Booked};
use super::metric::Metric;
use super::part::{Part, Pooled};
use super::summary::{ALL, MEASURED, MedianInterval, Summary, SummaryLine};
use super::tally::Tally;
use super::values::Basis;
use crate::columns::{Unit, Word};
use crate::record::Outcome;
use crate::units::Nanos;

/// The lines of each scope, while they are made: metric by metric, so that only one metric's values
/// are ever in memory twice.
struct Scopes {
    measured: (Arc<str>, Vec<SummaryLine>),
    all: (Arc<str>, Vec<SummaryLine>),
    /// By place in `Metrics::measured`; rows without a class (place 0) have no scope of their own.
    classes: Vec<Option<(Arc<str>, Vec<SummaryLine>)>>,
}

impl Metrics {
    /// The figures of everything added.
    #[must_use]
    pub fn finish(mut self) -> Summary {
        self.close();
        self.take_intervals(true);
        summary(self)
    }
}

fn summary(metrics: Metrics) -> Summary {
    let behind = metrics.backlog.worst();
    let Metrics { window, marks, classes, mut warmup, mut measured, booked, exact, .. } = metrics;
    let mut scopes = Scopes {
        measured: (MEASURED.into(), Vec::new()),
        all: (ALL.into(), Vec::new()),
        classes: vec![None; measured.len()],
    };
    for (name, place) in classes {
        scopes.classes[place] = Some((format!("class:{name}").into(), Vec::new()));
    }
    for &metric in Metric::ALL {
        if metric == Metric::E2e {
            scopes.pools(&mut measured, &mut warmup);
        }
        scopes.metric(metric, &mut measured, &mut warmup);
    }
    let end = marks.last_due;
    let length = end.map(|end| end.since(window.warmup)).filter(|length| *length > Nanos::ZERO);
    let basis = if exact { Basis::Exact } else { Basis::Histogram };
    let sent_length = length
        .map(|length| length.max(marks.last_sent.map_or(length, |last| last.since(window.warmup))));
    let rates = Rates { length, sent_length, basis };
    let tally = scopes.rates(rates, &measured, &booked);
    let mut all = tally.clone();
    all.merge(&warmup.tally);
    scopes.all.1.push(total_rate(&scopes.all.0, &warmup, &measured, marks.last_token));
    counts(&mut scopes.all.1, &scopes.all.0, &all);
    let rows_behind = behind.map(|behind| behind.rows as f64);
    let line = SummaryLine::single("send_backlog", &scopes.all.0, Unit::Count, None, rows_behind);
    scopes.all.1.push(line);
    Summary {
        warmup: window.warmup,
        first_due: marks.first_due,
        last_due: end,
        last_token: marks.last_token,
        end: marks.end,
        behind,
        measured: tally,
        all,
        lines: scopes.into_lines(),
    }
}

impl Scopes {
    fn metric(&mut self, metric: Metric, measured: &mut [Part], warmup: &mut Part) {
        let place = metric as usize;
        let interval = match metric.unit() {
            Unit::Ms => MedianInterval::Told,
            _ => MedianInterval::None,
        };
        let take = |part: &mut Part| std::mem::take(&mut part.by_metric[place]);
        let line = |scope: &Arc<str>, values: &mut Distribution| {
            SummaryLine::of(metric.word(), scope, metric.unit(), values, interval)
        };
        let mut union = Distribution::new(metric.censored_rank());
        for (class, part) in self.classes.iter_mut().zip(measured) {
            let mut values = take(part);
            if let Some((scope, lines)) = class {
                lines.push(line(scope, &mut values));
            }
            union.merge(values);
        }
        self.measured.1.push(line(&self.measured.0, &mut union));
        union.merge(take(warmup));
        self.all.1.push(line(&self.all.0, &mut union));
    }

    /// The metrics pooled over tokens.
    fn pools(&mut self, measured: &mut [Part], warmup: &mut Part) {
        let line = |name: &str, scope: &Arc<str>, values: &mut Distribution| {
            SummaryLine::of(name, scope, Unit::Ms, values, MedianInterval::None)
        };
        let describe = |(scope, lines): &mut (Arc<str>, Vec<SummaryLine>), pooled: &mut Pooled| {
            let share = |name: &str, n: u64, share: Option<f64>| {
                SummaryLine::single(name, scope, Unit::Share, Some(n), share)
            };
            let Pooled { gap, itl, streams } = pooled;
            let (shared, n) = (gap.zeros(), gap.n());
            lines.push(line("gap_ms", scope, gap));
            // Token events of one read bear one stamp: what came before the last of them is lost.
            let shared = (n > 0).then(|| shared as f64 / n as f64);
            lines.push(share("shared_read_share", n, shared));
            lines.push(share("bursty_share", streams.told, streams.bursty_share()));
            if let Some(values) = itl.claimed() {
                lines.push(line("itl_ms", scope, values));
            }
        };
        let mut all = Pooled::default();
        for (class, part) in self.classes.iter_mut().zip(measured) {
            let mut pooled = std::mem::take(&mut part.pooled);
            if let Some(class) = class {
                describe(class, &mut pooled);
            }
            all.merge(pooled);
        }
        describe(&mut self.measured, &mut all);
        all.merge(std::mem::take(&mut warmup.pooled));
        describe(&mut self.all, &mut all);
    }

    /// The rates over the window; returns the counts of all measured rows.
    fn rates(&mut self, rates: Rates, measured: &[Part], booked: &[Booked]) -> Tally {
        let mut tally = Tally::default();
        let mut tokens = Booked::default();
        for (place, part) in measured.iter().enumerate() {
            let here = booked.get(place).copied().unwrap_or_default();
            if let Some((scope, lines)) = &mut self.classes[place] {
                rates.lines(lines, scope, &part.tally, here);
                counts(lines, scope, &part.tally);
            }
            tally.merge(&part.tally);
            tokens.add(here);
        }
        let (scope, lines) = &mut self.measured;
        rates.lines(lines, scope, &tally, tokens);
        counts(lines, scope, &tally);
        tally
    }

    fn into_lines(self) -> Vec<SummaryLine> {
        let mut classes: Vec<_> = self.classes.into_iter().flatten().collect();
        classes.sort_by(|a, b| a.0.cmp(&b.0));
        let mut lines = self.measured.1;
        lines.extend(self.all.1);
        lines.extend(classes.into_iter().flat_map(|(_, lines)| lines));
        lines
    }
}

/// What rates are taken over.
#[derive(Clone, Copy)]
struct Rates {
    /// Length of the measured window, when it has one.
    length: Option<Nanos>,
    /// The same, up to the last send where that was later.
    sent_length: Option<Nanos>,
    /// Whether the tokens inside it were counted to the last one.
    basis: Basis,
}

impl Rates {
    fn lines(self, lines: &mut Vec<SummaryLine>, scope: &Arc<str>, tally: &Tally, tokens: Booked) {
        let over = |n: u64, length: Option<Nanos>| length.map(|span| n as f64 / span.as_secs_f64());
        let per_s = |n: u64| over(n, self.length);
        let mut token_rate = |name: &str, account: Account| {
            let n = tokens.of(account);
            let known = account != Account::Input || tokens.of(Account::Uncounted) == 0;
            let value = if known { per_s(n) } else { None };
            let mut line = SummaryLine::single(name, scope, Unit::TokS, Some(n), value);
            line.basis = self.basis;
            lines.push(line);
        };
        token_rate("output_tok_s", Account::Output);
        token_rate("input_tok_s", Account::Input);
        token_rate("wasted_tok_s", Account::Wasted);
        let finished = tokens.of(Account::Finished);
        for (name, n) in [("request_s", finished), ("offered_s", tally.due())] {
            lines.push(SummaryLine::single(name, scope, Unit::ReqS, Some(n), per_s(n)));
        }
        let sent = over(tally.sent, self.sent_length);
        lines.push(SummaryLine::single("sent_s", scope, Unit::ReqS, Some(tally.sent), sent));
    }
}

/// Output over the whole run with its drain: tokens of `ok` rows and of rows cut by us, from `t0` to
/// the last token event.
fn total_rate(
    scope: &Arc<str>,
    warmup: &Part,
    measured: &[Part],
    last_token: Option<Nanos>,
) -> SummaryLine {
    let n = measured.iter().map(|part| part.kept_tok).sum::<u64>() + warmup.kept_tok;
    let value =
        last_token.filter(|last| *last > Nanos::ZERO).map(|last| n as f64 / last.as_secs_f64());
    SummaryLine::single("output_tok_s_total", scope, Unit::TokS, Some(n), value)
}

/// The error rate, and the rows by outcome.
fn counts(lines: &mut Vec<SummaryLine>, scope: &Arc<str>, tally: &Tally) {
    let due = Some(tally.due());
    lines.push(SummaryLine::single("error_rate", scope, Unit::Share, due, tally.error_rate()));
    let mut count = |name: &str, n: u64| {
        lines.push(SummaryLine::single(name, scope, Unit::Count, None, Some(n as f64)));
    };
    count("requests", tally.rows());
    if let Some(times) = tally.resent {
        count("resent", times);
    }
    // `ok` is there even when it is zero; any other outcome only where it occurred.
    count("outcome_ok", tally.count(Outcome::Ok));
    for (outcome, n) in tally.outcomes.iter().filter(|(outcome, _)| **outcome != Outcome::Ok) {
        count(&format!("outcome_{outcome}"), *n);
    }
}
