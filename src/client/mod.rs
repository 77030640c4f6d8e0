//! One request over one connection: bytes and their arrival times in, a record out.
//!
//! [`Client::perform`] is the whole surface: it is given a record that says what is asked and when
//! that was due, and returns it with everything that was observed. Deliberately absent: schedules
//! (see [`crate::replay`]), redirects, statistics, and retries that nobody asked for.

mod ask;
mod connect;
mod engine;
mod exchange;
mod failure;
mod framing;
mod head;
mod http1;
#[cfg(test)]
mod http1_oracle;
mod http2;
mod keep_alive;
mod limit;
mod page;
mod predial;
mod probe;
mod retry;
mod route;
mod rx_time;
mod signs;
mod stamped;
mod stream;
mod tls;
mod verdict;
mod watch;
mod wire;

pub mod dialect;
pub mod metrics_url;
pub mod preflight;
pub mod proxy;
pub mod sse;
pub mod target;

use std::rc::Rc;

use bytes::Bytes;

use crate::clock::Clock;
use crate::record::StreamRecord;
use crate::units::Nanos;

pub use connect::{Dial, Pool};
pub use engine::{Engine, Model, UnknownEngine};
pub use exchange::HttpError;
pub use framing::FramingError;
pub use head::{HeadError, Headers, RequestHead};
pub use http1::Http1Error;
pub use http2::Http2Error;
pub use page::{Page, Pages};
pub use predial::Dialled;
pub use probe::{Probe, ProbeError, ServerFacts};
pub use retry::Retries;
pub use route::{Hop, Route, Tunnel};
pub use tls::{Tls, TlsError, TlsOptions, tls_config};
pub use watch::Watch;

/// Limits on waiting, each from the instant the request was sent. `None`: no limit.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For a connection.
    pub connect: Option<Nanos>,
    /// For the first token event.
    pub first_token: Option<Nanos>,
    /// Between two arrivals of bytes, once the head is there.
    pub idle: Option<Nanos>,
    /// For the whole answer.
    pub total: Option<Nanos>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Some(Nanos::from_secs(10)), first_token: None, idle: None, total: None }
    }
}

/// What is the same for every request to one server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The head of every POST.
    pub head: RequestHead,
    /// Limits on waiting.
    pub timeouts: Timeouts,
    /// The end-of-sequence token is ignored, so a shorter answer is outcome `short`.
    pub ignore_eos: bool,
    /// How often a request is sent again.
    pub retries: Retries,
    /// Records keep what kind of text each token event carried.
    pub keep_kinds: bool,
}

/// A server: the way to it, and what every request to it has in common.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The way.
    pub route: Route,
    /// The rest.
    pub settings: Settings,
}

/// A worker's client for one server: its connections and its clock. Stays on its thread.
#[derive(Debug)]
pub struct Client {
    pool: Pool,
    clock: Clock,
    t0: Nanos,
    settings: Settings,
}

impl Client {
    /// A client whose records count from `t0`.
    #[must_use]
    pub fn new(dial: Dial, clock: Clock, t0: Nanos, settings: Settings) -> Rc<Self> {
        Self::over(Pool::new(dial, clock.clone()), clock, t0, settings)
    }

    /// The same with connections that are there already.
    #[must_use]
    pub fn over(pool: Pool, clock: Clock, t0: Nanos, settings: Settings) -> Rc<Self> {
        Rc::new(Self { pool, clock, t0, settings })
    }

    /// Sends one request (again, where that was asked for) and follows its answer to the end; never fails:
    /// what goes wrong is in the record's outcome. Must run where local tasks can be spawned.
    pub async fn perform(
        self: &Rc<Self>,
        record: StreamRecord,
        body: Bytes,
        watch: &Watch,
    ) -> StreamRecord {
        retry::perform(self, record, body, watch).await
    }

    /// An instant of the clock as an offset from `t0`.
    fn offset(&self, at: Nanos) -> Nanos {
        at.since(self.t0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten thousand streams are to fit into 100 MB: what dialling and TLS take is not kept while one runs.
    #[tokio::test]
    async fn a_stream_under_way_is_small() {
        let local = tokio::task::LocalSet::new();
        let bytes = local.run_until(async {
            let head = RequestHead::new("h", "/", &Headers::default()).expect("a head");
            let settings = Settings {
                head,
                timeouts: Timeouts::default(),
                ignore_eos: false,
                retries: Retries::default(),
                keep_kinds: false,
            };
            let clock = Clock::real().expect("a timer");
            let route = Route::tcp("h", 1);
            let client = Client::new(Dial::route(&route), clock, Nanos::ZERO, settings);
            let watch = Watch::default();
            let record = StreamRecord::default();
            size_of_val(&client.perform(record, Bytes::new(), &watch))
        });
        let bytes = bytes.await;
        assert!(bytes <= 4096, "{bytes} bytes");
    }
}
