//! What is left of a run when something ends it: signals, a full disk, a folder that goes away. Rows
//! exactly once, whole lines, marked; what was measured stays.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use underfire::record::Outcome;
use underfire::sim::truth::Ended;
use underfire::units::Nanos;

use crate::program::{Place, Said, json, small_trace};
use crate::sockets::Sim;

/// Starts a run of rows 4 ms apart, each with an answer of half a second, and waits until `rows` of
/// them have been written.
fn under_way(place: &Place, rows: usize, more: &[&str]) -> Child {
    under_way_with(place, &small_trace(30_000, 4).replace(",10,4", ",10,40"), rows, more)
}

fn under_way_with(place: &Place, trace: &str, rows: usize, more: &[&str]) -> Child {
    place.write("t.csv", trace);
    let arguments = [&["run", "t.csv", "--out", "run"], more].concat();
    let child = place
        .command(&arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    await_rows(place, rows);
    child
}

fn await_rows(place: &Place, rows: usize) {
    let requests = place.path("run/requests.csv");
    while std::fs::read_to_string(&requests).map_or(0, |text| text.lines().count()) <= rows {
        std::thread::yield_now();
    }
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).expect("a pid"))
}

/// The simulated server that the program started.
fn server_of(child: &Child) -> Pid {
    let path = format!("/proc/{0}/task/{0}/children", child.id());
    let children = std::fs::read_to_string(path).expect("children");
    Pid::from_raw(children.trim().parse().expect("one child"))
}

/// Whether a process runs: not gone, and no zombie that nobody has asked about.
fn runs(pid: Pid) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").trim_start().starts_with('Z'))
}

/// Every row once, from the first on; those that the run cut are marked.
fn assert_rows_are_whole(place: &Place) -> usize {
    let rows = place.rows("run");
    let numbers: Vec<u64> = rows.iter().map(|row| row.row).collect();
    let wanted = (0..rows.len() as u64).collect::<Vec<_>>();
    assert!(numbers == wanted, "each due row once, and no hole: {:?}", numbers.last());
    let known = [Outcome::Ok, Outcome::Incomplete, Outcome::Unsent];
    assert!(rows.iter().all(|row| known.contains(&row.outcome)), "{rows:#?}");
    rows.len()
}

#[test]
fn an_interrupt_and_a_termination_leave_whole_marked_results() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let place = Place::new();
        let child = under_way(&place, 200, &[]);
        kill(pid(&child), signal).expect("it runs");
        let said = Said::of(&child.wait_with_output().expect("an end")).expect(130);
        assert!(said.stdout.contains("interrupted: these are partial results"), "{said:?}");
        let rows = assert_rows_are_whole(&place);
        let manifest = json(&place.read("run/run.json"));
        assert_eq!(manifest["interrupted"], true);
        assert_eq!(manifest["stopped"], "a signal");
        let counted: u64 = manifest["outcomes"]
            .as_object()
            .expect("an object")
            .values()
            .map(|n| n.as_u64().expect("a count"))
            .sum();
        assert_eq!(counted, rows as u64);
        // Its figures come out of its files again, to the last byte.
        let own = place.read("run/summary.csv");
        let said = place.run(&["report", "run"]).expect(0);
        assert!(said.stdout.contains("interrupted: these are partial results"), "{said:?}");
        assert_eq!(place.read("run/summary.csv"), own);
        let due: u64 =
            seconds(&place).iter().map(|second| second[2].parse::<u64>().expect("a count")).sum();
        assert_eq!(due, rows as u64, "every row is in its second");
    }
}

/// The cells of `timeline.csv`.
fn seconds(place: &Place) -> Vec<Vec<String>> {
    let text = place.read("run/timeline.csv");
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

#[test]
fn a_second_signal_exits_at_once() {
    let place = Place::new();
    let mut child = under_way(&place, 20, &[]);
    let server = server_of(&child);
    // A server that does not move keeps the first signal from coming to its end.
    kill(server, Signal::SIGSTOP).expect("it runs");
    kill(pid(&child), Signal::SIGINT).expect("it runs");
    let manifest = || json(&place.read("run/run.json"));
    // Rows cut by the first signal are on disk before anything is waited for.
    while !place.read("run/requests.csv").contains(",incomplete,") {
        std::thread::yield_now();
    }
    assert_eq!(manifest()["outcomes"], serde_json::json!({}), "it waits for its server");
    assert_eq!(manifest()["interrupted"], true, "a run that never says its end was cut");
    kill(pid(&child), Signal::SIGINT).expect("it runs");
    let status = child.wait().expect("an end");
    kill(server, Signal::SIGKILL).expect("it is stopped");
    assert_eq!(status.code(), Some(130));
    assert_rows_are_whole(&place);
}

#[test]
fn a_killed_run_misses_a_second_at_the_most_and_its_server_ends() {
    let place = Place::new();
    let mut child = under_way_with(&place, &small_trace(30_000, 2), 1_200, &[]);
    let server = server_of(&child);
    let killed = underfire::clock::monotonic();
    kill(pid(&child), Signal::SIGKILL).expect("it runs");
    child.wait().expect("an end");
    while runs(server) {
        std::thread::yield_now();
    }
    let text = place.read("run/requests.csv");
    assert!(text.ends_with('\n'), "every line is whole");
    let rows = place.rows("run");
    assert!(rows.len() >= 1_200 && rows.iter().all(|row| row.outcome == Outcome::Ok));
    // By the server's own log: no more rows are missing than ended in the second before the kill.
    let log = std::fs::File::open(place.path("run/truth.csv")).expect("the server's log");
    let truth = underfire::sim::truth::read(log).expect("it is whole");
    let ids: std::collections::HashSet<&str> =
        rows.iter().filter_map(|row| row.request_id.as_deref()).collect();
    let ended: Vec<_> = truth.iter().filter(|row| row.ended == Ended::Done).collect();
    let missing = ended.iter().filter(|row| !ids.contains(row.request_id.as_str())).count();
    let second_before = killed.since(Nanos::from_secs(1));
    let last = ended.iter().filter(|row| row.last.is_some_and(|at| at >= second_before)).count();
    assert!(missing <= last, "{missing} of {} missing, {last} in the last second", ended.len());
    let said = place.run(&["report", "run"]).expect(0);
    assert!(said.stdout.contains("the run did not come to its end"), "{said:?}");
    let missing = format!("the other {} were under way then, or not yet sent", {
        let n = 30_000 - rows.len();
        format!("{},{:03}", n / 1000, n % 1000)
    });
    assert!(
        said.stdout.contains("of 30,000 planned rows ") && said.stdout.contains(&missing),
        "{said:?}"
    );
    assert!(place.read("run/summary.csv").contains("\nttft_ms,measured,ms,exact,"));
}

/// Runs a shell line with the program as `$U`.
fn shell(place: &Place, line: &str) -> Said {
    let output = Command::new("bash")
        .args(["-c", line])
        .env("U", env!("CARGO_BIN_EXE_underfire"))
        .current_dir(place.path("."))
        .output()
        .expect("a shell");
    Said::of(&output)
}

#[test]
fn a_file_that_can_grow_no_further_ends_the_run_and_keeps_what_it_holds() {
    let place = Place::new();
    place.write("t.csv", small_trace(30_000, 2));
    let said = shell(&place, "ulimit -f 100; exec $U run t.csv --out run").expect(2);
    assert!(said.stderr.contains("run/requests.csv: File too large"), "{said:?}");
    assert!(said.stderr.contains("hint: "), "{said:?}");
    assert!(said.stdout.contains("stopped early"), "the figures are shown: {said:?}");
    let text = place.read("run/requests.csv");
    assert!(text.ends_with('\n') && text.len() <= 100 * 1024, "whole lines");
    let rows = place.rows("run");
    let mut numbers: Vec<u64> = rows.iter().map(|row| row.row).collect();
    numbers.dedup();
    assert_eq!(numbers.len(), rows.len(), "no row twice");
    assert!(rows.len() > 100);
    let stopped = json(&place.read("run/run.json"))["stopped"].clone();
    assert!(stopped.as_str().expect("marked").contains("File too large"), "{stopped}");
    place.run(&["report", "run"]).expect(0);
}

#[test]
fn a_closed_stdout_is_no_error() {
    let place = Place::new();
    place.write("t.csv", small_trace(20, 5));
    shell(&place, "$U run t.csv --out run | true; exit ${PIPESTATUS[0]}").expect(0);
    assert_eq!(place.rows("run").len(), 20);
    shell(&place, "$U report run | true; exit ${PIPESTATUS[0]}").expect(0);
}

#[test]
fn a_folder_removed_in_mid_run_ends_it_and_names_the_file() {
    let place = Place::new();
    let child = under_way(&place, 50, &[]);
    std::fs::remove_dir_all(place.path("run")).expect("it is there");
    let said = Said::of(&child.wait_with_output().expect("an end")).expect(2);
    assert!(said.stderr.contains("run/requests.csv is gone"), "{said:?}");
    assert!(said.stdout.contains("requests"), "the figures are shown: {said:?}");
}

#[test]
fn a_folder_that_takes_no_files_is_named_before_anything_is_sent() {
    let place = Place::new();
    place.write("t.csv", small_trace(20, 5));
    // No folder can be made there, whoever asks.
    let said = place.run(&["run", "t.csv", "--out", "/proc/underfire/run"]).expect(2);
    assert!(said.stderr.contains("/proc/underfire/run"), "{said:?}");
    shell(&place, "mkdir locked && chmod 555 locked");
    if std::fs::write(place.path("locked/probe"), "").is_err() {
        let said = place.run(&["run", "t.csv", "--out", "locked"]).expect(2);
        assert!(said.stderr.contains("locked/requests.csv"), "{said:?}");
    }
}

#[test]
fn an_interrupt_before_the_run_leaves_no_folder() {
    let place = Place::new();
    place.write("t.csv", small_trace(5, 10));
    let sim = Sim::start(&place, &["--fault", "headers=1h"]);
    let arguments =
        ["run", "t.csv", "--url", &sim.url, "--no-preflight", "--prime", "1", "--out", "run"];
    let mut child = place
        .command(&arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // The server has been asked; the request ahead of the run has no answer, ever.
    let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    let told = stderr.lines().map_while(Result::ok).any(|line| line.starts_with("engine:"));
    assert!(told, "it got as far as that");
    kill(pid(&child), Signal::SIGINT).expect("it runs");
    child.wait().expect("an end");
    assert!(!place.path("run").exists(), "nothing was measured, and nothing is left");
    sim.end(&place);
}

/// A filesystem of its own, unmounted however the test ends.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    /// `None` where this user may not mount one.
    fn mount(at: std::path::PathBuf) -> Option<Self> {
        std::fs::create_dir(&at).expect("a folder");
        let mut mount = Command::new("mount");
        let mount = mount.args(["-t", "tmpfs", "-o", "size=256k", "none"]).arg(&at);
        let done = mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        done.then_some(Self(at))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_disk_that_is_really_full_ends_the_run_and_keeps_what_it_holds() {
    let place = Place::new();
    let Some(_disk) = SmallDisk::mount(place.path("small")) else {
        eprintln!("skipped: this user may not mount a small filesystem");
        return;
    };
    place.write("t.csv", small_trace(30_000, 2));
    let said = place.run(&["run", "t.csv", "--out", "small/run"]).expect(2);
    assert!(said.stderr.contains("No space left on device"), "{said:?}");
    assert!(said.stdout.contains("stopped early: cannot write results"), "{said:?}");
    assert!(!said.stdout.contains("CSV error") && !said.stderr.contains(":0 "), "{said:?}");
    let text = place.read("small/run/requests.csv");
    assert!(text.ends_with('\n'), "every line is whole");
    let rows = place.rows("small/run");
    assert!(rows.len() > 300, "what was measured stays: {} rows", rows.len());
}
