//! The arrows between the rooms, enforced: which room may import which, which crates each may know, and that no
//! files take from one another in a circle. Reads the sources' own words, so that an arrow the wrong way
//! fails the suite.

mod circles;
mod source;

use std::collections::BTreeMap;

use circles::circles;
use source::{Source, sources};

/// Rooms that every other may name, and that name none but each other.
const LEAVES: [&str; 5] = ["units", "columns", "json_scan", "random", "redact"];

/// Room -> rooms that its files may name, beside the leaves.
const ARROWS: [(&str, &[&str]); 22] = [
    ("units", &[]),
    ("columns", &[]),
    ("json_scan", &[]),
    ("random", &[]),
    ("redact", &[]),
    ("clock", &[]),
    ("machine", &[]),
    ("trace", &[]),
    ("record", &[]),
    ("workload", &["trace"]),
    ("schedule", &["trace", "workload"]),
    ("prompt", &["trace", "schedule"]),
    ("client", &["clock", "record"]),
    ("replay", &["clock", "machine", "schedule", "client", "record", "prompt"]),
    (
        "server",
        &["clock", "machine", "client", "record", "prompt", "replay", "schedule", "sim", "trace"],
    ),
    ("metrics", &["record", "schedule"]),
    ("report", &["metrics", "record", "schedule"]),
    ("sim", &["clock", "machine"]),
    ("telemetry", &["clock", "client", "record", "server"]),
    (
        "lab",
        &["clock", "replay", "sim", "metrics", "client", "record", "schedule", "prompt", "trace"],
    ),
    ("run", &BELOW_RUN),
    ("cli", &BELOW_CLI),
];

const BELOW_RUN: [&str; 15] = [
    "clock",
    "machine",
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
];

const BELOW_CLI: [&str; 16] = {
    let mut rooms = ["run"; 16];
    let mut at = 0;
    while at < BELOW_RUN.len() {
        rooms[at + 1] = BELOW_RUN[at];
        at += 1;
    }
    rooms
};

/// Rooms of pure computation.
const PURE: [&str; 12] = [
    "units",
    "columns",
    "json_scan",
    "random",
    "redact",
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

/// The rooms that speak to a person: what was typed comes in there, and words go out.
const CONSOLE_ROOMS: [&str; 2] = ["cli", "main"];
const CONSOLE_CRATES: [&str; 3] = ["clap", "anyhow", "indicatif"];
const CONSOLE_WORDS: [&[&str]; 6] = [
    &["println", "!"],
    &["print", "!"],
    &["eprintln", "!"],
    &["eprint", "!"],
    &["io", "::", "stdout"],
    &["io", "::", "stderr"],
];

/// Rooms in which files still take from one another in a circle. None is to be added.
const CIRCLES_LEFT: [&str; 0] = [];

fn check(law: &str, faults_of: impl Fn(&Source) -> Vec<String>) {
    let faults: Vec<String> = sources()
        .iter()
        .flat_map(|source| {
            let told = |fault| format!("{}: {fault}", source.path);
            faults_of(source).into_iter().map(told)
        })
        .collect();
    assert!(faults.is_empty(), "{law}:\n{}", faults.join("\n"));
}

#[test]
fn rooms_import_only_along_the_arrows() {
    let arrows: BTreeMap<&str, &[&str]> = ARROWS.into_iter().collect();
    check("arrows the wrong way", |source| {
        let room = source.room();
        // Tests may join rooms.
        if room == "lib" || room == "main" || source.is_test {
            return Vec::new();
        }
        let Some(allowed) = arrows.get(room) else {
            return vec![format!("the room `{room}` has no arrows yet")];
        };
        let mut named = source.rooms_named();
        named.retain(|named| {
            let is_room = arrows.contains_key(named.as_str());
            is_room
                && named != room
                && !LEAVES.contains(&named.as_str())
                && !allowed.contains(&named.as_str())
        });
        named.into_iter().map(|named| format!("{room} -> {named}")).collect()
    });
}

#[test]
fn pure_rooms_know_no_runtime_three_know_http_and_one_a_tokenizer() {
    check("rooms that know too much", |source| {
        let room = source.room();
        let mut faults = Vec::new();
        let mut forbid = |crates: &[&'static str]| {
            faults.extend(
                crates
                    .iter()
                    .filter(|name| source.knows(name))
                    .map(|name| format!("{room} knows {name}")),
            );
        };
        if PURE.contains(&room) {
            forbid(&IMPURE_CRATES);
        }
        if room != "prompt" {
            forbid(&["tokenizers"]);
        }
        if !HTTP_ROOMS.contains(&room) {
            forbid(&["hyper", "http_body_util"]);
        }
        if !CONSOLE_ROOMS.contains(&room) {
            forbid(&CONSOLE_CRATES);
        }
        faults
    });
}

#[test]
fn only_the_command_line_prints_only_the_clock_reads_time_and_only_main_exits() {
    const TIME: [&[&str]; 5] = [
        &["Instant", "::", "now"],
        &["SystemTime", "::", "now"],
        &["clock_gettime"],
        &["tokio", "::", "time"],
        &["Timestamp", "::", "now"],
    ];
    const EXIT: [&[&str]; 1] = [&["process", "::", "exit"]];
    check("words in the wrong room", |source| {
        let room = source.room();
        let mut faults = Vec::new();
        let mut forbid = |is_at_home: bool, phrases: &[&[&str]]| {
            let said = phrases.iter().filter(|phrase| !is_at_home && source.says(phrase));
            faults.extend(said.map(|phrase| phrase.concat()));
        };
        forbid(room == "clock", &TIME);
        forbid(room == "main", &EXIT);
        // A test may say what it measured.
        let may_print = CONSOLE_ROOMS.contains(&room) || source.is_test;
        forbid(may_print, &CONSOLE_WORDS);
        faults
    });
}

#[test]
fn no_files_take_from_one_another_in_a_circle() {
    let sources = sources();
    let mut faults = Vec::new();
    for circle in circles(&sources) {
        let room = circle[0].0.split(['/', '.']).next().unwrap_or_default();
        if !CIRCLES_LEFT.contains(&room) {
            let arrows: Vec<String> =
                circle.iter().map(|(from, to)| format!("  {from} -> {to}")).collect();
            faults.push(format!("in {room}:\n{}", arrows.join("\n")));
        }
    }
    assert!(faults.is_empty(), "circles:\n{}", faults.join("\n"));
}
