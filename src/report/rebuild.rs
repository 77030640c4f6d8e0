//! The figures of a run again, from `requests.csv` and `intervals.csv`; those of the client from `run.json`.
//!
//! The same metrics are fed with the same rows in the same order, and with the pieces that the run's
//! own pooled figures were made of, so that a whole run's `summary.csv` comes out to the last byte. Of
//! a run that was killed it gives what can be given, and says what cannot: a line that was torn is
//! left out, and pieces that were never written leave their figures short or empty. Deliberately
//! absent: guesses.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Take};
use std::path::{Path, PathBuf};

use super::folder::Folder;
use super::intervals_csv::{Piece, read_intervals};
use super::manifest::Manifest;
use super::recorder::{INTERVALS, REQUESTS};
use crate::columns::ReadError;
use crate::metrics::{Metrics, Quantity, Summary, SummaryLine, Window};
use crate::record::csv::read_rows;
use crate::record::{Outcome, Phase, Row, TokenTimes};
use crate::units::Nanos;

/// Figures that only the pieces tell.
const OF_PIECES: [&str; 6] =
    ["gap_ms", "itl_ms", "shared_read_share", "bursty_share", "output_tok_s", "wasted_tok_s"];

/// A run's figures, made again.
#[derive(Debug)]
pub struct Rebuilt {
    /// The figures.
    pub summary: Summary,
    /// What could not be given, a sentence each.
    pub notices: Vec<String>,
}

/// Why the figures cannot be made again.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    /// The file cannot be read.
    #[error("failed to read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There are no rows to make figures of.
    #[error("{} holds no run: it has no requests.csv\nhint: give a folder that `underfire run` wrote", path.display())]
    NoRun {
        /// The folder.
        path: PathBuf,
    },
    /// A file is not what it should be.
    #[error("{}: {source}", path.display())]
    Csv {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ReadError,
    },
}

/// Makes the figures of the run in `folder` again.
pub fn rebuild(folder: &Folder) -> Result<Rebuilt, RebuildError> {
    let mut notices = Vec::new();
    let marks = Marks::of(folder, &mut notices)?;
    let begin = window_begin(folder)?;
    let warmup = begin.unwrap_or_else(|| marks.guessed_begin(&mut notices));
    let mut metrics = Metrics::new(Window { warmup, last_due: marks.last_due });
    let mut told = Coverage::default();
    each_row(folder, |row| {
        metrics.add_row(&row);
        told.rows += 1;
        told.gaps += gaps_of(&row);
    })?;
    let known = add_pieces(folder, &mut metrics, &mut notices)?;
    let mut summary = metrics.finish();
    match known {
        None => {
            summary.lines.retain(|line| &*line.metric != "itl_ms");
            let of_pieces = |line: &&mut SummaryLine| OF_PIECES.contains(&&*line.metric);
            summary.lines.iter_mut().filter(of_pieces).for_each(SummaryLine::clear);
            notices
                .push(format!("there is no {INTERVALS}: {} cannot be given", OF_PIECES.join(", ")));
        }
        Some(known) => notices.extend(shortfall(&told, &known)),
    }
    // A run that did not come to its end left none.
    let manifest = Manifest::read(&folder.file("run.json")).ok();
    if let Some(figures) = manifest.as_ref().and_then(Manifest::client_figures) {
        summary.tell_of_client(&figures);
    }
    Ok(Rebuilt { summary, notices })
}

/// How much a file tells of.
#[derive(Debug, Default)]
struct Coverage {
    rows: u64,
    gaps: u64,
}

/// Gaps between token events that the pieces should hold of a row.
fn gaps_of(row: &Row) -> u64 {
    let takes_part = row.outcome == Outcome::Ok || row.outcome.is_censored();
    let kept = row.chunks.filter(|_| takes_part).unwrap_or(0).min(TokenTimes::LIMIT as u64);
    kept.saturating_sub(1)
}

/// Where rows and pieces do not tell of the same.
fn shortfall(rows: &Coverage, pieces: &Coverage) -> Vec<String> {
    let mut notices = Vec::new();
    let missing = rows.rows.saturating_sub(pieces.rows);
    if missing > 0 {
        notices.push(format!(
            "{missing} of {} rows ended after {INTERVALS} was last written: their tokens are missing \
             from output_tok_s and wasted_tok_s",
            rows.rows
        ));
    }
    let unknown = pieces.rows.saturating_sub(rows.rows);
    if unknown > 0 {
        notices.push(format!("{unknown} rows that {INTERVALS} counts are not in {REQUESTS}"));
    }
    let missing = rows.gaps.saturating_sub(pieces.gaps);
    if missing > 0 {
        notices.push(format!(
            "{missing} of {} token gaps came after {INTERVALS} was last written with them: they are \
             missing from gap_ms and itl_ms",
            rows.gaps
        ));
    }
    notices
}

/// What has to be known before the first row is added.
#[derive(Debug, Default)]
struct Marks {
    last_due: Option<Nanos>,
    first_measured: Option<Nanos>,
    warmup_rows: u64,
}

impl Marks {
    fn of(folder: &Folder, notices: &mut Vec<String>) -> Result<Self, RebuildError> {
        let mut marks = Self::default();
        let torn = each_row(folder, |row| {
            marks.last_due = marks.last_due.max(row.scheduled);
            match (row.phase, row.scheduled) {
                (Phase::Warmup, _) => marks.warmup_rows += 1,
                (Phase::Measured, Some(due)) => {
                    marks.first_measured =
                        Some(marks.first_measured.map_or(due, |first| first.min(due)));
                }
                (Phase::Measured, None) => {}
            }
        })?;
        if torn {
            notices.push(format!("the last line of {REQUESTS} is torn, and left out"));
        }
        Ok(marks)
    }

    fn guessed_begin(&self, notices: &mut Vec<String>) -> Nanos {
        if self.warmup_rows == 0 {
            return Nanos::ZERO;
        }
        notices.push(
            "where the measured window begins is not known: it is taken to begin with its first row"
                .to_owned(),
        );
        self.first_measured.or(self.last_due).unwrap_or_default()
    }
}

/// Calls `each` with every whole row; true when the last one was torn.
fn each_row(folder: &Folder, mut each: impl FnMut(Row)) -> Result<bool, RebuildError> {
    let path = folder.file(REQUESTS);
    let Some((lines, torn)) = whole_lines(&path)? else {
        return Err(RebuildError::NoRun { path: folder.path().to_owned() });
    };
    let wrong = |source| RebuildError::Csv { path: path.clone(), source };
    let rows = read_rows(lines).map_err(wrong)?;
    let torn_row = until_torn(rows, |row| {
        each(row);
        Ok(())
    })
    .map_err(wrong)?;
    Ok(torn || torn_row)
}

/// Where the measured window begins, as the first line of the pieces says.
fn window_begin(folder: &Folder) -> Result<Option<Nanos>, RebuildError> {
    let path = folder.file(INTERVALS);
    let Some((lines, _)) = whole_lines(&path)? else { return Ok(None) };
    let mut pieces = match read_intervals(lines) {
        Ok(pieces) => pieces,
        Err(source) => return Err(RebuildError::Csv { path, source }),
    };
    Ok(match pieces.next() {
        Some(Ok(Piece::Window(begin))) => Some(begin),
        _ => None,
    })
}

/// Adds the pieces; how much they tell of, or `None` when there are none.
fn add_pieces(
    folder: &Folder,
    metrics: &mut Metrics,
    notices: &mut Vec<String>,
) -> Result<Option<Coverage>, RebuildError> {
    let path = folder.file(INTERVALS);
    let Some((lines, torn)) = whole_lines(&path)? else { return Ok(None) };
    let wrong = |source| RebuildError::Csv { path: path.clone(), source };
    let mut told = Coverage::default();
    let pieces = read_intervals(lines).map_err(wrong)?;
    let torn_piece = until_torn(pieces, |piece| {
        if let Piece::Interval(interval) = piece {
            match interval.quantity {
                Quantity::Rows => told.rows += interval.pool.n,
                quantity if quantity.is_gaps() => told.gaps += interval.pool.n,
                _ => {}
            }
            metrics.add_interval(&interval);
        }
        Ok(())
    })
    .map_err(wrong)?;
    if torn || torn_piece {
        notices.push(format!("the last line of {INTERVALS} is torn, and left out"));
    }
    Ok(Some(told))
}

/// Takes items until the end. An error of the very last one means that it is torn (true); any other
/// is an error.
fn until_torn<T, E>(
    items: impl Iterator<Item = Result<T, E>>,
    mut take: impl FnMut(T) -> Result<(), E>,
) -> Result<bool, E> {
    let mut items = items.peekable();
    while let Some(item) = items.next() {
        match item {
            Ok(item) => take(item)?,
            Err(_) if items.peek().is_none() => return Ok(true),
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

/// The file up to its last line end, and whether there was more; `None` when there is no such file.
#[expect(clippy::type_complexity, reason = "a reader and a flag")]
fn whole_lines(path: &Path) -> Result<Option<(BufReader<Take<File>>, bool)>, RebuildError> {
    let failed = |source| RebuildError::Io { path: path.to_owned(), source };
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let length = file.metadata().map_err(failed)?.len();
    let whole = last_line_end(&mut file, length).map_err(failed)?;
    file.rewind().map_err(failed)?;
    Ok(Some((BufReader::new(file.take(whole)), whole < length)))
}

/// Just behind the last line feed.
fn last_line_end(file: &mut File, length: u64) -> io::Result<u64> {
    const STEP: u64 = 64 * 1024;
    let mut end = length;
    while end > 0 {
        let start = end.saturating_sub(STEP);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.by_ref().take(end - start).read_to_end(&mut bytes)?;
        if let Some(at) = bytes.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests;
