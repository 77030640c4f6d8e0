//! What servers say in other forms than they were asked for, and what a person reads of it.

use std::io::Read;
use std::net::TcpListener;

use underfire::record::{Outcome, Row};

use super::server::{Answer, Asked, Server, good, models, response, stream};
use crate::program::{Place, Said, small_trace};

/// One row sent to a server, without a preflight.
fn one(answer: Answer, more: &[&str]) -> (Row, Said) {
    let server = Server::start(answer);
    let place = Place::new();
    place.write("t.csv", small_trace(1, 10));
    let url = server.url();
    let run = ["run", "t.csv", "--out", "run", "--url", &url, "--no-preflight", "--model", "m"];
    let said = place.run(&[&run[..], more].concat());
    (place.rows("run").remove(0), said)
}

#[test]
fn a_body_that_is_no_stream_of_events_is_told_in_the_servers_words() {
    fn answer(asked: &Asked) -> String {
        let events = |body: &str| response("200 OK", "text/event-stream", body);
        let case = asked.headers.iter().find_map(|line| line.strip_prefix("x-case: "));
        match case.unwrap_or_default() {
            "error" => events(r#"{"error":{"message":"no room, k3y-of-mine","code":507}}"#),
            "pretty" => events("{\n  \"error\": {\n    \"message\": \"no room\"\n  }\n}\n"),
            "whole" => events(r#"{"id":"x","choices":[{"message":{"content":"hi"}}]}"#),
            "page" => events("<html><body><h1>Bad gateway</h1></body></html>"),
            "text" => events("upstream connect error\n"),
            "late" => {
                let token = r#"data: {"choices":[{"index":0,"delta":{"content":" a"}}]}"#;
                events(&format!("{token}\n\n{{\"error\":\"no room\"}}"))
            }
            _ => events(""),
        }
    }
    for (case, outcome, parts) in [
        ("error", Outcome::StreamError, ["got one JSON body: ", "no room, …"]),
        ("pretty", Outcome::StreamError, ["got one JSON body: ", "no room"]),
        ("whole", Outcome::StreamError, ["got one JSON body: ", "hi"]),
        ("page", Outcome::StreamError, ["got one HTML page: ", "Bad gateway"]),
        ("text", Outcome::Truncated, ["(content-type: text/event-stream): ", "connect error"]),
        ("late", Outcome::StreamError, ["outside of the events: ", "no room"]),
        ("nothing", Outcome::Truncated, ["neither a finish_reason nor [DONE]", ""]),
    ] {
        let case_header = format!("X-Case: {case}");
        let headers = ["--header", &case_header, "--header", "X-Key: k3y-of-mine"];
        let (row, said) = one(answer, &headers);
        let error = row.error.as_deref().expect("words");
        assert_eq!((row.outcome, row.http_status), (outcome, Some(200)), "{case}: {error}");
        assert!(parts.iter().all(|part| error.contains(part)), "{case}: {error}");
        assert!(!error.contains("k3y-of-mine") && !said.stderr.contains("k3y-of-mine"), "{error}");
        assert_eq!(row.chunks, Some(u64::from(case == "late")), "{case}");
    }
}

#[test]
fn endless_informational_responses_end_with_words() {
    const HINT: &str = "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n";
    fn hints(asked: &Asked) -> String {
        HINT.repeat(5_000) + &good(asked)
    }
    fn few(asked: &Asked) -> String {
        HINT.repeat(9) + &good(asked)
    }
    let (row, _) = one(hints, &[]);
    let error = row.error.expect("words");
    assert_eq!(row.outcome, Outcome::Connect, "{error}");
    assert!(error.contains("informational responses (1xx), 65536 bytes of them"), "{error}");
    assert_eq!(one(few, &[]).0.outcome, Outcome::Ok, "a few are nothing");
}

#[test]
fn control_characters_of_a_server_reach_no_terminal() {
    const SET_TITLE: &str = "\u{1b}]0;x\u{7}";
    fn evil(asked: &Asked) -> String {
        if asked.is_post() {
            let body = r#"{"error":{"message":"no \u001b]0;x\u0007 \u009b2J room"}}"#;
            return response("500 Internal Server Error", "application/json", body);
        }
        if asked.line.contains("/v1/models") {
            let list = r#"{"data":[{"id":"m\u001b]0;x\u0007\u009b31m","owned_by":"vllm"}]}"#;
            return response("200 OK", "application/json", list);
        }
        if asked.line.contains("/version") {
            let version = r#"{"version":"1\u001b]0;x\u0007"}"#;
            return response("200 OK", "application/json", version);
        }
        if asked.line.contains("/metrics") {
            let page = format!(
                "# TYPE vllm:num_requests_running gauge\n\
                 vllm:num_requests_running{{model_name=\"{SET_TITLE}\"}} 1\n\
                 vllm:generation_tokens_total{{model_name=\"{SET_TITLE}\"}} 1\n"
            );
            return response("200 OK", "text/plain", &page);
        }
        models(asked)
    }
    let server = Server::start(evil);
    let place = Place::new();
    place.write("t.csv", small_trace(2, 10));
    let url = server.url();
    for arguments in [
        &["run", "t.csv", "--out", "run", "--url", &url][..],
        &["run", "t.csv", "--out", "json", "--json", "--url", &url],
        &["run", "t.csv", "--out", "dry", "--dry-run", "--url", &url],
        &["report", "run"],
        &["watch", &url, "--once", "--window", "1s"],
    ] {
        let said = place.run(arguments);
        let all = format!("{}{}", said.stdout, said.stderr);
        let raw: Vec<char> =
            all.chars().filter(|c| c.is_control() && !"\n\t".contains(*c)).collect();
        assert_eq!(raw, [], "{arguments:?}: {said:#?}");
    }
    let said = place.run(&["report", "run"]).expect(0);
    assert!(said.stdout.contains(r"(m\u001b]0;x\u0007\u009b31m)"), "{said:#?}");
    let asked = server.posts();
    assert!(asked[0].body.contains(r#""m\u001b]0;x\u0007"#), "the name itself is sent: {asked:#?}");
}

#[test]
fn http2_to_a_server_without_it_is_told_with_the_remedy() {
    let (row, said) = one(good, &["--http2"]);
    let error = row.error.expect("words");
    assert!(error.contains("does not speak HTTP/2") && error.contains("--http2"), "{error}");
    said.expect(4);

    // One that hangs up on what it does not understand.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let _ = socket.read(&mut [0; 16]);
        }
    });
    let place = Place::new();
    place.write("t.csv", small_trace(1, 10));
    let run = ["run", "t.csv", "--out", "run", "--url", &url, "--http2", "--model", "m"];
    place.run(&[&run[..], &["--no-preflight"]].concat()).expect(4);
    let row = place.rows("run").remove(0);
    let error = row.error.expect("words");
    assert!(error.contains("said anything in HTTP/2") && error.contains("--http2"), "{error}");
}

#[test]
fn requests_that_prime_a_server_end_with_the_limits_of_the_run() {
    // The server answers nothing but what comes with the rows.
    fn silent(asked: &Asked) -> String {
        if asked.body.contains("\"max_tokens\":16,") || asked.body.contains("\"max_tokens\":16}") {
            std::thread::park_timeout(std::time::Duration::from_secs(20));
        }
        if asked.is_post() { stream(4, "") } else { models(asked) }
    }
    let server = Server::start(silent);
    let place = Place::new();
    place.write("t.csv", small_trace(2, 10));
    let url = server.url();
    let run = ["run", "t.csv", "--out", "run", "--url", &url, "--no-preflight", "--prime", "3"];
    let said = place.run(&[&run[..], &["--timeout", "400ms"]].concat()).expect(0);
    assert!(said.stderr.contains("priming: 3 requests, 0.4 s at the most"), "{said:#?}");
    assert!(said.stderr.contains("0 ok") && said.stderr.contains("(--timeout)"), "{said:#?}");
    assert!(place.rows("run").iter().all(|row| row.outcome == Outcome::Ok), "rows are sent");
}
