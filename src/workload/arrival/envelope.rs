//! How the rate goes up and down: a curve of factors on it, straight between its points.
//!
//! Every kind is compiled to pieces of time in which the factor goes in a straight line, so that the
//! area below it, which is the process's own time, has an exact inverse. After the last piece the
//! curve begins again, or its last factor holds for ever.

use std::sync::Arc;

use super::super::WorkloadError;
use super::super::distribution::whole;
use super::super::keys::{Field, Keys};
use crate::units::{NS_PER_S, Nanos};

const KINDS: [&str; 5] = ["ramp", "steps", "spike", "diurnal", "curve"];
/// Pieces of a day: every quarter of an hour, where the line is within 0.06% of the wave.
const DAY_PIECES: u32 = 96;
/// The most pieces.
const LIMIT_PIECES: usize = 1_000_000;
/// The largest factor.
const LIMIT_FACTOR: f64 = 1e6;

/// A curve of factors.
#[derive(Clone, Debug)]
pub(super) struct Envelope {
    pieces: Arc<[Piece]>,
    /// What lies below one round of the curve.
    area: f64,
    repeats: bool,
}

/// A stretch of time in which the factor goes straight.
#[derive(Clone, Copy, Debug)]
struct Piece {
    start: Nanos,
    span_s: f64,
    from: f64,
    to: f64,
}

impl Piece {
    /// The area from `x` seconds into it to its end.
    fn area_from(&self, x: f64) -> f64 {
        0.5 * (self.factor_at(x) + self.to) * (self.span_s - x)
    }

    fn factor_at(&self, x: f64) -> f64 {
        self.from + self.slope() * x
    }

    fn slope(&self) -> f64 {
        (self.to - self.from) / self.span_s
    }

    /// Seconds from `x` on until `area` is passed: the root of slope/2·d² + factor·d = area, in the form
    /// that does not cancel.
    fn seconds_for(&self, x: f64, area: f64) -> f64 {
        let factor = self.factor_at(x);
        let root = libm::sqrt((factor * factor + 2.0 * self.slope() * area).max(0.0));
        if factor + root > 0.0 { 2.0 * area / (factor + root) } else { 0.0 }
    }
}

impl Envelope {
    /// Reads `[arrival.envelope]`.
    pub(super) fn read(mut keys: Keys<'_>) -> Result<Self, WorkloadError> {
        let kind = keys.need("kind", "write for example kind = \"ramp\"")?;
        let mut curve = Curve::default();
        let mut repeats = false;
        match kind.text()? {
            "ramp" => {
                let over =
                    keys.need("over", "it is how long it takes, for example over = \"10m\"")?;
                let (from, to) = (factor(&mut keys, "from")?, factor(&mut keys, "to")?);
                curve.add(over.duration()?, from, to);
            }
            "steps" => {
                let list = keys.need("factors", "it lists a factor on the rate for each step")?;
                let every = keys.need("every", "it is how long a step lasts, as \"60s\"")?;
                let every = every.duration()?;
                for factor in factors(&list)? {
                    curve.add(every, factor, factor);
                }
                repeats = keys.get("repeat").map_or(Ok(false), |field| field.truth())?;
            }
            "spike" => spike(&mut keys, &mut curve)?,
            "diurnal" => {
                diurnal(&mut keys, &mut curve)?;
                repeats = true;
            }
            "curve" => {
                let file = keys.need("file", "it names a CSV of `t_s,factor`")?;
                read_curve(&file, &mut curve)?;
                repeats = keys.get("repeat").map_or(Ok(false), |field| field.truth())?;
            }
            _ => return Err(kind.unknown_word("kind", &KINDS)),
        }
        keys.finish()?;
        let area: f64 = curve.pieces.iter().map(|piece| piece.area_from(0.0)).sum();
        if curve.pieces.is_empty() || area <= 0.0 {
            return Err(kind.fail("lets nothing arrive; some factor must be above zero"));
        }
        Ok(Self { pieces: curve.pieces.into(), area, repeats })
    }

    fn last(&self) -> Piece {
        self.pieces[self.pieces.len() - 1]
    }

    /// How long one round is.
    fn period(&self) -> Nanos {
        self.last().start + seconds(self.last().span_s)
    }
}

/// Pieces one after the other.
#[derive(Default)]
struct Curve {
    pieces: Vec<Piece>,
    end: Nanos,
}

impl Curve {
    fn add(&mut self, span: Nanos, from: f64, to: f64) {
        if span > Nanos::ZERO {
            self.pieces.push(Piece { start: self.end, span_s: span.as_secs_f64(), from, to });
            self.end += span;
        }
    }
}

fn factor(keys: &mut Keys<'_>, name: &'static str) -> Result<f64, WorkloadError> {
    let field = keys.need(name, "it is a factor on the rate, for example 2.0")?;
    field.number_in(0.0, LIMIT_FACTOR)
}

fn factors(list: &Field<'_>) -> Result<Vec<f64>, WorkloadError> {
    let factors = list.numbers()?;
    if factors.is_empty() || factors.len() > LIMIT_PIECES {
        let n = factors.len();
        return Err(list.fail(format!("has {n} factors; it must have from 1 to {LIMIT_PIECES}")));
    }
    match factors.iter().find(|factor| !(0.0..=LIMIT_FACTOR).contains(*factor)) {
        Some(bad) => Err(list.fail(format!("holds {bad}; it must be from 0 to {LIMIT_FACTOR}"))),
        None => Ok(factors),
    }
}

/// The rate as it is, then so many times as much for a while.
fn spike(keys: &mut Keys<'_>, curve: &mut Curve) -> Result<(), WorkloadError> {
    let top = factor(keys, "factor")?;
    let at = keys.need("at", "it is when the spike begins, as \"5m\"")?.duration()?;
    let lasts = keys.need("lasts", "it is how long the spike lasts, as \"30s\"")?.duration()?;
    let rise = keys.get("rise").map_or(Ok(Nanos::ZERO), |field| field.duration())?;
    curve.add(at, 1.0, 1.0);
    curve.add(rise, 1.0, top);
    curve.add(lasts, top, top);
    curve.add(rise, top, 1.0);
    curve.add(Nanos::from_secs(1), 1.0, 1.0);
    Ok(())
}

/// A wave between `trough` and `peak`, which it reaches at `peak_at`.
fn diurnal(keys: &mut Keys<'_>, curve: &mut Curve) -> Result<(), WorkloadError> {
    let peak = factor(keys, "peak")?;
    let low_field = keys.need("trough", "it is the least factor on the rate, for example 0.4")?;
    let low = low_field.number_in(0.0, LIMIT_FACTOR)?;
    if low > peak {
        return Err(low_field.fail(format!("is {low}, above the `peak` of {peak}")));
    }
    let period = keys.get("period").map(|field| field.duration()).transpose()?;
    let period = period.unwrap_or(Nanos::from_secs(86_400));
    let peak_at = keys.get("peak_at").map_or(Ok(Nanos::ZERO), |field| field.duration())?;
    let turn = std::f64::consts::TAU / f64::from(DAY_PIECES);
    let phase = std::f64::consts::TAU * (peak_at.as_secs_f64() / period.as_secs_f64());
    let value = |piece: u32| {
        let wave = libm::cos(f64::from(piece) * turn - phase);
        (0.5 * (peak + low) + 0.5 * (peak - low) * wave).max(0.0)
    };
    for piece in 0..DAY_PIECES {
        let edge = |at: u32| u128::from(period.0) * u128::from(at) / u128::from(DAY_PIECES);
        let span = u64::try_from(edge(piece + 1) - edge(piece)).unwrap_or(u64::MAX);
        curve.add(Nanos(span), value(piece), value(piece + 1));
    }
    Ok(())
}

/// Straight lines between the points of a CSV with the header `t_s,factor`.
fn read_curve(file: &Field<'_>, curve: &mut Curve) -> Result<(), WorkloadError> {
    let path = file.file()?;
    let shown = path.display();
    let fail = |why: String| file.fail(format!("names {shown}, {why}"));
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_path(&path)
        .map_err(|error| fail(format!("which cannot be read: {error}")))?;
    let header = reader.headers().map_err(|error| fail(format!("which is no CSV: {error}")))?;
    if header.iter().take(2).ne(["t_s", "factor"]) {
        return Err(fail("which does not begin with the line `t_s,factor`".to_owned()));
    }
    let mut before: Option<(Nanos, f64)> = None;
    for record in reader.records() {
        let record = record.map_err(|error| fail(format!("which is no CSV: {error}")))?;
        let line = record.position().map_or(0, csv::Position::line);
        let cell = |at: usize| record.get(at).unwrap_or_default();
        let at = Nanos::parse_seconds(cell(0))
            .map_err(|error| fail(format!("line {line}, `t_s`: {error}")))?;
        let factor = cell(1).parse().ok().filter(|value| (0.0..=LIMIT_FACTOR).contains(value));
        let factor = factor.ok_or_else(|| {
            fail(format!("line {line}: `factor` is {}, not from 0 to {LIMIT_FACTOR}", cell(1)))
        })?;
        match before {
            // Before the first point its factor holds.
            None => curve.add(at, factor, factor),
            Some((last, _)) if last > at => {
                return Err(fail(format!("line {line}: `t_s` goes back")));
            }
            Some((last, from)) => curve.add(at.since(last), from, factor),
        }
        if curve.pieces.len() > LIMIT_PIECES {
            return Err(fail(format!("which has more than {LIMIT_PIECES} points")));
        }
        before = Some((at, factor));
    }
    Ok(())
}

/// A place on the curve.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor {
    /// When this round of the curve began.
    round: Nanos,
    piece: usize,
    /// Seconds into the piece.
    x: f64,
}

impl Cursor {
    /// Goes on until the area below the curve is `area` more, and says when that is; the largest time
    /// where it never is.
    pub(super) fn advance(&mut self, envelope: &Envelope, mut area: f64) -> Nanos {
        loop {
            if let Some(piece) = envelope.pieces.get(self.piece) {
                let rest = piece.area_from(self.x);
                if area < rest {
                    self.x += piece.seconds_for(self.x, area);
                    return self.round + piece.start + seconds(self.x);
                }
                area -= rest;
                (self.piece, self.x) = (self.piece + 1, 0.0);
                continue;
            }
            if !envelope.repeats {
                // `x` counts on from the end of the last piece, whose last factor holds.
                self.x += area / envelope.last().to;
                return envelope.period() + seconds(self.x);
            }
            // Whole rounds are passed at once, or a long silence would take as long to reckon.
            let rounds = libm::floor(area / envelope.area);
            area -= rounds * envelope.area;
            let passed = u128::from(envelope.period().0) * u128::from(whole(rounds) + 1);
            self.round += Nanos(u64::try_from(passed).unwrap_or(u64::MAX));
            if self.round == Nanos::MAX {
                return Nanos::MAX;
            }
            (self.piece, self.x) = (0, 0.0);
        }
    }
}

fn seconds(s: f64) -> Nanos {
    Nanos(whole(s * NS_PER_S as f64))
}
