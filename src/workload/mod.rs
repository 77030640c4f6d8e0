//! Traffic made up from a description: a workload file (`*.toml`), and the rows it generates.
//!
//! ```toml
//! name = "chat"             # optional; the file's stem otherwise
//! duration = "30s"          # optional end, exclusive; `rows = 1000` ends it too, the earlier wins
//! [arrival]
//! process = "poisson"       # constant | poisson | gamma (with `cv` or `shape` of the gaps)
//! rate = 5.53               # requests per second
//! [input]                   # prompt tokens
//! distribution = "lognormal"   # fixed{tokens} | uniform{min,max} | lognormal{mu,sigma} |
//! mu = 5.24                    # quantiles{q=[0,..,1],tokens=[..]}
//! sigma = 1.84
//! max = 57_284              # optional clip, as is `min`
//! [output]                  # completion tokens, the same words
//! distribution = "fixed"
//! tokens = 200
//! [request]                 # optional: keys for every request's body, passed on as they are
//! temperature = 0.7
//! ```
//!
//! The same file and seed give the same rows, byte for byte, on every machine, and a row is the same
//! however many are drawn (`draw.rs` says how). Nothing here knows when a row will be sent or what it says: no
//! clock, no socket, no runtime; and no state but the time of the last arrival.

mod arrival;
mod draw;
mod error;
mod keys;
mod length;
mod normal;
mod request;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::value::RawValue;
use toml::de::DeTable;

use self::arrival::Arrival;
use self::draw::{Draws, Purpose};
pub use self::error::WorkloadError;
use self::keys::{Keys, Source};
use self::length::Length;
use crate::trace::Request;
use crate::units::Nanos;

/// A workload file is a page; whoever gives a file beyond this meant another one.
const LIMIT_BYTES: u64 = 16 * 1024 * 1024;
/// The most `rows` may ask for.
const LIMIT_ROWS: u64 = 1_000_000_000_000;

/// What to ask for: a parsed workload file.
#[derive(Clone, Debug)]
pub struct Workload {
    name: String,
    duration: Option<Nanos>,
    row_limit: Option<u64>,
    arrival: Arrival,
    input: Length,
    output: Length,
    request: Option<Box<RawValue>>,
}

/// Reads a workload file.
pub fn load(path: &Path) -> Result<Workload, WorkloadError> {
    let file = path.display().to_string();
    let read = || {
        let mut bytes = Vec::new();
        File::open(path)?.take(LIMIT_BYTES + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|source| WorkloadError::Read { file: file.clone(), source })?;
    if bytes.len() as u64 > LIMIT_BYTES {
        return Err(WorkloadError::TooLarge { file, limit_bytes: LIMIT_BYTES });
    }
    let text = std::str::from_utf8(&bytes).map_err(|error| WorkloadError::NotText {
        file: file.clone(),
        byte: error.valid_up_to(),
    })?;
    Workload::parse(text, &file)
}

impl Workload {
    /// Parses a workload file's text; `file_name` names it in errors, and its stem is the workload's
    /// name where the file gives none.
    pub fn parse(text: &str, file_name: &str) -> Result<Self, WorkloadError> {
        let source = Source::new(file_name, text);
        let table = DeTable::parse(text).map_err(|error| {
            let offset = error.span().map_or(text.len(), |span| span.start);
            WorkloadError::Syntax {
                file: file_name.to_owned(),
                line: source.line(offset),
                column: source.column(offset),
                message: error.message().to_owned(),
            }
        })?;
        let mut keys = Keys::top(&source, table.get_ref());
        let name = read_name(&mut keys)?;
        let duration = keys.get("duration").map(|field| field.duration()).transpose()?;
        let row_limit = keys.get("rows").map(|field| field.whole_in(1, LIMIT_ROWS)).transpose()?;
        let arrival = keys.section("arrival", "add [arrival] with a process and a rate")?;
        let input = keys.section("input", "add [input] with a distribution of prompt tokens")?;
        let output = keys.section("output", "add [output] with one of completion tokens")?;
        let request = keys.section_if_any("request")?;
        keys.finish()?;
        Ok(Self {
            name: name.unwrap_or_else(|| stem(file_name)),
            duration,
            row_limit,
            arrival: Arrival::read(arrival)?,
            input: Length::read(input)?,
            output: Length::read(output)?,
            request: request.map(|keys| request::read(&keys)).transpose()?,
        })
    }

    /// The workload's own name, or its file's stem.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What every request's body is to hold beside what the run puts there.
    #[must_use]
    pub fn request(&self) -> Option<&RawValue> {
        self.request.as_deref()
    }

    /// Whether the rows end by themselves: the file says `duration` or `rows`.
    #[must_use]
    pub fn has_end(&self) -> bool {
        self.duration.is_some() || self.row_limit.is_some()
    }

    /// The rows under a seed, in order of arrival; without an end of its own the workload goes on
    /// for 584 years.
    pub fn rows(&self, seed: u64) -> impl Iterator<Item = Request> + Send + use<> + 'static {
        Rows { workload: self.clone(), draws: Draws::new(seed), row: 0, at: Nanos::ZERO }
    }
}

/// The rows of a workload, as far as they have been drawn.
#[derive(Debug)]
struct Rows {
    workload: Workload,
    draws: Draws,
    row: u64,
    at: Nanos,
}

impl Iterator for Rows {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        if self.workload.row_limit.is_some_and(|limit| self.row >= limit) {
            return None;
        }
        let (row, draws) = (self.row, &mut self.draws);
        let at = self.workload.arrival.at(row, self.at, draws);
        // The largest time stands for "never": the sum has overflowed.
        if at >= self.workload.duration.unwrap_or(Nanos::MAX) {
            return None;
        }
        (self.row, self.at) = (row + 1, at);
        Some(Request {
            row,
            at,
            input_tok: self.workload.input.at(draws.of(Purpose::Input, row).uniform()),
            output_tok: self.workload.output.at(draws.of(Purpose::Output, row).uniform()),
            ..Request::default()
        })
    }
}

/// `name`: it becomes part of a folder's name, so it has to be fit for one.
fn read_name(keys: &mut Keys<'_>) -> Result<Option<String>, WorkloadError> {
    let Some(field) = keys.get("name") else { return Ok(None) };
    let name = field.text()?;
    let fit = |c: char| c.is_alphanumeric() || "-_.+ ".contains(c);
    if name.trim().is_empty() || name.starts_with('.') || name.len() > 100 || !name.chars().all(fit)
    {
        let why = "names a folder of results; use letters, digits, - and _ (at most 100 bytes)";
        return Err(field.fail(why));
    }
    Ok(Some(name.to_owned()))
}

fn stem(file_name: &str) -> String {
    let stem = Path::new(file_name).file_stem();
    stem.map_or_else(|| "workload".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests;
