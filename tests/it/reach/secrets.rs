//! Keys, header values and queries are in the request, and nowhere else.

use super::files;
use super::server::{Asked, Server, good, response};
use crate::program::{Place, Said, small_trace};

/// Part of everything that must not be seen.
const MARK: &str = "s3cr3t";

#[track_caller]
fn assert_hidden(said: &Said, place: &Place, run: &str) {
    assert!(!said.stdout.contains(MARK) && !said.stderr.contains(MARK), "{said:#?}");
    for (path, bytes) in files(&place.path(run)) {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(MARK), "{path}: {text}");
    }
}

/// Refuses, and quotes what it was sent.
fn echo(asked: &Asked) -> String {
    if !asked.is_post() {
        return good(asked);
    }
    let quoted = asked.headers.join(" | ").replace('"', "'");
    let body = format!(r#"{{"error":{{"message":"bad key: {} {quoted}"}}}}"#, asked.line);
    response("401 Unauthorized", "application/json", &body)
}

#[test]
fn a_key_and_a_header_reach_the_server_and_nothing_else() {
    let place = Place::new();
    let server = Server::start(good);
    let url = format!("{}/v1?code=q-{MARK}", server.url());
    place.write("t.csv", small_trace(3, 10));
    let said = Said::of(
        &place
            .command(&["run", "t.csv", "--out", "run", "--url", &url, "--api-key-env", "TEST_KEY"])
            .args(["--header", &format!("X-Token: h-{MARK}"), "--model", "m"])
            .env("TEST_KEY", format!("k-{MARK}"))
            .output()
            .expect("the program starts"),
    )
    .expect(0);
    assert_hidden(&said, &place, "run");
    let posts = server.posts();
    assert!(posts.len() >= 3);
    for post in posts {
        assert!(post.headers.contains(&format!("authorization: Bearer k-{MARK}")), "{post:?}");
        assert!(post.headers.contains(&format!("x-token: h-{MARK}")), "{post:?}");
        assert!(post.headers.contains(&"accept-encoding: identity".to_owned()), "{post:?}");
        assert!(post.line.contains(&format!("?code=q-{MARK}")), "{post:?}");
    }
}

/// A key can also come from a file, and a server that quotes it in its refusal is not believed.
#[test]
fn what_a_server_quotes_is_blanked() {
    let place = Place::new();
    let server = Server::start(echo);
    place.write("t.csv", small_trace(3, 10)).write("key", format!("k-{MARK}\n"));
    let url = format!("{}?code=q-{MARK}", server.url());
    let header = format!("X-Token:h-{MARK}");
    let mut arguments = vec!["run", "t.csv", "--out", "run", "--url", &url, "--header", &header];
    arguments.extend(["--api-key-file", "key", "--model", "m"]);
    let said = place.run(&arguments).expect(4);
    assert!(said.stderr.contains("refuses the API key (401"), "{said:#?}");
    assert!(!said.stderr.contains(MARK) && !place.path("run").exists(), "{said:#?}");
    arguments.push("--no-preflight");
    let said = place.run(&arguments).expect(4);
    assert_hidden(&said, &place, "run");
    let rows = place.rows("run");
    assert!(rows.iter().all(|row| row.http_status == Some(401)), "{rows:#?}");
    assert!(
        rows[0]
            .error
            .as_deref()
            .is_some_and(|error| error.contains("Bearer …") || error.contains("authorization: …")),
        "{rows:#?}"
    );
}

#[test]
fn mistakes_are_told_without_the_secret() {
    let place = Place::new();
    place.write("t.csv", small_trace(1, 10)).write("empty", "\n").write("two", "a b\n");
    let check = |arguments: &[&str], part: &str| {
        let all = [&["run", "t.csv", "--url", "http://127.0.0.1:1"], arguments].concat();
        let said = place.run(&all).expect(2);
        assert!(said.stderr.contains(part), "{said:#?}");
        assert!(!said.stderr.contains(MARK), "{said:#?}");
    };
    check(&["--header", "Bearer s3cr3t"], "header 1 has no colon");
    check(&["--header", "X: s3cr3t\u{1}"], "value of header `x`");
    check(&["--api-key-env", "s3cr3t"], "is not set");
    check(&["--api-key-file", "nowhere"], "nowhere");
    check(&["--api-key-file", "empty"], "it is empty");
    check(&["--api-key-file", "two"], "one word");
    let said = place.run(&["run", "t.csv", "--url", "http://me:s3cr3t@127.0.0.1:1"]).expect(2);
    assert!(said.stderr.contains("--api-key-env") && !said.stderr.contains(MARK), "{said:#?}");
}
