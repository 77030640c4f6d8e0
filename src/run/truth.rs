//! A run folder against the log of the simulated server that served it, and what that comes to in words
//! and as JSON.
//!
//! Deliberately absent: the comparison itself (see [`crate::lab`]).

use std::fs::File;
use std::io::BufReader;

use serde_json::{Value, json};

use crate::clock::Anchor;
use crate::columns::ReadError;
use crate::lab::{self, Agreement, TruthCheck};
use crate::record::Row;
use crate::record::csv::read_rows;
use crate::report::{Folder, NONE};
use crate::sim::truth::{self, TruthError, TruthRow};
use crate::units::Nanos;

/// The log of a simulated server, in the folder of its run.
pub(super) const TRUTH: &str = "truth.csv";

/// Why a folder and its log cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// A file of it.
    #[error(transparent)]
    Open(#[from] std::io::Error),
    /// The log.
    #[error(transparent)]
    Truth(#[from] TruthError),
    /// The rows.
    #[error(transparent)]
    Rows(#[from] ReadError),
}

/// The rows of a folder, and the truth about them.
pub(super) fn read_folder(folder: &Folder) -> Result<(Vec<Row>, Vec<TruthRow>), CompareError> {
    let open = |name| File::open(folder.file(name)).map(BufReader::new);
    let log = truth::read(open(TRUTH)?)?;
    let rows = read_rows(open("requests.csv")?)?.collect::<Result<Vec<_>, _>>()?;
    Ok((rows, log))
}

/// Reads both files back and holds one against the other.
pub(super) fn check_folder(folder: &Folder, anchor: Anchor) -> Result<TruthCheck, CompareError> {
    let (rows, log) = read_folder(folder)?;
    Ok(lab::check(&rows, anchor.monotonic, &log))
}

/// `arrival 0.08 / 0.31 / 1.20 ms` and so on.
pub(super) fn describe(check: &TruthCheck) -> String {
    let figures = |agreement: &Agreement| {
        [50, 99, 100].map(|percent| ms(agreement.percentile(percent))).join(" / ")
    };
    format!(
        "against the server's own log ({} requests, {} missing, {} miscounted), error p50 / p99 / max \
         in ms: arrival {}, TTFT {}, gap p50 {}, gap p99 {}",
        check.matched,
        check.missing,
        check.miscounted,
        figures(&check.arrival),
        figures(&check.ttft),
        figures(&check.gap_p50),
        figures(&check.gap_p99),
    )
}

fn ms(span: Option<Nanos>) -> String {
    span.map_or_else(|| NONE.to_owned(), |span| format!("{:.3}", span.as_millis_f64()))
}

/// The same for the manifest.
pub(super) fn manifest(check: &TruthCheck) -> Value {
    let figures = |agreement: &Agreement| {
        let [p50, p99, max] =
            [50, 99, 100].map(|p| agreement.percentile(p).map(Nanos::as_millis_f64));
        json!({ "p50_ms": p50, "p99_ms": p99, "max_ms": max })
    };
    json!({
        "matched": check.matched,
        "missing": check.missing,
        "miscounted": check.miscounted,
        "arrival_error": figures(&check.arrival),
        "ttft_error": figures(&check.ttft),
        "gap_p50_error": figures(&check.gap_p50),
        "gap_p99_error": figures(&check.gap_p99),
    })
}
