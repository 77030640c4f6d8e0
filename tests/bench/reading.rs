//! Traces read into whole requests, with all fields and block ids, on one core. Budget: 300 MB/s of
//! uncompressed text, for Azure's CSV and for Mooncake's JSONL; and memory that stays flat however long
//! the file is. Speed is by processor time, so that a busy machine changes it little.
//!
//! `cargo bench --bench reading`, and `cargo bench --bench reading -- long` for 27 million rows (a
//! temporary file of 1.3 GB).

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use underfire::trace::read::{Input, ReadOptions, open};

const BUDGET_MB_S: f64 = 300.0;
/// What reading may add to the memory in use.
const BUDGET_MIB: u64 = 32;

fn main() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let long = std::env::args().any(|word| word == "long");
    println!("budget {BUDGET_MB_S:.0} MB/s on one core");
    let azure = folder.path().join("azure.csv");
    write_azure(&azure, 3_000_000);
    let mut kept = read("Azure CSV", &azure, true);
    let mooncake = folder.path().join("mooncake.jsonl");
    write_mooncake(&mooncake, 400_000);
    kept &= read("Mooncake JSONL", &mooncake, true);
    std::fs::remove_file(&mooncake).expect("removed");
    if long {
        write_azure(&azure, 27_000_000);
        let before = peak_mib();
        kept &= read("Azure CSV, 27 million rows, validated and read", &azure, false);
        if let (Some(before), Some(after)) = (before, peak_mib()) {
            println!("memory: {before} MiB before, {after} MiB at most");
            assert!(after - before < BUDGET_MIB, "memory grows with the file");
        }
    }
    assert!(kept, "below the budget");
}

/// Reads every row; without `trusted` a validating pass comes first. Whether it kept to the budget.
fn read(what: &str, path: &Path, trusted: bool) -> bool {
    let bytes = path.metadata().expect("a file").len();
    let passes = if trusted { 1 } else { 2 };
    let mut best = f64::MAX;
    for _ in 0..if trusted { 5 } else { 1 } {
        let start = processor_s();
        let options = ReadOptions { assume_sorted: trusted, ..ReadOptions::default() };
        let trace = open(Input::File(PathBuf::from(path)), options).expect("a trace");
        let (mut rows, mut tokens, mut blocks) = (0_u64, 0_u64, 0);
        for row in trace.rows().expect("rows") {
            let row = row.expect("a row");
            rows += 1;
            tokens += u64::from(row.input_tok) + u64::from(row.output_tok.unwrap_or(0));
            blocks += row.prefix.map_or(0, |prefix| prefix.blocks.len());
        }
        assert!(rows > 0 && tokens > rows, "{blocks} blocks");
        best = best.min(processor_s() - start);
    }
    let rate = (bytes * passes) as f64 / best / 1e6;
    println!("{what}: {rate:.0} MB/s, {:.1} times the budget", rate / BUDGET_MB_S);
    rate >= BUDGET_MB_S
}

/// Processor time of this process, in the program and in the system on its behalf.
fn processor_s() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("the system tells");
    (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6
}

/// Rows as Azure's file of 2023 has them: 100 ns ticks, CRLF.
fn write_azure(path: &Path, rows: u64) {
    let mut out = BufWriter::new(File::create(path).expect("a file"));
    write!(out, "TIMESTAMP,ContextTokens,GeneratedTokens").expect("written");
    for row in 0..rows {
        let tick = row * 1_000_003;
        let (s, fraction) = (tick / 10_000_000 % 86_400, tick % 10_000_000);
        let (day, h, m, s) = (1 + tick / 864_000_000_000, s / 3600, s / 60 % 60, s % 60);
        let (month, day) = (1 + day / 28, 1 + day % 28);
        let (input, output) = (row * 7919 % 7400 + 1, row * 104_729 % 900 + 1);
        write!(
            out,
            "\r\n2023-{month:02}-{day:02} {h:02}:{m:02}:{s:02}.{fraction:07},{input},{output}"
        )
        .expect("written");
    }
    out.flush().expect("written");
}

/// Rows as Mooncake's have them, 24 ids each on average.
fn write_mooncake(path: &Path, rows: u64) {
    let mut out = BufWriter::new(File::create(path).expect("a file"));
    for row in 0..rows {
        let input = row * 7919 % 24_000 + 300;
        write!(
            out,
            "{{\"timestamp\": {}, \"input_length\": {input}, \"output_length\": {}, \"hash_ids\": [0",
            row * 300,
            row % 900 + 1
        )
        .expect("written");
        for block in 1..input.div_ceil(512) {
            write!(out, ", {}", row * 16 + block).expect("written");
        }
        writeln!(out, "]}}").expect("written");
    }
    out.flush().expect("written");
}

/// The most memory that this process has had; `None` where the system does not tell.
fn peak_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib / 1024)
}
