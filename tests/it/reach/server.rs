//! A server in the test's own process: it keeps every request, and answers what the test says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Method, target and version.
    pub(crate) line: String,
    /// Header lines, names in lower case.
    pub(crate) headers: Vec<String>,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn is_post(&self) -> bool {
        self.line.starts_with("POST ")
    }

    /// Whether it is one of the questions about prompt lengths before a run.
    pub(crate) fn is_calibration(&self) -> bool {
        self.line.contains("/tokenize ") || self.body.contains("tokens\":1,")
    }
}

/// A header line after which the server closes the connection, without a word of it to the client.
pub(crate) const CLOSES: &str = "x-test: closes\r\n";

/// Whatever a connection is.
pub(crate) trait Duplex: Read + Write {}
impl<T: Read + Write> Duplex for T {}

/// What answers: the bytes of a whole response, head included.
pub(crate) type Answer = fn(&Asked) -> String;

/// A listening server; it serves until the process ends.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) log: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    /// Plain HTTP on a free port of loopback.
    pub(crate) fn start(answer: Answer) -> Self {
        Self::over(answer, |socket| Some(Box::new(socket)))
    }

    /// The same over whatever `wrap` makes of a socket.
    pub(crate) fn over(
        answer: Answer,
        wrap: impl Fn(TcpStream) -> Option<Box<dyn Duplex>> + Send + Sync + 'static,
    ) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").expect("a port"), answer, wrap)
    }

    /// The same on a listener that is there.
    pub(crate) fn on(
        listener: TcpListener,
        answer: Answer,
        wrap: impl Fn(TcpStream) -> Option<Box<dyn Duplex>> + Send + Sync + 'static,
    ) -> Self {
        let port = listener.local_addr().expect("an address").port();
        let server = Self { port, log: Arc::default() };
        let (asked, wrap) = (server.log.clone(), Arc::new(wrap));
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (asked, wrap) = (asked.clone(), wrap.clone());
                std::thread::spawn(move || {
                    if let Some(connection) = wrap(socket) {
                        serve(connection, answer, &asked);
                    }
                });
            }
        });
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.log.lock().expect("no panic elsewhere").clone()
    }

    /// Rows and preflights.
    pub(crate) fn posts(&self) -> Vec<Asked> {
        self.asked()
            .into_iter()
            .filter(|asked| asked.is_post() && !asked.is_calibration())
            .collect()
    }
}

/// Serves one connection until the client leaves it.
pub(crate) fn serve(connection: Box<dyn Duplex>, answer: Answer, log: &Mutex<Vec<Asked>>) {
    let mut connection = BufReader::new(connection);
    while let Some(asked) = read_request(&mut connection) {
        let response = answer(&asked);
        log.lock().expect("no panic elsewhere").push(asked);
        let stream = connection.get_mut();
        let written = stream.write_all(response.as_bytes()).and_then(|()| stream.flush());
        if written.is_err() || response.contains(CLOSES) {
            return;
        }
    }
}

fn read_request(connection: &mut impl BufRead) -> Option<Asked> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if connection.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        lines.push(line.to_owned());
    }
    let line = lines.remove(0);
    let length = lines.iter().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().expect("a length"))];
    connection.read_exact(&mut body).ok()?;
    Some(Asked { line, headers: lines, body: String::from_utf8(body).expect("UTF-8") })
}

/// A response with a body of known length.
pub(crate) fn response(status: &str, content_type: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A model list, or an answer of four tokens in one piece.
pub(crate) fn good(asked: &Asked) -> String {
    if asked.is_post() { stream(4, "") } else { models(asked) }
}

/// A list of one model; nothing else is known.
pub(crate) fn models(asked: &Asked) -> String {
    if asked.line.contains("/v1/models") {
        let list = r#"{"object":"list","data":[{"id":"m-1","owned_by":"nobody"}]}"#;
        response("200 OK", "application/json", list)
    } else {
        response("404 Not Found", "application/json", r#"{"detail":"Not Found"}"#)
    }
}

/// A stream of `count` tokens and a usage, with `extra` head lines.
pub(crate) fn stream(count: u32, extra: &str) -> String {
    let mut body = String::new();
    for _ in 0..count {
        body +=
            "data: {\"id\":\"r\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" a\"}}]}\n\n";
    }
    body += "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\n";
    body += r#"data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":"#;
    body += &count.to_string();
    body += "}}\n\n";
    body += "data: [DONE]\n\n";
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{extra}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}
