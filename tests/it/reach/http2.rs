//! `--http2`: many requests over one connection, and more connections when it is full.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use h2::server::SendResponse;
use hyper::{Method, Response};
use underfire::record::Outcome;

use super::server::good;
use super::tls;
use crate::program::{Place, small_trace};

/// What a server saw.
#[derive(Default)]
struct Seen {
    connections: AtomicU32,
    posts: AtomicU32,
    /// Of those, with the key, the path's query and no `host`.
    whole: AtomicU32,
}

/// A server without TLS that takes `streams` at a time per connection, and answers a request once
/// `together` of them are there.
fn server(streams: u32, together: u32) -> (u16, Arc<Seen>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let seen = Arc::new(Seen::default());
    let kept = seen.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        runtime.expect("a runtime").block_on(async move {
            listener.set_nonblocking(true).expect("a socket");
            let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
            while let Ok((socket, _)) = listener.accept().await {
                kept.connections.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(serve(socket, streams, together, kept.clone()));
            }
        });
    });
    (port, seen)
}

async fn serve(socket: tokio::net::TcpStream, streams: u32, together: u32, seen: Arc<Seen>) {
    let mut builder = h2::server::Builder::new();
    let builder = builder.max_concurrent_streams(streams);
    let Ok(mut connection) = builder.handshake::<_, Bytes>(socket).await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        let is_post = request.method() == Method::POST;
        if is_post {
            let headers = request.headers();
            let whole = headers.get("x-key").is_some_and(|key| key == "k")
                && !headers.contains_key("host")
                && request.uri().query() == Some("a=b")
                && request.uri().authority().is_some();
            seen.posts.fetch_add(1, Ordering::Relaxed);
            seen.whole.fetch_add(u32::from(whole), Ordering::Relaxed);
        }
        let seen = seen.clone();
        tokio::spawn(async move {
            while is_post && seen.posts.load(Ordering::Relaxed) < together {
                tokio::task::yield_now().await;
            }
            answer(is_post, respond);
        });
    }
}

fn answer(is_post: bool, mut respond: SendResponse<Bytes>) {
    let kind = if is_post { "text/event-stream" } else { "application/json" };
    let head = Response::builder().header("content-type", kind).body(()).expect("a head");
    let Ok(mut body) = respond.send_response(head, false) else { return };
    let token = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" a\"}}]}\n\n";
    let parts = if is_post {
        [token, token, token, token, "data: [DONE]\n\n"]
    } else {
        [r#"{"data":[{"id":"m"#, "-1", r#""}]}"#, "", ""]
    };
    for part in parts {
        let _ = body.send_data(Bytes::from_static(part.as_bytes()), false);
    }
    let _ = body.send_data(Bytes::new(), true);
}

fn run(port: u16, rows: u32, gap_ms: u32) -> (Place, Vec<underfire::record::Row>) {
    let place = Place::new();
    place.write("t.csv", small_trace(rows, gap_ms));
    let url = format!("http://127.0.0.1:{port}/v1?a=b");
    let arguments =
        ["run", "t.csv", "--out", "run", "--url", &url, "--http2", "--header", "X-Key: k"];
    place.run(&[&arguments[..], &["--workers", "1", "--no-preflight"]].concat()).expect(0);
    let rows = place.rows("run");
    (place, rows)
}

#[test]
fn requests_share_a_connection() {
    let (port, seen) = server(100, 0);
    let (_place, rows) = run(port, 20, 20);
    for row in &rows {
        assert_eq!((row.outcome, row.chunks), (Outcome::Ok, Some(4)), "{row:?}");
    }
    assert_eq!(seen.posts.load(Ordering::Relaxed), 20);
    assert_eq!(seen.whole.load(Ordering::Relaxed), 20, "key, query, authority and no host header");
    assert!(rows.iter().filter(|row| row.conn_reused == Some(true)).count() >= 10, "{rows:#?}");
    assert!(seen.connections.load(Ordering::Relaxed) <= 10);
}

/// 20 answers that all wait for each other need 5 connections of 4 streams: nothing waits in here.
#[test]
fn a_full_connection_is_joined_by_another() {
    let (port, seen) = server(4, 20);
    let (_place, rows) = run(port, 20, 0);
    assert_eq!(rows.len(), 20);
    assert!(rows.iter().all(|row| row.outcome == Outcome::Ok), "{rows:#?}");
    assert!(seen.connections.load(Ordering::Relaxed) >= 6, "one of them for the model list");
}

#[test]
fn tls_without_http2_is_told() {
    let server = tls::localhost(good);
    let place = Place::new();
    place.write("t.csv", small_trace(1, 10));
    let url = format!("https://localhost:{}", server.port);
    let said = place.run(&["run", "t.csv", "--insecure", "--http2", "--url", &url]).expect(4);
    assert!(said.stderr.contains("does not offer HTTP/2"), "{said:#?}");
}
