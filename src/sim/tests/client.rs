//! A client of a few lines that shares nothing with the one under test elsewhere: it writes bytes,
//! reads bytes, and knows when it read them.

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::clock::Clock;
use crate::units::Nanos;

/// One connection.
pub(super) struct Client {
    io: DuplexStream,
    clock: Clock,
    /// Read, but not yet used.
    pending: Vec<u8>,
    /// When the last read ended.
    read_at: Nanos,
}

/// A response, read to its end.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
    /// When the head was read.
    pub(super) head_at: Nanos,
    /// The pieces in which the body came, each with the time of the read that completed it.
    pub(super) pieces: Vec<(Nanos, String)>,
}

impl Client {
    pub(super) fn new(io: DuplexStream, clock: Clock) -> Self {
        Self { io, clock, pending: Vec::new(), read_at: Nanos::ZERO }
    }

    pub(super) async fn post(&mut self, path: &str, body: &str) -> Reply {
        self.send(path, body).await;
        self.reply().await
    }

    pub(super) async fn send(&mut self, path: &str, body: &str) {
        let length = body.len();
        let head = format!("POST {path} HTTP/1.1\r\nhost: sim\r\ncontent-length: {length}\r\n\r\n");
        self.write(&(head + body)).await;
    }

    pub(super) async fn get(&mut self, path: &str) -> Reply {
        self.write(&format!("GET {path} HTTP/1.1\r\nhost: sim\r\n\r\n")).await;
        self.reply().await
    }

    pub(super) async fn write(&mut self, text: &str) {
        self.io.write_all(text.as_bytes()).await.expect("the server reads");
    }

    pub(super) async fn reply(&mut self) -> Reply {
        let head = self.until("\r\n\r\n").await;
        let head_at = self.read_at;
        let status = head[9..12].parse().expect("a status line");
        let mut reply = Reply { status, body: String::new(), head_at, pieces: Vec::new(), head };
        if reply.head.contains("transfer-encoding: chunked") {
            loop {
                let size = self.until("\r\n").await;
                let size = usize::from_str_radix(size.trim_end(), 16).expect("a chunk size");
                let piece = self.exactly(size + 2).await;
                if size == 0 {
                    return reply;
                }
                reply.body.push_str(&piece[..size]);
                reply.pieces.push((self.read_at, piece[..size].to_owned()));
            }
        }
        let length = reply.head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length = length.expect("a length").parse().expect("a number");
        reply.body = self.exactly(length).await;
        reply
    }

    /// Everything up to and including `mark`.
    pub(super) async fn until(&mut self, mark: &str) -> String {
        loop {
            let found = self.pending.windows(mark.len()).position(|w| w == mark.as_bytes());
            if let Some(at) = found {
                return self.take(at + mark.len());
            }
            self.read().await;
        }
    }

    async fn exactly(&mut self, length: usize) -> String {
        while self.pending.len() < length {
            self.read().await;
        }
        self.take(length)
    }

    fn take(&mut self, length: usize) -> String {
        let rest = self.pending.split_off(length);
        let taken = std::mem::replace(&mut self.pending, rest);
        String::from_utf8(taken).expect("text")
    }

    async fn read(&mut self) {
        let length = self.io.read_buf(&mut self.pending).await.expect("a pipe");
        assert!(length > 0, "the server closed after {:?}", String::from_utf8_lossy(&self.pending));
        self.read_at = self.clock.now();
    }
}

impl Reply {
    /// The data of each SSE event, with its time; every event must have come as a piece of its own.
    pub(super) fn events(&self) -> Vec<(Nanos, &str)> {
        self.pieces
            .iter()
            .map(|(at, piece)| {
                let data = piece.strip_prefix("data: ").and_then(|data| data.strip_suffix("\n\n"));
                (*at, data.unwrap_or_else(|| panic!("one whole event, not {piece:?}")))
            })
            .collect()
    }

    /// The events that are JSON.
    pub(super) fn chunks(&self) -> Vec<(Nanos, serde_json::Value)> {
        let events = self.events();
        assert_eq!(events.last().map(|(_, data)| *data), Some("[DONE]"));
        events[..events.len() - 1]
            .iter()
            .map(|(at, data)| (*at, serde_json::from_str(data).expect("JSON")))
            .collect()
    }

    /// The times of the events with text.
    pub(super) fn token_times(&self) -> Vec<Nanos> {
        let has_text = |chunk: &serde_json::Value| {
            let choice = &chunk["choices"][0];
            let text = choice["delta"]["content"].as_str().or(choice["text"].as_str());
            text.is_some_and(|text| !text.is_empty())
        };
        let chunks = self.chunks();
        chunks.iter().filter(|(_, chunk)| has_text(chunk)).map(|(at, _)| *at).collect()
    }

    pub(super) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).expect("JSON")
    }
}
