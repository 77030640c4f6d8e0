//! A server for benchmarks, on a thread and a core of its own: it takes any request and sends the same
//! ready bytes, so that it costs as little as a server can.

use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::LocalSet;
use underfire::clock::Clock;
use underfire::units::Nanos;

use crate::ratio::{event, pin};

/// Between two events of a stream that is sent event by event.
const ROUND: Nanos = Nanos::from_millis(10);

/// How an answer is written.
#[derive(Clone, Copy)]
pub(crate) enum Answers {
    /// In one go.
    Whole,
    /// An event in every round.
    EventByEvent,
}

impl Answers {
    /// Token events of an answer.
    pub(crate) fn tokens(self) -> usize {
        match self {
            Self::Whole => 256,
            Self::EventByEvent => 64,
        }
    }

    /// Bytes of an answer.
    pub(crate) fn bytes(self) -> usize {
        self.parts().iter().map(Vec::len).sum()
    }

    fn parts(self) -> Vec<Vec<u8>> {
        parts(self.tokens())
    }
}

/// The parts of an answer: head, events, end; each event is an HTTP chunk.
fn parts(tokens: usize) -> Vec<Vec<u8>> {
    let chunk = |event: &str| format!("{:x}\r\n{event}\r\n", event.len()).into_bytes();
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut parts = vec![head.as_bytes().to_vec()];
    parts.extend((0..tokens).map(|index| chunk(&event(index))));
    parts.push([chunk("data: [DONE]\n\n"), b"0\r\n\r\n".to_vec()].concat());
    parts
}

/// The server; it ends with this value.
pub(crate) struct Server {
    port: u16,
    stop: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(answers: Answers) -> Self {
        let stop = Arc::new(Notify::new());
        let (say_port, port) = mpsc::channel();
        let thread = {
            let stop = stop.clone();
            std::thread::spawn(move || {
                pin(1);
                let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
                let runtime = runtime.expect("a runtime");
                LocalSet::new().block_on(&runtime, async {
                    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
                    say_port
                        .send(listener.local_addr().expect("bound").port())
                        .expect("waited for");
                    tokio::select! {
                        () = serve(listener, answers) => {}
                        () = stop.notified() => {}
                    }
                });
            })
        };
        Self { port: port.recv().expect("it starts"), stop, thread: Some(thread) }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve(listener: TcpListener, answers: Answers) {
    let (ring, rounds) = watch::channel(());
    tokio::task::spawn_local(async move {
        let clock = Clock::real().expect("a timer");
        let mut at = clock.now();
        loop {
            at += ROUND;
            clock.sleep_until(at).await;
            if ring.send(()).is_err() {
                return;
            }
        }
    });
    loop {
        let (socket, _) = listener.accept().await.expect("a connection");
        socket.set_nodelay(true).expect("a socket");
        tokio::task::spawn_local(answer(socket, answers, rounds.clone()));
    }
}

/// Answers requests until the client goes away.
async fn answer(mut socket: TcpStream, answers: Answers, mut rounds: watch::Receiver<()>) {
    let parts = match answers {
        Answers::Whole => vec![answers.parts().concat()],
        Answers::EventByEvent => answers.parts(),
    };
    while request(&mut socket).await.is_some() {
        let mut written = Ok(());
        for part in &parts {
            if parts.len() > 1 && rounds.changed().await.is_err() {
                return;
            }
            written = written.and(socket.write_all(part).await);
        }
        if written.is_err() {
            return;
        }
    }
}

/// Reads one request with its body.
async fn request(socket: &mut TcpStream) -> Option<()> {
    let mut bytes = Vec::new();
    loop {
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let Some(head) = memchr::memmem::find(&bytes, b"\r\n\r\n") else { continue };
        let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length:"))?;
        let length: usize = length.trim().parse().ok()?;
        if bytes.len() >= head + 4 + length {
            return Some(());
        }
    }
}
