//! `intervals.csv`: what the rows of a run do not tell, so that both files together give every figure.
//!
//! A line is a piece (see [`Interval`]); lines of the same interval, class, phase and metric add up.
//! The first line says where the measured window begins: metric `window`, at `from_s`. `buckets_ns`
//! holds `floor:count` pairs of a histogram of three significant digits, `sum_ns`, `sum_sq_ns2`,
//! `min_ns` and `max_ns` are exact. Deliberately absent: arithmetic.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use super::line_file::LineFile;
use super::recorder_error::RecorderError;
use crate::metrics::{INTERVAL_S, Interval, IntervalPhase, Pool, Quantity, Squares};
use crate::units::{NS_PER_S, Nanos};

/// The columns, in order.
pub const INTERVALS_HEADER: [&str; 12] = [
    "from_s",
    "to_s",
    "class",
    "phase",
    "metric",
    "basis",
    "n",
    "sum_ns",
    "sum_sq_ns2",
    "min_ns",
    "max_ns",
    "buckets_ns",
];

/// The metric of the line that says where the measured window begins.
const WINDOW: &str = "window";

/// The file.
#[derive(Debug)]
pub(super) struct IntervalsFile(LineFile);

impl IntervalsFile {
    pub(super) fn create(path: PathBuf, warmup: Nanos) -> Result<Self, RecorderError> {
        let mut file = LineFile::create(path, &INTERVALS_HEADER)?;
        let from_s = format!("{}.{:09}", warmup.0 / NS_PER_S, warmup.0 % NS_PER_S);
        let mut cells = [""; INTERVALS_HEADER.len()];
        (cells[0], cells[3], cells[4]) = (&from_s, IntervalPhase::Measured.word(), WINDOW);
        file.write(&cells)?;
        file.flush()?;
        Ok(Self(file))
    }

    pub(super) fn write(&mut self, interval: &Interval) -> Result<(), RecorderError> {
        let pool = &interval.pool;
        let some = |value: Option<u128>| value.map_or_else(String::new, |value| value.to_string());
        let of_values = |value: u128| some(pool.bounds.map(|_| value));
        let bound = |value: Option<u64>| some(value.map(u128::from));
        let buckets: Vec<String> =
            pool.buckets.iter().map(|(floor, count)| format!("{floor}:{count}")).collect();
        self.0.write(&[
            (interval.index * INTERVAL_S).to_string(),
            ((interval.index + 1) * INTERVAL_S).to_string(),
            interval.class.as_deref().unwrap_or("").to_owned(),
            interval.phase.word().to_owned(),
            interval.quantity.word().to_owned(),
            if interval.exact { "exact" } else { "histogram" }.to_owned(),
            pool.n.to_string(),
            of_values(pool.sum),
            some(pool.squares.0.filter(|_| pool.bounds.is_some())),
            bound(pool.bounds.map(|(least, _)| least)),
            bound(pool.bounds.map(|(_, most)| most)),
            buckets.join(" "),
        ])
    }

    pub(super) fn flush(&mut self) -> Result<(), RecorderError> {
        self.0.flush()
    }
}

/// A line of the file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    /// Where the measured window begins.
    Window(Nanos),
    /// What it is all about.
    Interval(Interval),
}

/// Why an `intervals.csv` cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum IntervalError {
    /// Not CSV, or it cannot be read.
    #[error(transparent)]
    Csv(#[from] csv::Error),
    /// Other columns than expected.
    #[error("not the columns of an intervals.csv (from_s,to_s,class,…)")]
    Header,
    /// A cell does not parse.
    #[error("line {line}, column `{column}`: `{value}` is no such value")]
    Cell {
        /// 1-based line of the file.
        line: u64,
        /// The column's name.
        column: &'static str,
        /// What stands there.
        value: String,
    },
}

/// Reads the file, line by line.
pub(super) fn read_intervals<R: Read>(
    input: R,
) -> Result<impl Iterator<Item = Result<Piece, IntervalError>>, IntervalError> {
    let mut reader = csv::Reader::from_reader(input);
    if !reader.headers()?.iter().take(INTERVALS_HEADER.len()).eq(INTERVALS_HEADER) {
        return Err(IntervalError::Header);
    }
    Ok(reader.into_records().map(|record| parse(&record?)))
}

fn parse(record: &csv::StringRecord) -> Result<Piece, IntervalError> {
    let text = |column: usize| record.get(column).unwrap_or("");
    let wrong = |column: usize| IntervalError::Cell {
        line: record.position().map_or(0, csv::Position::line),
        column: INTERVALS_HEADER[column],
        value: text(column).to_owned(),
    };
    let whole = |column: usize| text(column).parse::<u64>().map_err(|_| wrong(column));
    if text(4) == WINDOW {
        return Nanos::parse_seconds(text(0)).map(Piece::Window).map_err(|_| wrong(0));
    }
    let mut pool = Pool::count(whole(6)?);
    if !text(9).is_empty() {
        pool.sum = text(7).parse().map_err(|_| wrong(7))?;
        pool.squares = match text(8) {
            "" => Squares(None),
            squares => Squares(Some(squares.parse().map_err(|_| wrong(8))?)),
        };
        pool.bounds = Some((whole(9)?, whole(10)?));
    }
    for pair in text(11).split_ascii_whitespace() {
        let parsed = pair.split_once(':').and_then(|(floor, count)| {
            Some((floor.parse::<u64>().ok()?, count.parse::<u64>().ok()?))
        });
        let (floor, count) = parsed.ok_or_else(|| wrong(11))?;
        pool.buckets.insert(floor, count);
    }
    // A histogram that does not hold as many values as it says is no histogram.
    let held = pool.buckets.values().try_fold(0_u64, |sum, count| sum.checked_add(*count));
    if pool.bounds.is_some() && held != Some(pool.n) {
        return Err(wrong(6));
    }
    Ok(Piece::Interval(Interval {
        index: whole(0)? / INTERVAL_S,
        class: Some(text(2)).filter(|class| !class.is_empty()).map(Arc::from),
        phase: IntervalPhase::parse(text(3)).ok_or_else(|| wrong(3))?,
        quantity: Quantity::parse(text(4)).ok_or_else(|| wrong(4))?,
        exact: text(5) == "exact",
        pool,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_read_back_equals_the_piece_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("intervals.csv");
        let mut file = IntervalsFile::create(path.clone(), Nanos(1_000_000_001)).expect("space");
        let mut pool = Pool::default();
        for value in [5, 10_000_000, 10_000_001, u64::MAX, u64::MAX] {
            pool.record(value, 2);
        }
        let piece = |class: Option<&str>, phase, quantity, pool| Interval {
            index: 7,
            class: class.map(Arc::from),
            phase,
            quantity,
            exact: quantity != Quantity::Wasted,
            pool,
        };
        let pieces = [
            piece(Some("a,\"b\""), IntervalPhase::Warmup, Quantity::Gap, pool),
            piece(None, IntervalPhase::Measured, Quantity::Itl, Pool::default()),
            piece(None, IntervalPhase::Drain, Quantity::Wasted, Pool::count(12)),
        ];
        for piece in &pieces {
            file.write(piece).expect("space");
        }
        file.flush().expect("space");
        let bytes = std::fs::read(path).expect("the file");
        let back: Result<Vec<Piece>, _> = read_intervals(&bytes[..]).expect("a header").collect();
        let mut wanted = vec![Piece::Window(Nanos(1_000_000_001))];
        wanted.extend(pieces.map(Piece::Interval));
        assert_eq!(back.expect("pieces"), wanted);
    }

    #[test]
    fn what_does_not_add_up_is_refused_by_line_and_column() {
        let text = INTERVALS_HEADER.join(",") + "\n0,10,,measured,gap_ms,exact,3,6,12,2,2,2:2\n";
        let error = read_intervals(text.as_bytes()).expect("a header").next().expect("a line");
        assert_eq!(
            error.expect_err("two are not three").to_string(),
            "line 2, column `n`: `3` is no such value"
        );
        assert!(read_intervals(&b"a,b\n"[..]).is_err());
    }
}
