//! `intervals.csv`: what the rows of a run do not tell, so that both files together give every figure.
//!
//! A line is a piece (see [`Interval`]); lines of the same interval, class, phase and metric add up.
//! The first line says where the measured window begins: metric `window`, at `from_s`. Sums, least and
//! greatest are exact, buckets those of a histogram of three significant digits. Deliberately absent:
//! arithmetic.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use super::line_file::{LineFile, RecorderError};
use crate::columns::{
    Cells, CsvRow, NO_SUCH_VALUE, ReadCell, ReadError, Word, WriteCell, csv_row, number, read_lines,
};
use crate::metrics::{Basis, INTERVAL_S, Interval, IntervalPhase, Pool, Quantity, Squares};
use crate::units::Nanos;

csv_row! {
    /// A line as it stands in the file.
    #[derive(Debug, Default)]
    pub struct IntervalRow {
        /// Where the interval begins, from the start of the run; of metric `window`, the measured window.
        pub from: String => "from_s" in S,
        /// Where it ends. Empty: metric `window`.
        pub to: Option<u64> => "to_s" in S,
        /// Traffic class of the rows. Empty: they have none.
        pub class: Option<Arc<str>> => "class",
        /// `warmup`, `measured` or `drain`: of the row where gaps are told, of the arrival where tokens are.
        pub phase: IntervalPhase => "phase",
        /// What is told: `gap_ms`, `itl_ms`, or `gap_itl_ms` for both at once; `itl_unknown`, `output_tok`, `wasted_tok`, `streams`, `bursty_streams` and `rows` are counts.
        pub metric: String => "metric",
        /// `exact` where every instant was kept, else `histogram`. Empty: metric `window`.
        pub basis: Option<Basis> => "basis",
        /// How many. Empty: metric `window`.
        pub n: Option<u64> => "n",
        /// Sum of the values. Empty: a count.
        pub sum: Option<u128> => "sum_ns" in Ns,
        /// Sum of their squares. Empty: a count, or more than 128 bits hold.
        pub squares: Option<u128> => "sum_sq_ns2" in Ns2,
        /// The least value. Empty: a count.
        pub min: Option<u64> => "min_ns" in Ns,
        /// The greatest value. Empty: a count.
        pub max: Option<u64> => "max_ns" in Ns,
        /// Values by the floor of their bucket, `floor:count` with spaces between. Empty: a count.
        pub buckets: Buckets => "buckets_ns" in Ns,
    }
}

/// Counts by the floor of their bucket.
#[derive(Debug, Default)]
pub struct Buckets(BTreeMap<u64, u64>);

impl<const U: u8> WriteCell<U> for Buckets {
    fn write(&self, line: &mut Vec<u8>) {
        for (place, (floor, count)) in self.0.iter().enumerate() {
            if place > 0 {
                line.push(b' ');
            }
            number(*floor, 1, line);
            line.push(b':');
            number(*count, 1, line);
        }
    }
}

impl<const U: u8> ReadCell<U> for Buckets {
    fn read(text: &str) -> Result<Self, &'static str> {
        let pairs = text.split_ascii_whitespace().map(|pair| {
            let (floor, count) = pair.split_once(':')?;
            Some((floor.parse().ok()?, count.parse().ok()?))
        });
        pairs.collect::<Option<_>>().map(Self).ok_or(NO_SUCH_VALUE)
    }
}

/// The metric of the line that says where the measured window begins.
const WINDOW: &str = "window";

/// Creates the file, and says where the measured window begins.
pub(super) fn create(path: PathBuf, warmup: Nanos) -> Result<LineFile, RecorderError> {
    let mut file = LineFile::create(path, IntervalRow::COLUMNS)?;
    let (from, metric) = (warmup.to_string(), WINDOW.to_owned());
    let window = IntervalRow { from, metric, ..IntervalRow::default() };
    file.write_row(IntervalRow::COLUMNS, &window)?;
    file.flush()?;
    Ok(file)
}

/// Writes a piece.
pub(super) fn write_interval(file: &mut LineFile, interval: Interval) -> Result<(), RecorderError> {
    let Pool { n, sum, squares, bounds, buckets } = interval.pool;
    let row = IntervalRow {
        from: (interval.index * INTERVAL_S).to_string(),
        to: Some((interval.index + 1) * INTERVAL_S),
        class: interval.class,
        phase: interval.phase,
        metric: interval.quantity.word().to_owned(),
        basis: Some(if interval.exact { Basis::Exact } else { Basis::Histogram }),
        n: Some(n),
        sum: bounds.map(|_| sum),
        squares: squares.0.filter(|_| bounds.is_some()),
        min: bounds.map(|(least, _)| least),
        max: bounds.map(|(_, most)| most),
        buckets: Buckets(buckets),
    };
    file.write_row(IntervalRow::COLUMNS, &row)
}

/// A line of the file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    /// Where the measured window begins.
    Window(Nanos),
    /// What it is all about.
    Interval(Interval),
}

/// Reads the file, line by line.
pub(super) fn read_intervals<R: Read>(
    input: R,
) -> Result<impl Iterator<Item = Result<Piece, ReadError>>, ReadError> {
    read_lines(input, "an intervals.csv", IntervalRow::COLUMNS, 0, read_piece)
}

fn read_piece(cells: &mut Cells<'_>) -> Result<Piece, ReadError> {
    let row = IntervalRow::read(cells)?;
    let bad = |column| cells.bad(column, NO_SUCH_VALUE);
    let from = Nanos::parse_seconds(&row.from).map_err(|_| bad("from_s"))?;
    if row.metric == WINDOW {
        return Ok(Piece::Window(from));
    }
    let buckets = row.buckets.0;
    let mut pool = Pool::count(row.n.ok_or_else(|| bad("n"))?);
    if let Some(least) = row.min {
        // A histogram that does not hold as many values as it says is no histogram.
        let held = buckets.values().try_fold(0_u64, |sum, count| sum.checked_add(*count));
        if held != Some(pool.n) {
            return Err(bad("n"));
        }
        pool.sum = row.sum.ok_or_else(|| bad("sum_ns"))?;
        pool.squares = Squares(row.squares);
        pool.bounds = Some((least, row.max.ok_or_else(|| bad("max_ns"))?));
    }
    pool.buckets = buckets;
    Ok(Piece::Interval(Interval {
        index: from.0 / Nanos::from_secs(INTERVAL_S).0,
        class: row.class,
        phase: row.phase,
        quantity: Quantity::parse(&row.metric).ok_or_else(|| bad("metric"))?,
        exact: row.basis == Some(Basis::Exact),
        pool,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::write_header;

    #[test]
    fn a_piece_read_back_equals_the_piece_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("intervals.csv");
        let mut file = create(path.clone(), Nanos(1_000_000_001)).expect("space");
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
            write_interval(&mut file, piece.clone()).expect("space");
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
        let mut text = Vec::new();
        write_header(IntervalRow::COLUMNS, &mut text);
        text.extend_from_slice(b"0,10,,measured,gap_ms,exact,3,6,12,2,2,2:2\n");
        let error = read_intervals(&text[..]).expect("a header").next().expect("a line");
        assert_eq!(
            error.expect_err("two are not three").to_string(),
            "line 2, column `n`: `3` is no such value"
        );
        assert!(read_intervals(&b"a,b\n"[..]).is_err());
    }
}
