//! `underfire watch` against pages of every kind.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::server::{Answer, Asked, Server, good, response};
use crate::program::{Place, Said, json, small_trace};
use crate::sockets::Sim;

/// One short window, as JSON.
const BRIEF: [&str; 4] = ["--once", "--window", "200ms", "--json"];

fn watch(answer: Answer, arguments: &[&str]) -> Said {
    let server = Server::start(answer);
    Place::new().run(&[&["watch", &server.url()], arguments].concat())
}

fn page(text: &str) -> String {
    response("200 OK", "text/plain; version=0.0.4; charset=utf-8", text)
}

/// A page whose counter of completion tokens grows by 100 with every answer.
fn growing(count: &AtomicU64) -> String {
    let tok = count.fetch_add(100, Ordering::SeqCst);
    page(&format!(
        "vllm:generation_tokens_total{{engine=\"0\"}} {tok}\nvllm:num_requests_running 3\n"
    ))
}

#[track_caller]
fn refused(answer: Answer, code: i32, parts: &[&str]) {
    let said = watch(answer, &BRIEF).expect(code);
    for part in parts {
        assert!(said.stderr.contains(part), "`{part}` in {said:#?}");
    }
    assert_eq!(said.stdout, "");
}

#[test]
fn what_is_no_metrics_page_is_told_in_words() {
    refused(
        good,
        2,
        &["GET /metrics answered 404", "Not Found", "--metrics URL", "llama.cpp with"],
    );
    let html = |_: &Asked| response("200 OK", "text/html", "<html>Welcome</html>");
    refused(html, 2, &["answered an HTML page"]);
    let html_as_text = |_: &Asked| page("<!doctype html><p>Welcome");
    refused(html_as_text, 2, &["answered an HTML page"]);
    let json = |_: &Asked| response("200 OK", "application/json", "[{\"iter\": 3}]");
    refused(json, 2, &["answered JSON: [{\"iter\": 3}]"]);
    let huge = |_: &Asked| page(&"vllm:generation_tokens_total 5\n".repeat(350_000));
    refused(huge, 2, &["answered more than 8 MB"]);
    let moved = |_: &Asked| {
        "HTTP/1.1 307 T\r\nlocation: http://u:p@h/m?k=secret\r\ncontent-length: 0\r\n\r\n"
            .to_owned()
    };
    refused(moved, 2, &["redirects (307) to \"http://h/m\"", "are not followed"]);
    let gzip = |_: &Asked| {
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n\x1f\x1f".to_owned()
    };
    refused(gzip, 2, &["came compressed (content-encoding: gzip)"]);
    let binary = |_: &Asked| response("200 OK", "application/octet-stream", "\u{1}\u{2}");
    refused(binary, 2, &["no Prometheus text (content-type: application/octet-stream): line 1"]);
    let cut = |_: &Asked| page("vllm:generation_tokens_total 5\nvllm:x{a=\"b\nc\"} 1\n");
    refused(cut, 2, &["line 2: a label value of `vllm:x` has no closing quote"]);
    let other = |_: &Asked| page("python_info{v=\"3\"} 1\n");
    refused(other, 2, &["no metrics of any engine known here", "begins with python_info"]);
    let empty = |_: &Asked| page("");
    refused(empty, 2, &["it is empty"]);
}

#[test]
fn nobody_there_is_exit_2() {
    let said = Place::new().run(&["watch", "http://127.0.0.1:9", "--once"]).expect(2);
    assert!(said.stderr.contains("cannot connect to 127.0.0.1:9"), "{said:#?}");
}

#[test]
fn a_key_is_wanted_and_given() {
    fn answer(asked: &Asked) -> String {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        if asked.headers.iter().any(|line| line == "authorization: Bearer key-12345") {
            growing(&COUNT)
        } else {
            response("401 Unauthorized", "application/json", "{\"error\":\"no key-12345\"}")
        }
    }
    refused(answer, 2, &["answered 401", "--api-key-env"]);
    let place = Place::new();
    place.write("key", "key-12345\n");
    let server = Server::start(answer);
    let with = ["watch", &server.url(), "--api-key-file", "key"];
    place.run(&[&with[..], &BRIEF].concat()).expect(0);
    let wrong = ["watch", &server.url(), "--header", "authorization: Bearer key-12345x"];
    let said = place.run(&[&wrong[..], &BRIEF].concat()).expect(2);
    assert!(!said.stderr.contains("key-12345x"), "{said:#?}");
}

#[test]
fn odd_labels_and_a_name_without_total_are_read() {
    fn answer(_: &Asked) -> String {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let tok = COUNT.fetch_add(100, Ordering::SeqCst);
        let text = format!(
            "# TYPE vllm:generation_tokens counter\n\
             vllm:generation_tokens{{engine=\"say \\\"hi\\\"\\n}} 7\"}} {tok} # {{t=\"1\"}} 1\n\
             vllm:num_requests_running NaN\nvllm:num_requests_waiting +Inf\n# EOF\n"
        );
        response("200 OK", "application/openmetrics-text; version=1.0.0", &text)
    }
    let said = watch(answer, &BRIEF).expect(0);
    let window = json(&said.stdout);
    assert!(window["generation_tok_s"].as_f64().expect("a rate") > 0.0, "{said:#?}");
    assert!(window["running"].is_null() && window["waiting"].is_null(), "{said:#?}");
}

#[test]
fn a_count_that_is_no_number_cannot_be_answered() {
    let answer =
        |_: &Asked| page("vllm:generation_tokens_total NaN\nvllm:num_requests_running 2\n");
    let said = watch(answer, &BRIEF).expect(3);
    assert!(said.stderr.contains("the page says NaN for the counter"), "{said:#?}");
    let window = json(&said.stdout);
    assert!(window["generation_tok_s"].is_null(), "{said:#?}");
    assert_eq!(window["running"], 2.0);
}

#[test]
fn a_restart_in_mid_watch_is_never_a_negative_rate() {
    fn answer(_: &Asked) -> String {
        static ASKED: AtomicU64 = AtomicU64::new(0);
        // The sixth answer is of a new process.
        let at = ASKED.fetch_add(1, Ordering::SeqCst);
        let tok = if at < 5 { 90_000 + 100 * at } else { 100 * (at - 5) };
        page(&format!("vllm:generation_tokens_total {tok}\n"))
    }
    let said = watch(answer, &["--window", "200ms", "--for", "3s", "--json"]).expect(0);
    let windows: Vec<_> = said.stdout.lines().map(json).collect();
    assert!(windows.len() >= 4, "{said:#?}");
    let rates: Vec<Option<f64>> =
        windows.iter().map(|window| window["generation_tok_s"].as_f64()).collect();
    assert!(rates.iter().flatten().all(|rate| *rate > 0.0 && *rate < 5000.0), "{said:#?}");
    assert_eq!(rates.iter().filter(|rate| rate.is_none()).count(), 1, "{said:#?}");
    let told = windows.iter().filter(|window| window["notes"].to_string().contains("restarted"));
    assert_eq!(told.count(), 1, "{said:#?}");
}

#[test]
fn servers_that_answer_in_turn_are_refused() {
    fn answer(_: &Asked) -> String {
        static ASKED: AtomicU64 = AtomicU64::new(0);
        let at = ASKED.fetch_add(1, Ordering::SeqCst);
        let tok = if at.is_multiple_of(2) { 1000 + at } else { 50_000 + at };
        page(&format!("vllm:generation_tokens_total {tok}\n"))
    }
    let said = watch(answer, &["--window", "200ms", "--for", "3s"]).expect(3);
    assert!(said.stderr.contains("several servers in turn"), "{said:#?}");
    assert!(said.stderr.contains("--metrics URL"), "{said:#?}");
}

#[test]
fn samples_come_over_one_connection() {
    fn answer(_: &Asked) -> String {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        growing(&COUNT)
    }
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = connections.clone();
    let server = Server::over(answer, move |socket| {
        counted.fetch_add(1, Ordering::SeqCst);
        Some(Box::new(socket))
    });
    let place = Place::new();
    let said = place.run(&["watch", &server.url(), "--window", "100ms", "--for", "1s", "--json"]);
    assert!(said.expect(0).stdout.lines().count() >= 5);
    // Three at the beginning, to see whether they lead to one server; the last is kept.
    assert_eq!(connections.load(Ordering::SeqCst), 3);
    assert!(server.asked().len() >= 8);
}

#[test]
fn servers_add_up_and_a_proxy_is_not_added_to_its_engines() {
    fn answer(_: &Asked) -> String {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        growing(&COUNT)
    }
    let (one, two) = (Server::start(answer), Server::start(answer));
    let front = Server::start(|_| page("dynamo_frontend_output_tokens_total 4\n"));
    let urls = [one, two, front].map(|server| format!("{}/metrics", server.url()));
    let place = Place::new();
    let both = ["watch", "--metrics", &urls[0], "--metrics", &urls[1]];
    let said = place.run(&[&both[..], &BRIEF].concat()).expect(0);
    assert_eq!(json(&said.stdout)["running"], 6.0, "{said:#?}");
    let mixed = ["watch", "--metrics", &urls[0], "--metrics", &urls[2]];
    let said = place.run(&[&mixed[..], &BRIEF].concat()).expect(2);
    assert!(said.stderr.contains("both count the same tokens"), "{said:#?}");
}

#[test]
fn windows_go_into_a_file_that_is_not_overwritten() {
    fn answer(_: &Asked) -> String {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        growing(&COUNT)
    }
    let (place, server) = (Place::new(), Server::start(answer));
    let watch = ["watch", &server.url(), "--once", "--window", "200ms", "--out", "w"];
    place.run(&watch).expect(0);
    let file = place.read("w/watch.csv");
    let mut rows = csv::Reader::from_reader(file.as_bytes());
    let header = rows.headers().expect("a header").clone();
    let row = rows.records().next().expect("a row").expect("whole");
    let cell = |name: &str| &row[header.iter().position(|column| column == name).expect(name)];
    assert!(cell("generation_tok_s").parse::<f64>().expect("a rate") > 0.0);
    assert_eq!((cell("finished_req_s"), cell("ttft_p50_ms"), cell("left_s")), ("", "", ""));
    assert!(cell("notes").contains("vLLM does not tell: prompt tokens"), "{file}");
    place.run(&watch).expect(2);
    assert_eq!(place.read("w/watch.csv"), file);
}

#[test]
fn an_interrupt_ends_it_with_what_was_measured() {
    fn answer(_: &Asked) -> String {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        growing(&COUNT)
    }
    let (place, server) = (Place::new(), Server::start(answer));
    let watch = ["watch", &server.url(), "--window", "1h", "--json", "--out", "w"];
    let child = place.command(&watch).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("the program starts");
    // The fifth question comes with the second sample of the window.
    while server.asked().len() < 5 {
        std::thread::yield_now();
    }
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid"));
    kill(pid, Signal::SIGINT).expect("it runs");
    let said = Said::of(&child.wait_with_output().expect("an end")).expect(130);
    assert!(json(said.stdout.trim())["generation_tok_s"].as_f64() > Some(0.0), "{said:#?}");
    assert_eq!(place.read("w/watch.csv").lines().count(), 2);
}

#[test]
fn it_ends_when_nobody_listens_any_more() {
    fn answer(_: &Asked) -> String {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        growing(&COUNT)
    }
    let server = Server::start(answer);
    let watch = ["watch", &server.url(), "--window", "100ms"];
    let place = Place::new();
    let mut command = place.command(&watch);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = child.expect("the program starts");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("an end").code(), Some(0));
}

#[test]
fn what_cannot_be_written_is_an_error_in_words() {
    fn answer(_: &Asked) -> String {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        growing(&COUNT)
    }
    let (place, server) = (Place::new(), Server::start(answer));
    let full = std::fs::File::options().write(true).open("/dev/full").expect("a full device");
    let url = server.url();
    let brief = [&["watch", url.as_str()], &BRIEF[..]].concat();
    let said = place.command(&brief).stdout(full).output().expect("the program starts");
    let said = Said::of(&said).expect(2);
    assert!(said.stderr.contains("failed to write to stdout: No space left"), "{said:#?}");

    let watch = ["watch", &server.url(), "--window", "100ms", "--for", "1m", "--out", "w"];
    let mut command = place.command(&watch);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let child = child.expect("the program starts");
    let rows =
        || std::fs::read_to_string(place.path("w/watch.csv")).map_or(0, |t| t.lines().count());
    while rows() < 2 {
        std::thread::yield_now();
    }
    std::fs::remove_dir_all(place.path("w")).expect("it is there");
    let said = Said::of(&child.wait_with_output().expect("an end")).expect(2);
    assert!(said.stderr.contains("w/watch.csv is gone"), "{said:#?}");
}

/// Figures that no server has: each is told, and none gets into a file.
#[test]
fn absurd_figures_are_empty_cells() {
    fn answer(_: &Asked) -> String {
        static ASKED: AtomicU64 = AtomicU64::new(1);
        let at = ASKED.fetch_add(1, Ordering::SeqCst);
        page(&format!(
            "vllm:generation_tokens_total{{engine=\"0\"}} {at}e300\n\
             vllm:generation_tokens_total{{engine=\"1\"}} {at}e307\n\
             vllm:prompt_tokens_total +Inf\nvllm:num_requests_running 1e308\n\
             vllm:num_requests_waiting +Inf\nvllm:kv_cache_usage_perc -Inf\n\
             vllm:request_success_total {at}\nvllm:num_preemptions_total {at}\n\
             vllm:time_to_first_token_seconds_bucket{{le=\"1e308\"}} {at}000\n\
             vllm:time_to_first_token_seconds_bucket{{le=\"+Inf\"}} {at}000\n\
             vllm:time_to_first_token_seconds_count {at}000\n\
             vllm:e2e_request_latency_seconds_bucket{{le=\"NaN\"}} {at}000\n\
             vllm:e2e_request_latency_seconds_count {at}000\n\
             process_start_time_seconds NaN\n"
        ))
    }
    let (place, server) = (Place::new(), Server::start(answer));
    let left = ["--remaining", "1000", "--mean-tokens", "1e9"];
    let watch = ["watch", &server.url(), "--window", "200ms", "--for", "400ms", "--out", "w"];
    let said = place.run(&[&watch[..], &left].concat()).expect(3);
    let file = place.read("w/watch.csv");
    let mut rows = csv::Reader::from_reader(file.as_bytes());
    let header = rows.headers().expect("a header").clone();
    for row in rows.records() {
        for (name, cell) in header.iter().zip(&row.expect("whole")) {
            let is_number = name != "notes" && cell.parse::<f64>().is_ok();
            assert!(!is_number || cell.parse::<f64>().is_ok_and(f64::is_finite), "{name}: {file}");
            let is_told = matches!(name, "finished_req_s" | "preemptions");
            assert!(!is_told || !cell.is_empty(), "the sound figures stay: {name}: {file}");
        }
    }
    for part in [
        "for the counter `vllm:generation_tokens`",
        "for the counter `vllm:prompt_tokens`",
        "`vllm:num_requests_running`",
        "`vllm:num_requests_waiting`",
        "`vllm:kv_cache_usage_perc`",
        "the bound \"1e308\" of `vllm:time_to_first_token_seconds`",
        "the bound \"NaN\" of `vllm:e2e_request_latency_seconds`",
    ] {
        assert!(said.stderr.contains(part), "`{part}` in {said:#?}");
    }
    assert!(!said.stderr.contains("restarted"), "no start is not another start: {said:#?}");
    let told = said.stderr.matches("for the counter `vllm:generation_tokens`").count();
    assert_eq!(told, 1, "a fault that stays is told once: {said:#?}");
}

#[test]
fn models_of_one_page_are_added_up_in_words_or_told_apart() {
    fn answer(_: &Asked) -> String {
        static ASKED: AtomicU64 = AtomicU64::new(1);
        let at = ASKED.fetch_add(1, Ordering::SeqCst);
        let of = |model: &str, tok: u64, running: u64| {
            format!(
                "vllm:generation_tokens_total{{engine=\"0\",model_name=\"{model}\"}} {tok}\n\
                 vllm:num_requests_running{{engine=\"0\",model_name=\"{model}\"}} {running}\n"
            )
        };
        page(&(of("small", 100 * at, 3) + &of("large", 0, 4)))
    }
    let (place, server) = (Place::new(), Server::start(answer));
    let url = server.url();
    let watch = |more: &[&str]| place.run(&[&["watch", url.as_str()], &BRIEF[..], more].concat());
    let both = watch(&[]).expect(0);
    assert_eq!(json(&both.stdout)["running"], 7.0, "{both:#?}");
    let words = "its page has 2 models (large, small), which are added up";
    assert!(both.stderr.contains(words), "{both:#?}");
    assert!(json(&both.stdout)["notes"].to_string().contains(words), "{both:#?}");
    let one = watch(&["--model", "large"]).expect(0);
    let window = json(&one.stdout);
    assert_eq!((&window["running"], &window["generation_tok_s"]), (&4.0.into(), &0.0.into()));
    assert!(!one.stderr.contains("added up"), "{one:#?}");
    let none = watch(&["--model", "huge"]).expect(2);
    assert!(none.stderr.contains("no model \"huge\"; it has large, small"), "{none:#?}");
}

/// Their own lengths tell how long those left will be.
#[test]
fn a_simulated_server_tells_how_long_its_answers_were() {
    let place = Place::new();
    place.write("t.csv", small_trace(50, 4));
    let sim = Sim::start(&place, &[]);
    place.run(&["run", "t.csv", "--url", &sim.url, "--out", "a", "--no-preflight"]).expect(0);
    let run =
        ["run", "t.csv", "--url", &sim.url, "--out", "b", "--no-preflight", "--speed", "0.02"];
    let mut load = place.command(&run).stderr(Stdio::null()).stdout(Stdio::null()).spawn();
    let load = load.as_mut().expect("the program starts");
    let watch = ["watch", &sim.url, "--once", "--window", "3s", "--json", "--remaining", "100"];
    let said = place.run(&watch).expect(0);
    load.kill().expect("it runs");
    load.wait().expect("an end");
    let window = json(&said.stdout);
    assert_eq!(window["mean_completion_tok"], 4.0, "{said:#?}");
    assert_eq!(window["left_basis"], "since_start");
    let mean_tok = window["left_mean_tok"].as_f64().expect("known");
    assert!((3.5..4.5).contains(&mean_tok), "{said:#?}");
}

/// 200 streams at 1,600 tok/s in all.
#[test]
fn a_simulated_server_makes_what_it_is_set_to() {
    let place = Place::new();
    place.write("t.csv", small_trace(200, 0).replace(",10,4\n", ",10,400\n"));
    let sim = Sim::start(&place, &["--output-tok-s", "1600", "--max-running", "400"]);
    let run = ["run", "t.csv", "--url", &sim.url, "--out", "run", "--quiet", "--no-preflight"];
    let mut load = place.command(&run).stderr(Stdio::null()).stdout(Stdio::null()).spawn();
    let load = load.as_mut().expect("the program starts");
    // All are in the batch before the window begins.
    let running = || {
        let said = place.run(&[&["watch", &sim.url], &BRIEF[..]].concat());
        json(&said.stdout)["running"].as_f64()
    };
    while running() != Some(200.0) {}
    let watch = ["watch", &sim.url, "--once", "--window", "4s", "--json"];
    let left = ["--remaining", "25000", "--mean-tokens", "650"];
    let said = place.run(&[&watch[..], &left].concat()).expect(0);
    load.kill().expect("it runs");
    load.wait().expect("an end");
    sim.end(&place);
    let window = json(&said.stdout);
    let near = |name: &str, expect: f64, share: f64| {
        let value = window[name].as_f64().expect(name);
        assert!((value / expect - 1.0).abs() < share, "{name} {value}, not {expect}: {said:#?}");
    };
    near("running", 200.0, 0.01);
    // A step of all more or less, which is 3% of so short a window.
    near("generation_tok_s", 1600.0, 0.05);
    near("left_s", 10_156.0, 0.06);
    assert!(window["left_low_s"].as_f64() <= window["left_s"].as_f64());
}
