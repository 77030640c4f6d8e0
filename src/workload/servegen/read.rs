//! The two files of a client, read; a distribution is a Python dictionary in a string.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::{Client, Gaps, LIMIT_REQUESTS, Lengths, PairOfLengths, ServeGenError as Error, Window};

/// A client file beyond this is none.
const LIMIT_BYTES: u64 = 256 << 20;
/// A window's start beyond this (a thousand years) is none.
const LIMIT_S: u64 = 1000 * 366 * 86_400;

/// What a folder holds.
pub(super) struct Found {
    pub(super) clients: Vec<Client>,
    pub(super) notices: Vec<String>,
}

/// The number of a client's file of rates.
pub(super) fn client_number(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    name.strip_prefix("chunk-")?.strip_suffix("-trace.csv")?.parse().ok()
}

pub(super) fn folder(folder: &Path) -> Result<Found, Error> {
    let fail = |source| Error::Read { path: folder.to_owned(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        files.extend(client_number(&path).map(|number| (number, path)));
    }
    files.sort();
    let (mut clients, mut notices) = (Vec::new(), Vec::new());
    let (mut lost, mut lost_requests, mut requests) = (0, 0, 0);
    let mut unused = BTreeSet::new();
    for (number, path) in files {
        let windows = windows(&path)?;
        let count: u64 = windows.iter().map(|window| window.requests).sum();
        requests += count;
        let dataset = folder.join(format!("chunk-{number}-dataset.json"));
        if !dataset.exists() {
            (lost, lost_requests) = (lost + 1, lost_requests + count);
            continue;
        }
        let lengths = lengths(&dataset, &mut unused)?;
        if lengths.is_empty() && count > 0 {
            (lost, lost_requests) = (lost + 1, lost_requests + count);
            continue;
        }
        clients.push(Client { name: format!("chunk-{number}").into(), windows, lengths });
    }
    if clients.is_empty() {
        return Err(Error::NoClients { path: folder.to_owned() });
    }
    if lost > 0 {
        let share = lost_requests as f64 / requests.max(1) as f64 * 100.0;
        notices.push(format!(
            "{lost} clients have no lengths and are left out, with {share:.1}% of all requests"
        ));
    }
    if !unused.is_empty() {
        let unused: Vec<_> = unused.into_iter().collect();
        notices.push(format!("not replayed: {}", unused.join(", ")));
    }
    Ok(Found { clients, notices })
}

fn text(path: &Path) -> Result<String, Error> {
    let fail = |source| Error::Read { path: path.to_owned(), source };
    let bytes = path.metadata().map_err(fail)?.len();
    if bytes > LIMIT_BYTES {
        let limit = LIMIT_BYTES >> 20;
        return Err(fail(std::io::Error::other(format!("the file is above {limit} MiB"))));
    }
    fs::read_to_string(path).map_err(fail)
}

/// `start_s,rate,cv,pattern,shape,scale`, a line per window, no header.
fn windows(path: &Path) -> Result<Vec<Window>, Error> {
    let text = text(path)?;
    let mut windows: Vec<Window> = Vec::new();
    let mut rates = Vec::new();
    for (line, row) in text.lines().enumerate().filter(|(_, row)| !row.trim().is_empty()) {
        let fail = |field, problem: String| Error::Value {
            path: path.to_owned(),
            place: format!("line {}", line + 1),
            field,
            problem,
        };
        let cells: Vec<&str> = row.split(',').map(str::trim).collect();
        let [start, rate, _, pattern, shape, _] = cells[..] else {
            let problem = format!("the row has {} fields; write six", cells.len());
            return Err(fail("start_s,rate,cv,pattern,shape,scale", problem));
        };
        let number = |field, text: &str| {
            let value = text.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
            value.ok_or_else(|| {
                fail(field, format!("`{text:.40}` is no number from 0 on; write one"))
            })
        };
        let start_s = start.parse::<u64>().ok().filter(|start| *start <= LIMIT_S);
        let start_s = start_s.ok_or_else(|| {
            fail("start_s", format!("`{start:.40}` is no whole second; write one"))
        })?;
        if windows.last().is_some_and(|last| start_s <= last.start_s) {
            return Err(fail("start_s", "is not after the line before; sort the lines".to_owned()));
        }
        let rate = number("rate", rate)?;
        let shape = number("shape", shape)?;
        let gaps = match pattern {
            "Gamma" if shape > 0.0 => Gaps::Gamma(shape),
            "Weibull" if shape > 0.0 => Gaps::Weibull(shape),
            "" => Gaps::Exponential,
            "Gamma" | "Weibull" => {
                return Err(fail("shape", "0 is no shape; write one".to_owned()));
            }
            other => {
                let problem = format!("`{other:.40}` is unknown; write Gamma, Weibull or nothing");
                return Err(fail("pattern", problem));
            }
        };
        windows.push(Window { start_s, end_s: start_s, requests: 0, gaps });
        rates.push(rate);
    }
    let mut width_s = 600;
    for place in 0..windows.len() {
        if let Some(next) = windows.get(place + 1) {
            width_s = next.start_s - windows[place].start_s;
        }
        let requests = (rates[place] * width_s as f64).round();
        if requests >= LIMIT_REQUESTS as f64 {
            return Err(Error::Value {
                path: path.to_owned(),
                place: format!("the window at {} s", windows[place].start_s),
                field: "rate",
                problem: format!("more than {LIMIT_REQUESTS} requests in one window; cut it"),
            });
        }
        windows[place].end_s = windows[place].start_s + width_s;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 to the limit"
        )]
        let requests = requests as u64;
        windows[place].requests = requests;
    }
    Ok(windows)
}

/// Distributions by the start of their stretch; those of idle ones are left out.
fn lengths(path: &Path, unused: &mut BTreeSet<String>) -> Result<Vec<(u64, PairOfLengths)>, Error> {
    let text = text(path)?;
    let fail = |place: String, field, problem: String| Error::Value {
        path: path.to_owned(),
        place,
        field,
        problem,
    };
    let stretches: BTreeMap<String, BTreeMap<String, String>> = serde_json::from_str(&text)
        .map_err(|error| {
            let place = format!("line {}, byte {}", error.line(), error.column());
            fail(place, "windows", format!("no object of windows: {error}"))
        })?;
    let mut found = Vec::new();
    for (start, fields) in stretches {
        let place = format!("window `{start:.40}`");
        let start_s = start.parse::<u64>().map_err(|_| {
            fail(place.clone(), "window", "is no whole second; write its start".to_owned())
        })?;
        let read = |field: &'static str| {
            let Some(text) = fields.get(field) else { return Ok(None) };
            distribution(text).map_err(|problem| fail(place.clone(), field, problem))
        };
        let input =
            read("input_tokens")?.map_or_else(|| read("text_tokens"), |own| Ok(Some(own)))?;
        if let (Some(input), Some(output)) = (input, read("output_tokens")?) {
            found.push((start_s, PairOfLengths { input, output }));
        }
        let known = ["input_tokens", "text_tokens", "output_tokens"];
        unused.extend(fields.into_keys().filter(|field| !known.contains(&field.as_str())));
    }
    found.sort_by_key(|(start_s, _)| *start_s);
    Ok(found)
}

/// `{81: 0.00145, 82: 0.5}`: lengths and their weights. `None`: an empty one.
fn distribution(text: &str) -> Result<Option<Lengths>, String> {
    let inside = text.trim().strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    let inside = inside.ok_or("is no dictionary; write {length: probability, …}")?;
    let mut weights: BTreeMap<u32, f64> = BTreeMap::new();
    for pair in inside.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let wrong = || format!("`{pair:.40}` is no length and its probability; write 81: 0.25");
        let (tok, weight) = pair.split_once(':').ok_or_else(wrong)?;
        let tok = tok.trim().parse::<u32>().map_err(|_| wrong())?;
        let weight = weight.trim().parse::<f64>().ok().filter(|weight| (0.0..1e9).contains(weight));
        *weights.entry(tok).or_default() += weight.ok_or_else(wrong)?;
    }
    weights.retain(|_, weight| *weight > 0.0);
    let sum: f64 = weights.values().sum();
    let mut so_far = 0.0;
    let mut lengths = Lengths { tok: Vec::new(), cumulative: Vec::new() };
    for (tok, weight) in weights {
        so_far += weight / sum;
        lengths.tok.push(tok);
        lengths.cumulative.push(so_far);
    }
    Ok((!lengths.tok.is_empty()).then_some(lengths))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionaries_of_python() {
        let read = |text| distribution(text);
        assert_eq!(read("{}"), Ok(None));
        let found = read("{34: 0.25, 36: 1e-05, 35: 0.74999}").unwrap().unwrap();
        assert_eq!(found.tok, [34, 35, 36]);
        assert_eq!(
            [found.at(0.2), found.at(0.3), found.at(0.999_995), found.at(1.0)],
            [34, 35, 36, 36]
        );
        for bad in ["", "34: 1", "{34}", "{x: 1}", "{1: x}", "{1: -1}", "{1: nan}", "{1: 0.5"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
