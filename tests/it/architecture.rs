//! The arrows between the rooms, enforced: which room may import which, and which crates each may
//! know. Reads the sources' own words, so that an arrow the wrong way fails the suite.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Room -> rooms that its files may name. [`LEAVES`] may be named by all.
const ARROWS: [(&str, &[&str]); 19] = [
    ("units", &[]),
    ("random", &[]),
    ("json_scan", &[]),
    ("clock", &[]),
    ("descriptors", &[]),
    ("trace", &[]),
    ("record", &[]),
    ("workload", &["trace"]),
    ("schedule", &["trace", "workload"]),
    ("prompt", &["trace", "schedule"]),
    ("client", &["clock", "record"]),
    ("server", &["clock", "client", "record"]),
    ("replay", &["clock", "descriptors", "schedule", "client", "record", "prompt"]),
    ("metrics", &["record", "schedule"]),
    ("report", &["metrics", "record", "schedule"]),
    ("sim", &["clock", "descriptors"]),
    ("telemetry", &["clock", "client", "server", "record"]),
    (
        "lab",
        &["clock", "replay", "sim", "metrics", "client", "record", "schedule", "prompt", "trace"],
    ),
    (
        "cli",
        &[
            "clock",
            "descriptors",
            "trace",
            "workload",
            "schedule",
            "prompt",
            "replay",
            "client",
            "server",
            "record",
            "metrics",
            "report",
            "sim",
            "telemetry",
            "lab",
        ],
    ),
];

/// Rooms that every room may name.
const LEAVES: [&str; 3] = ["units", "random", "json_scan"];

/// Rooms of pure computation.
const PURE: [&str; 10] = [
    "units",
    "random",
    "json_scan",
    "trace",
    "workload",
    "schedule",
    "prompt",
    "record",
    "metrics",
    "report",
];

/// What a pure room must not name.
const IMPURE_CRATES: [&str; 7] =
    ["tokio", "hyper", "hyper_util", "socket2", "nix", "std::net", "futures_util"];

/// The rooms that know HTTP.
const HTTP_ROOMS: [&str; 3] = ["client", "server", "sim"];

fn sources() -> Vec<(PathBuf, String, String)> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("src is readable") {
            let path = entry.expect("src is readable").path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(path);
            }
        }
    }
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    walk(&src, &mut paths);
    paths
        .into_iter()
        .map(|path| {
            let inside = path.strip_prefix(&src).expect("below src");
            let room = inside.components().next().expect("a name").as_os_str().to_string_lossy();
            let room = room.trim_end_matches(".rs").to_owned();
            let text = fs::read_to_string(&path).expect("a source file");
            (inside.to_owned(), room, text)
        })
        .collect()
}

/// The code of a file: no comments, and nothing of its test module (tests may join rooms).
fn code(text: &str) -> String {
    let shipped = text.split("#[cfg(test)]\nmod ").next().unwrap_or("");
    shipped
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Every `crate::room` that the code names, also within `use crate::{a::…, b::…}`.
fn rooms_named(code: &str) -> Vec<String> {
    let mut rooms = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut name = String::new();
            for c in group.chars() {
                match c {
                    '}' if depth == 0 => break,
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    ',' if depth == 0 => rooms.push(std::mem::take(&mut name)),
                    c if depth == 0 => name.push(c),
                    _ => {}
                }
            }
            rooms.push(name);
        } else {
            rooms.push(rest.to_owned());
        }
    }
    rooms
        .into_iter()
        .map(|name| name.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
        .filter(|name: &String| !name.is_empty())
        .collect()
}

#[test]
fn rooms_import_only_along_the_arrows() {
    let arrows: BTreeMap<&str, &[&str]> = ARROWS.into_iter().collect();
    let mut faults = Vec::new();
    for (path, room, text) in sources() {
        if room == "lib" || room == "main" {
            continue;
        }
        let Some(allowed) = arrows.get(room.as_str()) else {
            faults.push(format!("{}: the room `{room}` has no arrows yet", path.display()));
            continue;
        };
        for named in rooms_named(&code(&text)) {
            let is_room = arrows.contains_key(named.as_str());
            if is_room
                && named != room
                && !LEAVES.contains(&named.as_str())
                && !allowed.contains(&named.as_str())
            {
                faults.push(format!("{}: {room} -> {named}", path.display()));
            }
        }
    }
    assert!(faults.is_empty(), "arrows the wrong way:\n{}", faults.join("\n"));
}

#[test]
fn pure_rooms_know_no_runtime_two_know_http_and_one_a_tokenizer() {
    let mut faults = Vec::new();
    for (path, room, text) in sources() {
        let code = code(&text);
        let names = |name: &str| {
            code.contains(&format!("{name}::")) || code.contains(&format!("use {name};"))
        };
        if PURE.contains(&room.as_str()) {
            for name in IMPURE_CRATES.iter().filter(|name| names(name)) {
                faults.push(format!("{}: {room} knows {name}", path.display()));
            }
        }
        if room != "prompt" && names("tokenizers") {
            faults.push(format!("{}: {room} cuts text into tokens", path.display()));
        }
        if !HTTP_ROOMS.contains(&room.as_str()) && (names("hyper") || names("http_body_util")) {
            faults.push(format!("{}: {room} knows HTTP", path.display()));
        }
    }
    assert!(faults.is_empty(), "rooms that know too much:\n{}", faults.join("\n"));
}

#[test]
fn only_the_clock_reads_time_and_only_main_exits() {
    let mut faults = Vec::new();
    for (path, room, text) in sources() {
        let code = code(&text);
        for word in
            ["Instant::now", "SystemTime::now", "clock_gettime", "tokio::time", "Timestamp::now"]
        {
            if room != "clock" && code.contains(word) {
                faults.push(format!("{}: {word}", path.display()));
            }
        }
        if room != "main" && code.contains("process::exit") {
            faults.push(format!("{}: process::exit", path.display()));
        }
    }
    assert!(faults.is_empty(), "clocks and exits in the wrong place:\n{}", faults.join("\n"));
}

#[test]
fn the_reader_of_arrows_sees_grouped_imports() {
    let code =
        "use crate::{units::Nanos, client::{self, Dial}};\nlet x = crate::sim::Server::new();";
    assert_eq!(rooms_named(code), ["units", "client", "sim"]);
}
