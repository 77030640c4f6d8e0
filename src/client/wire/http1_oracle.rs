//! Our reading of HTTP/1.1 responses against hyper's, however the bytes are cut.

use std::future::poll_fn;
use std::pin::Pin;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper_util::rt::TokioIo;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::http1::Http1;
use super::maybe_tls::Wire;
use super::stamped::{Stamped, Transport};
use crate::clock::{Clock, VirtualTime};

/// Status, body as far as it came, and whether it ended well; `None`: no response.
type Read = Option<(u16, Vec<u8>, bool)>;

/// Writes a response in pieces and closes.
async fn serve(mut pipe: DuplexStream, response: Vec<u8>, piece: usize) {
    let mut request = [0; 1024];
    let _ = pipe.read(&mut request).await;
    for part in response.chunks(piece) {
        if pipe.write_all(part).await.is_err() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

async fn ours(pipe: DuplexStream, clock: Clock) -> Read {
    let mut exchange = Http1::new(Wire::Plain(Stamped::new(Transport::Pipe(pipe), clock)));
    exchange.ask(Request::get("/").body(Bytes::new()).expect("a request"));
    let head = poll_fn(|context| exchange.poll_head(context)).await.ok()?;
    let mut body = Vec::new();
    loop {
        let read = poll_fn(|context| {
            exchange.poll_read(context, |bytes, _| body.extend_from_slice(bytes))
        });
        match read.await {
            Some(Ok(())) => {}
            Some(Err(_)) => return Some((head.status.as_u16(), body, false)),
            None => return Some((head.status.as_u16(), body, true)),
        }
    }
}

async fn hypers(pipe: DuplexStream) -> Read {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(pipe)).await.ok()?;
    tokio::task::spawn_local(connection);
    let request = Request::get("/").body(Empty::<Bytes>::new()).expect("a request");
    let (head, mut incoming) = sender.send_request(request).await.ok()?.into_parts();
    let mut body = Vec::new();
    let mut incoming = Pin::new(&mut incoming);
    while let Some(frame) = incoming.frame().await {
        match frame.map(hyper::body::Frame::into_data) {
            Ok(Ok(bytes)) => body.extend_from_slice(&bytes),
            Ok(Err(_trailers)) => {}
            Err(_) => return Some((head.status.as_u16(), body, false)),
        }
    }
    Some((head.status.as_u16(), body, true))
}

/// What both make of a response.
fn both(response: &[u8], piece: usize) -> (Read, Read) {
    let time = std::sync::Arc::new(VirtualTime::default());
    let clock = Clock::of_virtual(&time);
    let ran = time.run(|| async {
        let pipe = || {
            let (near, far) = tokio::io::duplex(1 << 16);
            tokio::task::spawn_local(serve(far, response.to_vec(), piece));
            near
        };
        (ours(pipe(), clock.clone()).await, hypers(pipe()).await)
    });
    ran.expect("a runtime").expect("no stall")
}

fn responses() -> impl Strategy<Value = Vec<u8>> {
    let line = prop::sample::select(vec![
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.0 200 OK\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 429 \r\n",
        "HTTP/1.1 204 No Content\r\n",
        "HTTP/1.1 503\r\n",
    ]);
    let heads = prop::sample::select(vec![
        "",
        "content-length: 6\r\n",
        "Content-Length: 6, 6\r\n",
        "content-length: x\r\n",
        "transfer-encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "connection: close\r\nx: y\r\n",
    ]);
    let bodies = prop::sample::select(vec![
        "abcdef",
        "abc",
        "",
        "3\r\nabc\r\n0\r\n\r\n",
        "3;x=y\r\nabc\r\n10 \r\n0123456789abcdef\r\n0\r\nt: 1\r\n\r\n",
        "3\r\nabc\r\n",
        "3\r\nabcx\r\n",
        "zz\r\n",
        "3\r\nab",
    ]);
    (line, heads, bodies)
        .prop_map(|(line, head, body)| format!("{line}{head}\r\n{body}").into_bytes())
}

proptest! {
    #[test]
    fn both_read_the_same(response in responses(), piece in 1usize..80, cut in any::<prop::sample::Index>()) {
        for whole in [true, false] {
            let end = if whole { response.len() } else { cut.index(response.len()) };
            let (ours, hypers) = both(&response[..end], piece);
            prop_assert_eq!(ours, hypers, "{:?} by {}", String::from_utf8_lossy(&response[..end]), piece);
        }
    }
}
