//! `ServeGen`'s client folders as a generator: rate windows × clients × distributions of lengths.
//!
//! Each client has `chunk-N-trace.csv` (a line per ten minutes: rate, and the shape of its gaps) and
//! `chunk-N-dataset.json` (distributions of lengths per six hours). A window gets exactly the requests
//! that its rate says; their gaps are drawn with the recorded shape and brought to the window's length,
//! since the recorded scales do not agree with the rates. Prompt and completion lengths are drawn apart
//! (one draw for both would tie their ranks). A client is a class. Rows depend on seed, client, window and
//! place alone, and one window's rows are held at a time.
//!
//! Deliberately absent: images, audio and video, and the split of an answer into reasoning and the rest.

mod read;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::draw::{Draws, Purpose};
use crate::trace::Request;
use crate::units::{NS_PER_S, Nanos};

/// Requests of one client in one window; draws are numbered within it.
const LIMIT_REQUESTS: u64 = 1 << 24;

/// A folder that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ServeGenError {
    /// A file that cannot be read.
    #[error("failed to read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Something in a file.
    #[error("{}, {place}, `{field}`: {problem}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// Line, or key of the window.
        place: String,
        /// Column or key.
        field: &'static str,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// No client with both files.
    #[error(
        "{} holds no client: each needs chunk-N-trace.csv and chunk-N-dataset.json", path.display()
    )]
    NoClients {
        /// The folder.
        path: PathBuf,
    },
}

/// The clients of a folder.
#[derive(Clone, Debug)]
pub struct ServeGen {
    clients: Arc<Vec<Client>>,
    /// Starts of all windows, in seconds.
    starts_s: Arc<Vec<u64>>,
    name: String,
    notices: Vec<String>,
}

#[derive(Debug)]
struct Client {
    name: Arc<str>,
    /// In order of their starts.
    windows: Vec<Window>,
    /// In order of their starts; those in which the client was idle have none.
    lengths: Vec<(u64, PairOfLengths)>,
}

/// Ten minutes of a client.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Window {
    start_s: u64,
    end_s: u64,
    requests: u64,
    gaps: Gaps,
}

/// The shape of gaps; their scale follows from the rate.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Gaps {
    Exponential,
    Gamma(f64),
    Weibull(f64),
}

#[derive(Debug)]
struct PairOfLengths {
    input: Lengths,
    output: Lengths,
}

/// A distribution over lengths.
#[derive(Debug, PartialEq)]
struct Lengths {
    tok: Vec<u32>,
    /// Up to 1 at the end.
    cumulative: Vec<f64>,
}

impl Lengths {
    fn at(&self, share: f64) -> u32 {
        let place = self.cumulative.partition_point(|&sum| sum < share);
        self.tok[place.min(self.tok.len() - 1)]
    }
}

/// Whether a folder is one of these.
#[must_use]
pub fn is_servegen(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| read::client_number(&entry.path()).is_some())
}

/// Reads a folder.
pub fn load(folder: &Path) -> Result<ServeGen, ServeGenError> {
    let found = read::folder(folder)?;
    let mut starts_s: Vec<u64> = found
        .clients
        .iter()
        .flat_map(|client| client.windows.iter().map(|window| window.start_s))
        .collect();
    starts_s.sort_unstable();
    starts_s.dedup();
    let name = folder.file_name().map_or("servegen".into(), |name| name.to_string_lossy());
    Ok(ServeGen {
        clients: Arc::new(found.clients),
        starts_s: Arc::new(starts_s),
        name: name.into_owned(),
        notices: found.notices,
    })
}

impl ServeGen {
    /// The folder's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many requests there are in all.
    #[must_use]
    pub fn requests(&self) -> u64 {
        let windows = self.clients.iter().flat_map(|client| &client.windows);
        windows.map(|window| window.requests).sum()
    }

    /// What a person should know, a line each.
    #[must_use]
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// The rows under a seed, in order of arrival.
    pub fn rows(&self, seed: u64) -> impl Iterator<Item = Request> + Send + use<> + 'static {
        let draws = (0..self.clients.len()).map(|client| Draws::new(seed, client as u64)).collect();
        Rows { source: self.clone(), draws, window: 0, row: 0, ready: VecDeque::new() }
    }
}

struct Rows {
    source: ServeGen,
    /// Of each client.
    draws: Vec<Draws>,
    window: usize,
    row: u64,
    ready: VecDeque<Request>,
}

impl Rows {
    /// Makes the rows of the windows that begin at one time.
    fn fill(&mut self, start_s: u64) {
        let mut made = Vec::new();
        let clients = Arc::clone(&self.source.clients);
        for (client, draws) in clients.iter().zip(&mut self.draws) {
            let place = client.windows.binary_search_by_key(&start_s, |window| window.start_s);
            if let Ok(place) = place {
                client.rows(place, draws, &mut made);
            }
        }
        // Stable: rows of equal time stay in the order of their clients.
        made.sort_by_key(|request| request.at);
        for request in &mut made {
            request.row = self.row;
            self.row += 1;
        }
        self.ready = made.into();
    }
}

impl Iterator for Rows {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        loop {
            if let Some(request) = self.ready.pop_front() {
                return Some(request);
            }
            let start_s = *self.source.starts_s.get(self.window)?;
            self.window += 1;
            self.fill(start_s);
        }
    }
}

impl Client {
    /// The lengths of the stretch that holds a time, else of the nearest.
    fn lengths_at(&self, start_s: u64) -> &PairOfLengths {
        let after = self.lengths.partition_point(|(start, _)| *start <= start_s);
        &self.lengths[after.saturating_sub(1)].1
    }

    fn rows(&self, place: usize, draws: &mut Draws, made: &mut Vec<Request>) {
        let window = self.windows[place];
        if window.requests == 0 {
            return;
        }
        let key = |request: u64| place as u64 * LIMIT_REQUESTS + request;
        let mut ends = Vec::with_capacity(usize::try_from(window.requests + 1).unwrap_or(0));
        let mut sum = 0.0;
        for request in 0..=window.requests {
            let mut draw = draws.of(Purpose::Gap, key(request));
            sum += match window.gaps {
                Gaps::Exponential => draw.exponential(),
                Gaps::Gamma(shape) => draw.gamma(shape),
                Gaps::Weibull(shape) => draw.weibull(shape),
            };
            ends.push(sum);
        }
        let width_ns = ((window.end_s - window.start_s) * NS_PER_S) as f64;
        let lengths = self.lengths_at(window.start_s);
        for (request, end) in (0..window.requests).zip(ends) {
            // The last gap, which no request ends, reaches to the end of the window.
            let share = if sum > 0.0 { end / sum } else { 0.5 };
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "from 0 to the width of a window"
            )]
            let within = Nanos((share * width_ns) as u64);
            let input = draws.of(Purpose::Input, key(request)).uniform();
            let output = draws.of(Purpose::Output, key(request)).uniform();
            made.push(Request {
                at: Nanos::from_secs(window.start_s) + within,
                input_tok: lengths.input.at(input),
                output_tok: Some(lengths.output.at(output)),
                class: Some(Arc::clone(&self.name)),
                ..Request::default()
            });
        }
    }
}

#[cfg(test)]
mod tests;
