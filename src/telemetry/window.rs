//! What a server did in a window of time: rates, means, shares and histograms.
//!
//! Rates are growth between the first and the last reading inside, over the time between these, not over
//! the window's nominal length. Servers add up; a share is formed of what was added up, never averaged.
//! Deliberately absent: words, and filling in of what a server does not tell.

use std::collections::BTreeMap;

use super::histogram::{Histogram, Percentile};
use super::reading::Stepped;
use super::rules::{Counter, Gauge, Latency, Moves, Rules};
use super::track::{Span, Track};
use crate::units::Nanos;

/// A window of one server, or of several together.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// The first reading inside.
    pub from: Nanos,
    /// The last.
    pub to: Nanos,
    /// Time that counts: without what lies around restarts. Of several servers, the least.
    pub measured: Nanos,
    /// Spans left out.
    pub restarts: u32,
    /// By how much the time between the first reading and the last may be off: a server may have read its
    /// counters anywhere between question and answer.
    pub stamp_error: Nanos,
    /// Growth of counters.
    pub grown: BTreeMap<Counter, f64>,
    /// The same per second.
    pub rates: BTreeMap<Counter, f64>,
    /// Means over the readings.
    pub gauges: BTreeMap<Gauge, f64>,
    /// Growth of histograms.
    pub latencies: BTreeMap<Latency, Histogram>,
    /// Completion tokens per second.
    pub generation: Option<Generation>,
}

/// Completion tokens per second, and how well they are known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Generation {
    /// The rate.
    pub tok_s: f64,
    /// When the counter behind it moves.
    pub moves: Moves,
    /// Made of something that grows with the tokens, not of a count of them.
    pub is_estimate: bool,
    /// How far the rate may be off, for the counter's coarseness and the times of reading it; `None` where that is not known.
    pub error_tok_s: Option<f64>,
}

impl Window {
    /// What one server did between two instants; `None` without two readings of one process in there.
    #[must_use]
    pub fn of(track: &Track, from: Nanos, to: Nanos) -> Option<Self> {
        let spans: Vec<&Span> = track.spans(from, to).collect();
        let whole: Vec<&Span> = spans.iter().copied().filter(|span| !span.is_broken).collect();
        let mut window = Self {
            from: spans.first()?.from.at,
            to: spans.last()?.to.at,
            stamp_error: spans.first()?.from.half_width + spans.last()?.to.half_width,
            restarts: u32::try_from(spans.len() - whole.len()).unwrap_or(u32::MAX),
            ..Self::default()
        };
        whole.first()?;
        for span in &whole {
            window.measured += span.to.at.since(span.from.at);
            for (counter, grown) in &span.grown {
                *window.grown.entry(*counter).or_default() += grown;
            }
            for (latency, grown) in &span.latencies {
                window.latencies.entry(*latency).or_default().add(grown);
            }
            for (gauge, value) in &span.gauges {
                *window.gauges.entry(*gauge).or_default() += value / whole.len() as f64;
            }
        }
        if window.measured == Nanos::ZERO {
            return None;
        }
        let seconds = window.measured.as_secs_f64();
        // A figure counts where every span has it: half a window of it is no rate.
        window.grown.retain(|counter, _| whole.iter().all(|span| span.grown.contains_key(counter)));
        window.gauges.retain(|gauge, _| whole.iter().all(|span| span.gauges.contains_key(gauge)));
        window.look_up_cache(track.rules()?);
        window.rates =
            window.grown.iter().map(|(counter, grown)| (*counter, grown / seconds)).collect();
        let moves = track.rules()?.moves;
        window.generation = window.generation_of(&whole, moves, seconds).map(|mut rate| {
            let stamps = rate.tok_s * window.stamp_error.as_secs_f64() / seconds;
            rate.error_tok_s = rate.error_tok_s.map(|error| error + stamps);
            rate
        });
        Some(window)
    }

    /// The cache's queries and hits, from prompt tokens where it does not count its own.
    fn look_up_cache(&mut self, rules: &Rules) {
        let of = |counter| self.grown.get(&counter).copied();
        if of(Counter::CacheQueries).is_some() {
            return;
        }
        if let Some((hits, prompt)) = of(Counter::Cached).zip(of(Counter::Prompt)) {
            let queries = if rules.prompt_is_computed { prompt + hits } else { prompt };
            self.grown.extend([(Counter::CacheQueries, queries), (Counter::CacheHits, hits)]);
        }
    }

    fn generation_of(&self, spans: &[&Span], moves: Moves, seconds: f64) -> Option<Generation> {
        let rate = |counter| self.rates.get(&counter).copied();
        let running = self.gauges.get(&Gauge::Running);
        if moves == Moves::PerStep {
            // One step more or less at either end.
            let error_tok_s = running.map(|running| running / seconds);
            let tok_s = rate(Counter::Generation)?;
            return Some(Generation { tok_s, moves, is_estimate: false, error_tok_s });
        }
        let stepped: Option<Vec<Stepped>> = spans.iter().map(|span| span.stepped).collect();
        if let Some(stepped) = stepped {
            let tok: f64 = stepped.iter().map(|stepped| stepped.tok).sum();
            // Errors between readings cancel out; those of the two ends stay.
            let error = stepped.iter().map(|stepped| stepped.error_tok).fold(0.0, f64::max);
            let error_tok_s = Some((error + running.unwrap_or(&0.0)) / seconds);
            let (tok_s, moves) = (tok.max(0.0) / seconds, Moves::PerStep);
            return Some(Generation { tok_s, moves, is_estimate: true, error_tok_s });
        }
        if let Some(tok_s) = rate(Counter::RunningGeneration) {
            let (moves, error_tok_s) = (Moves::PerInterval, None);
            return Some(Generation { tok_s, moves, is_estimate: false, error_tok_s });
        }
        let tok_s = rate(Counter::Generation)?;
        // With none ended, an idle server and a busy one look the same to this count.
        let is_idle = running.is_some_and(|running| *running <= 0.0);
        if tok_s <= 0.0 && !is_idle {
            return None;
        }
        // Requests end by chance: two standard deviations of a count of so many.
        let ended = self.grown.get(&Counter::Finished).filter(|ended| **ended > 0.0);
        let error_tok_s = ended.map(|ended| 2.0 * tok_s / ended.sqrt());
        Some(Generation { tok_s, moves, is_estimate: false, error_tok_s })
    }

    /// Adds another server. A figure that one of them lacks is lacking.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.from = self.from.min(other.from);
        self.to = self.to.max(other.to);
        self.measured = self.measured.min(other.measured);
        self.stamp_error = self.stamp_error.max(other.stamp_error);
        self.restarts += other.restarts;
        let add = |a: &mut f64, b: &f64| *a += b;
        join(&mut self.grown, &other.grown, |_, a, b| add(a, b));
        join(&mut self.rates, &other.rates, |_, a, b| add(a, b));
        join(&mut self.gauges, &other.gauges, |gauge, a, b| match gauge {
            Gauge::Running | Gauge::Waiting => add(a, b),
            Gauge::KvUse | Gauge::CacheHitRate | Gauge::AcceptanceRate | Gauge::MeanBatch => {
                *a = a.max(*b);
            }
        });
        join(&mut self.latencies, &other.latencies, |_, a, b| a.add(b));
        self.generation = self.generation.zip(other.generation).map(|(a, b)| Generation {
            tok_s: a.tok_s + b.tok_s,
            moves: if a.moves == Moves::PerStep { b.moves } else { a.moves },
            is_estimate: a.is_estimate || b.is_estimate,
            error_tok_s: a.error_tok_s.zip(b.error_tok_s).map(|(a, b)| a + b),
        });
        self
    }

    /// A gauge's mean.
    #[must_use]
    pub fn gauge(&self, gauge: Gauge) -> Option<f64> {
        self.gauges.get(&gauge).copied()
    }

    /// A counter's growth per second.
    #[must_use]
    pub fn rate(&self, counter: Counter) -> Option<f64> {
        self.rates.get(&counter).copied()
    }

    /// A percentile of what came in; `None` where it would be no more than the largest of few values.
    #[must_use]
    pub fn percentile(&self, latency: Latency, share: f64) -> Option<Percentile> {
        let histogram = self.latencies.get(&latency)?;
        // A little less than one value beyond it is one, but for the rounding of the share.
        let beyond = histogram.count * (1.0 - share);
        if beyond < 0.999 { None } else { histogram.percentile(share) }
    }

    /// Completion tokens per request, of those that finished; `None` where none did.
    #[must_use]
    pub fn mean_completion_tok(&self) -> Option<f64> {
        self.share(Counter::FinishedTokens, Counter::Finished)
    }

    /// Share of prompt tokens that came from the prefix cache; where it is not counted, as the server
    /// averages it.
    #[must_use]
    pub fn cache_hit_share(&self) -> Option<f64> {
        self.share(Counter::CacheHits, Counter::CacheQueries)
            .or_else(|| self.gauge(Gauge::CacheHitRate))
    }

    /// Share of drafted tokens that were accepted; `None` where none were drafted.
    #[must_use]
    pub fn acceptance(&self) -> Option<f64> {
        let averaged = || self.gauge(Gauge::AcceptanceRate).filter(|share| *share > 0.0);
        self.share(Counter::Accepted, Counter::Drafted).or_else(averaged)
    }

    fn share(&self, part: Counter, whole: Counter) -> Option<f64> {
        // Less than one is none, whatever a page says: these are counts.
        let whole = self.grown.get(&whole).filter(|whole| **whole >= 1.0)?;
        Some(self.grown.get(&part)? / whole)
    }
}

fn join<K: Ord + Copy, V>(
    into: &mut BTreeMap<K, V>,
    from: &BTreeMap<K, V>,
    add: impl Fn(K, &mut V, &V),
) {
    into.retain(|key, _| from.contains_key(key));
    for (key, value) in into {
        add(*key, value, &from[key]);
    }
}
