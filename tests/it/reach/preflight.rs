//! What is asked before `t0`: engines, the small request sent ahead, readiness.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};

use underfire::record::Outcome;

use super::server::{Asked, Server, good, models, response, stream};
use crate::program::{Place, Said, small_trace};

fn run(server: &Server, out: &str, more: &[&str]) -> (Place, Said) {
    let place = Place::new();
    place.write("t.csv", small_trace(3, 10));
    let url = server.url();
    let said = place.run(&[&["run", "t.csv", "--out", out, "--url", &url], more].concat());
    (place, said)
}

fn manifest(place: &Place) -> serde_json::Value {
    serde_json::from_str(&place.read("run/run.json")).expect("JSON")
}

/// AISBench#311, guidellm#192: "0 tokens" in the place of an error.
#[test]
fn a_refusal_is_one_message_with_its_remedy_and_no_rows() {
    fn key(asked: &Asked) -> String {
        let body = r#"{"error":{"message":"Unauthorized"}}"#;
        if asked.is_post() {
            response("401 Unauthorized", "application/json", body)
        } else {
            models(asked)
        }
    }
    fn model(asked: &Asked) -> String {
        let body = r#"{"error":{"message":"The model `x` does not exist."}}"#;
        if asked.is_post() {
            response("404 Not Found", "application/json", body)
        } else {
            models(asked)
        }
    }
    fn path(asked: &Asked) -> String {
        let body = r#"{"detail":"Not Found"}"#;
        if asked.is_post() {
            response("404 Not Found", "application/json", body)
        } else {
            models(asked)
        }
    }
    fn page(asked: &Asked) -> String {
        let body = "<html><body>Welcome!</body></html>";
        if asked.is_post() { response("200 OK", "text/html", body) } else { models(asked) }
    }
    fn redirect(asked: &Asked) -> String {
        if asked.is_post() {
            response("308 Permanent Redirect", "text/plain", "")
        } else {
            models(asked)
        }
    }
    for (answer, more, parts) in [
        (
            key as fn(&Asked) -> String,
            &[][..],
            ["wants an API key (401: Unauthorized)", "--api-key-env"],
        ),
        (model, &["--model", "x"], ["does not know the model", "it lists `m-1`"]),
        (path, &[], ["has no such API at this path", "the server's root"]),
        (page, &[], ["got one HTML page: Welcome!", "is --url the address"]),
        (redirect, &[], ["redirects (308", "give the final URL"]),
    ] {
        let server = Server::start(answer);
        let (place, said) = run(&server, "run", more);
        let said = said.expect(4);
        for part in parts {
            assert!(said.stderr.contains(part), "{part}: {said:#?}");
        }
        assert!(!place.path("run").exists(), "no rows, no folder");
        assert_eq!(server.posts().len(), 1);
    }
}

#[test]
fn a_preflight_is_no_row_and_can_be_left_out() {
    let server = Server::start(good);
    let (place, said) = run(&server, "run", &[]);
    let said = said.expect(0);
    assert!(said.stderr.contains("preflight: ok · 4 tokens in 4 chunks"), "{said:#?}");
    assert_eq!((server.posts().len(), place.rows("run").len()), (4, 3));
    assert_eq!(manifest(&place)["server"]["preflight"]["outcome"], "ok");

    for (more, gets) in [
        (&["--no-preflight"][..], 1),
        (&["--engine", "openai"], 1),
        (&["--engine", "openai", "--model", "m"], 0),
        (&["--no-preflight", "--model", "m"], 0),
    ] {
        let server = Server::start(good);
        let (_, said) = run(&server, "run", more);
        said.expect(0);
        let asked = server.asked();
        let posts = server.posts().len();
        assert_eq!((posts, asked.len() - posts), (3, gets), "{more:?}: {asked:#?}");
    }
}

#[test]
fn an_answer_in_one_piece_is_told() {
    fn one_piece(asked: &Asked) -> String {
        if asked.is_post() { stream(32, "") } else { models(asked) }
    }
    let (place, said) = run(&Server::start(one_piece), "run", &[]);
    let said = said.expect(0);
    assert!(said.stderr.contains("came in one piece"), "{said:#?}");
    assert!(manifest(&place)["notices"].to_string().contains("came in one piece"));
}

/// A list as vLLM gives it, and its version.
fn vllm(asked: &Asked) -> String {
    if asked.is_post() {
        return stream(4, "");
    }
    let list = r#"{"data":[{"id":"m-1","owned_by":"vllm","max_model_len":2048}]}"#;
    match asked.line.split(' ').nth(1) {
        Some("/v1/models") => response("200 OK", "application/json", list),
        Some("/version") => response("200 OK", "application/json", r#"{"version":"0.32.0"}"#),
        _ => response("404 Not Found", "application/json", "{}"),
    }
}

#[test]
fn an_engine_is_recognised_and_its_keys_are_used() {
    let server = Server::start(vllm);
    let (place, said) =
        run(&server, "run", &["--ignore-eos", "--max-tokens-key", "max_completion_tokens"]);
    let said = said.expect(0);
    assert!(said.stderr.contains("engine: vllm 0.32.0 · at most 2048 tokens"), "{said:#?}");
    let about = &manifest(&place)["server"];
    assert_eq!((&about["engine"], &about["version"]), (&"vllm".into(), &"0.32.0".into()));
    assert_eq!((&about["max_model_len"], &about["running_usage"]), (&2048.into(), &true.into()));
    for post in server.posts() {
        assert!(post.body.contains(r#""continuous_usage_stats":true"#), "{post:?}");
        assert!(post.body.contains(r#""ignore_eos":true"#), "{post:?}");
        assert!(post.body.contains(r#""max_completion_tokens":"#), "{post:?}");
    }
}

/// guidellm#603: keys that a strict gateway does not know make it refuse every request.
#[test]
fn no_vendor_key_goes_to_a_server_that_is_not_recognised() {
    let server = Server::start(good);
    let (_, said) = run(&server, "run", &["--ignore-eos"]);
    let said = said.expect(2);
    assert!(said.stderr.contains("--engine"), "{said:#?}");
    assert_eq!(server.posts().len(), 0);

    let (_, said) =
        run(&server, "run", &["--ignore-eos", "--engine", "sglang", "--running-usage", "off"]);
    said.expect(0);
    for post in server.posts() {
        assert!(post.body.contains(r#""ignore_eos":true"#), "{post:?}");
        assert!(!post.body.contains("continuous"), "{post:?}");
    }
    let plain = Server::start(good);
    run(&plain, "run", &[]).1.expect(0);
    let body = plain.posts().remove(0).body;
    assert!(!body.contains("continuous") && !body.contains("ignore_eos"), "{body}");
}

/// dynamo#3728: a wait that gives up on the first refusal.
#[test]
fn a_server_is_waited_for() {
    fn slow_start(asked: &Asked) -> String {
        static ASKED: AtomicU32 = AtomicU32::new(0);
        if ASKED.fetch_add(1, Ordering::Relaxed) < 3 {
            return response("503 Service Unavailable", "application/json", "{}");
        }
        good(asked)
    }
    let server = Server::start(slow_start);
    let (place, said) = run(&server, "run", &["--wait-ready", "60s"]);
    said.expect(0);
    assert!(place.rows("run").iter().all(|row| row.outcome == Outcome::Ok));

    let nobody = Server { port: free_port(), ..server };
    let (_, said) = run(&nobody, "run", &["--wait-ready", "1ms", "--model", "m"]);
    let said = said.expect(4);
    assert!(said.stderr.contains("not ready after") && said.stderr.contains("--wait-ready"));
}

/// A fault that passes by itself within seconds ends no run; one that is definite is not asked about again.

#[test]
fn a_fault_that_may_pass_is_waited_out_for_a_while() {
    fn list_comes_late(asked: &Asked) -> String {
        static ASKED: AtomicU32 = AtomicU32::new(0);
        let is_list = asked.line.contains(" /v1/models ");
        if is_list && ASKED.fetch_add(1, Ordering::Relaxed) < 2 {
            return response("503 Service Unavailable", "application/json", "{}");
        }
        good(asked)
    }
    fn first_post_fails(asked: &Asked) -> String {
        static ASKED: AtomicU32 = AtomicU32::new(0);
        if asked.is_post() && ASKED.fetch_add(1, Ordering::Relaxed) < 1 {
            return response("503 Service Unavailable", "application/json", "{}");
        }
        good(asked)
    }
    fn refused(asked: &Asked) -> String {
        let status = if asked.is_post() { "404 Not Found" } else { "401 Unauthorized" };
        response(status, "application/json", "{}")
    }
    for answer in [list_comes_late as fn(&Asked) -> String, first_post_fails] {
        let (place, said) = run(&Server::start(answer), "run", &[]);
        let said = said.expect(0);
        assert_eq!(said.stderr.matches("waiting for the server http://").count(), 1, "{said:#?}");
        assert!(said.stderr.contains("preflight: ok"), "{said:#?}");
        assert!(place.rows("run").iter().all(|row| row.outcome == Outcome::Ok));
        assert_eq!(manifest(&place)["model"], "m-1");
    }

    // Nobody there at first.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let place = Place::new();
    place.write("t.csv", small_trace(3, 10));
    let url = format!("http://127.0.0.1:{port}");
    let mut child = place.command(&["run", "t.csv", "--out", "run", "--url", &url]);
    let mut child = child.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    let waits =
        lines.by_ref().map_while(Result::ok).any(|line| line.contains("waiting for the server"));
    assert!(waits, "it says so at once");
    let listener = std::net::TcpListener::bind(("127.0.0.1", port)).expect("still free");
    let server = Server::on(listener, good, |socket| Some(Box::new(socket)));
    lines.for_each(drop);
    assert_eq!(child.wait().expect("an end").code(), Some(0));
    assert_eq!(server.posts().len(), 4);

    let server = Server::start(refused);
    let (_, said) = run(&server, "run", &[]);
    let said = said.expect(4);
    assert!(!said.stderr.contains("waiting for"), "{said:#?}");
    assert_eq!(server.posts().len(), 1);
}

/// An engine that does not know its own version says a word in its place.
#[test]
fn a_version_that_is_none_is_unknown() {
    fn llama_cpp(asked: &Asked) -> String {
        if asked.is_post() {
            return stream(4, "");
        }
        let json = |body| response("200 OK", "application/json", body);
        match asked.line.split(' ').nth(1) {
            Some("/v1/models") => json(r#"{"data":[{"id":"m-1","owned_by":"llamacpp"}]}"#),
            Some("/props") => json(r#"{"build_info":"b0-unknown"}"#),
            _ => response("404 Not Found", "application/json", "{}"),
        }
    }
    let (place, said) = run(&Server::start(llama_cpp), "run", &[]);
    let said = said.expect(0);
    assert!(said.stderr.contains("engine: llamacpp, version unknown"), "{said:#?}");
    assert!(!said.stderr.contains("b0-unknown"), "{said:#?}");
    assert!(manifest(&place)["server"]["version"].is_null());
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// Thousands of 400s, told as one number before `t0`.
#[test]
fn rows_too_long_for_the_server_are_counted_or_cut() {
    let server = Server::start(vllm);
    let place = Place::new();
    place.write("t.csv", "at_s,input_tok,output_tok\n0,2000,48\n0,2000,100\n0,9,3000\n");
    let url = server.url();
    let arguments = ["run", "t.csv", "--out", "run", "--url", &url];
    let said = place.run(&arguments).expect(2);
    assert!(said.stderr.contains("2 of 3 rows ask for more than the 2048 tokens"), "{said:#?}");
    assert!(said.stderr.contains("the first is row 1") && said.stderr.contains("--clip-to-server"));
    assert!(!place.path("run").exists());
    let said =
        place.run(&[&arguments[..], &["--clip-to-server", "--plan", "p.csv"]].concat()).expect(0);
    assert!(said.stderr.contains("2 rows clipped to what the server takes"), "{said:#?}");
    let asked: Vec<_> =
        place.rows("run").iter().map(|row| (row.input_tok_asked, row.output_tok_asked)).collect();
    assert_eq!(
        asked,
        [(2000, 48), (1948, 100), (1, 2047)].map(|(input, output)| (Some(input), Some(output)))
    );
    assert!(place.read("p.csv").contains(",1948,100,"), "the plan is what is sent");
    assert_eq!(manifest(&place)["source"]["plan"]["clipped_to_server"], 2);
    // The built-in server has a length as well.
    place.write("l.csv", "at_s,input_tok,output_tok\n0,400000,10\n");
    place.run(&["run", "l.csv"]).expect(2);
}
