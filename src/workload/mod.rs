//! Traffic made up from a description: a workload file (`*.toml`), and the rows it generates.
//!
//! ```toml
//! name = "chat"             # optional; the file's stem otherwise
//! duration = "30s"          # optional end, exclusive; `rows = 1000` ends it too, the earlier wins
//! [arrival]
//! process = "poisson"
//! rate = 5.53               # requests per second
//! [input]                   # prompt tokens
//! distribution = "lognormal"
//! mu = 5.24
//! sigma = 1.84
//! max = 57_284
//! [output]                  # completion tokens
//! distribution = "fixed"
//! tokens = 200
//! ```
//!
//! `workloads/README.md` lists every section and key. The same file and seed give the same rows, byte for
//! byte, on every machine, and a row is the same however many are drawn (`draw.rs` says how). Nothing here
//! knows when a row will be sent or what it says: no clock, no socket, no runtime.

mod arrival;
mod class;
mod distribution;
mod draw;
mod error;
pub mod fit;
mod keys;
mod length;
mod normal;
mod prefix;
mod request;
mod rows;
pub mod servegen;
mod session;

use std::path::Path;
use std::sync::Arc;

use serde_json::value::RawValue;
use toml::de::DeTable;

use self::arrival::Arrival;
pub use self::arrival::Closed;
use self::class::{Class, Parts};
pub use self::error::WorkloadError;
use self::keys::{Keys, TomlText};
use self::rows::Rows;
use crate::trace::Request;
use crate::trace::read::read_whole;
use crate::units::Nanos;

/// A workload file is a page; whoever gives a file beyond this meant another one.
const LIMIT_BYTES: u64 = 16 * 1024 * 1024;
/// The most classes.
const LIMIT_CLASSES: usize = 1_000;
/// The most `rows` may ask for.
const LIMIT_ROWS: u64 = 1_000_000_000_000;

/// What to ask for: a parsed workload file.
#[derive(Clone, Debug)]
pub struct Workload {
    name: String,
    duration: Option<Nanos>,
    row_limit: Option<u64>,
    streams: Vec<Stream>,
    request: Option<Box<RawValue>>,
    /// Prefix blocks from here on are nobody's yet.
    first_free_id: u64,
}

/// Classes that arrive together.
#[derive(Clone, Debug)]
struct Stream {
    arrival: Arrival,
    classes: Vec<Class>,
}

/// Reads a workload file.
pub fn load(path: &Path) -> Result<Workload, WorkloadError> {
    let file = path.display().to_string();
    let bytes = read_whole(path, LIMIT_BYTES)
        .map_err(|source| WorkloadError::Read { file: file.clone(), source })?
        .ok_or_else(|| WorkloadError::TooLarge { file: file.clone(), limit_bytes: LIMIT_BYTES })?;
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
        let source = TomlText::new(file_name, text);
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
        let request = keys.section_if_any("request")?;
        let request = request.map(|keys| request::read(&keys)).transpose()?;
        let mut first_free_id = 0;
        let streams = read_streams(&mut keys, &mut first_free_id)?;
        keys.finish()?;
        let name = name.unwrap_or_else(|| stem(file_name));
        Ok(Self { name, duration, row_limit, streams, request, first_free_id })
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

    /// What the classes want in the bodies of their requests, by class.
    pub fn class_requests(&self) -> impl Iterator<Item = &RawValue> {
        self.streams.iter().flat_map(|own| &own.classes).filter_map(|class| class.body.as_deref())
    }

    /// Whether the rows end by themselves: the file says `duration` or `rows`.
    #[must_use]
    pub fn has_end(&self) -> bool {
        self.duration.is_some() || self.row_limit.is_some()
    }

    /// Whether its rows end by themselves even where they have no times.
    #[must_use]
    pub fn has_rows_end(&self) -> bool {
        self.row_limit.is_some() || (self.duration.is_some() && self.closed().is_none())
    }

    /// Whether its rows say more than lengths, sessions, classes and blocks.
    #[must_use]
    pub fn has_content(&self) -> bool {
        let says = |class: &Class| class.body.is_some() || class.input.text().is_some();
        self.request.is_some() || self.streams.iter().flat_map(|own| &own.classes).any(says)
    }

    /// The closed loop that it asks for, if it does.
    #[must_use]
    pub fn closed(&self) -> Option<Closed> {
        self.streams.iter().find_map(|stream| match stream.arrival {
            Arrival::Closed(closed) => Some(closed),
            Arrival::Open(_) => None,
        })
    }

    /// How long it goes on, where it says so.
    #[must_use]
    pub fn duration(&self) -> Option<Nanos> {
        self.duration
    }

    /// The classes that have objectives, with these as they were written.
    pub fn slo(&self) -> impl Iterator<Item = (&str, &[String])> {
        let classes = self.streams.iter().flat_map(|stream| &stream.classes);
        classes
            .filter_map(|class| Some((class.name.as_deref()?, &class.slo[..])))
            .filter(|(_, slo)| !slo.is_empty())
    }

    /// The rows under a seed, in time order; without an end of its own the workload goes on for 584
    /// years. `duration` ends the arrivals: sessions that have begun go on to their end.
    pub fn rows(&self, seed: u64) -> impl Iterator<Item = Request> + Send + use<> + 'static {
        Rows::new(Arc::new(self.clone()), seed)
    }

    /// Nothing arrives from this time on.
    fn last_start(&self) -> Nanos {
        // The largest time stands for "never". A closed loop knows no times.
        self.duration.filter(|_| self.closed().is_none()).unwrap_or(Nanos::MAX)
    }
}

/// `[arrival]` with the classes that share it, and the classes that have one of their own.
fn read_streams(keys: &mut Keys<'_>, next_id: &mut u64) -> Result<Vec<Stream>, WorkloadError> {
    let top = keys.section_if_any("arrival")?.map(Arrival::read).transpose()?;
    let parts = Parts::read(keys, next_id)?;
    let listed = keys.sections("class")?;
    let no_arrival = "add [arrival] with a process and a rate";
    if listed.is_empty() {
        let arrival = top.ok_or_else(|| keys.missing("arrival", no_arrival))?;
        return Ok(vec![Stream { arrival, classes: vec![parts.only_class(keys)?] }]);
    }
    if listed.len() > LIMIT_CLASSES {
        let field = keys.need("class", "")?;
        return Err(field.fail(format!("lists more than {LIMIT_CLASSES} classes")));
    }
    let (mut sharing, mut streams) = (Vec::new(), Vec::new());
    for mut section in listed {
        let own = section.section_if_any("arrival")?.map(Arrival::read).transpose()?;
        if let Some(Arrival::Closed(_)) = own {
            let field = section.need("arrival", "")?;
            return Err(field.fail("is a closed loop, which only the whole workload can be"));
        }
        let class = Class::read(&mut section, &parts, next_id)?;
        section.finish()?;
        match own {
            Some(arrival) => {
                streams.push(Stream { arrival, classes: vec![Class { share: 1.0, ..class }] });
            }
            None => sharing.push(class),
        }
    }
    if let Some(Arrival::Closed(_)) = top
        && !streams.is_empty()
    {
        let field = keys.need("arrival", "")?;
        return Err(
            field.fail("is a closed loop, beside which no class can have arrivals of its own")
        );
    }
    if !sharing.is_empty() {
        let arrival = top.ok_or_else(|| keys.missing("arrival", no_arrival))?;
        let total: f64 = sharing.iter().map(|class| class.share).sum();
        for class in &mut sharing {
            class.share /= total;
        }
        streams.insert(0, Stream { arrival, classes: sharing });
    }
    Ok(streams)
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
