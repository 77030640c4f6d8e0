//! One request over one connection: bytes and their arrival times in, a record out.
//!
//! [`Client::perform`] is given a record that says what is asked and when that was due, and returns it
//! with everything that was observed; [`Pages`] asks for what is no row. Deliberately absent: schedules,
//! what to ask of a server, redirects, statistics, and retries that nobody asked for.

mod control;
mod fetch;
mod predial;
mod retry;
mod stream;
mod timeouts;
mod wire;

pub mod url;

use std::rc::Rc;

use crate::clock::Clock;
use crate::units::Nanos;

pub use control::AttemptControl;
pub use fetch::{FetchError, Page, Pages};
pub use predial::Dialled;
pub use stream::{dialect, sse};
pub use timeouts::Timeouts;
pub use wire::{
    Dial, FramingError, HeadError, Headers, Hop, Http1Error, Http2Error, HttpError, Pool,
    RequestHead, Route, Tls, TlsError, TlsOptions, Tunnel, tls_config,
};

/// How often a request is sent again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retries {
    /// Times after the first; 0: never.
    pub limit: u32,
    /// Of what is drawn.
    pub seed: u64,
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

    /// An instant of the clock as an offset from `t0`.
    fn offset(&self, at: Nanos) -> Nanos {
        at.since(self.t0)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::record::StreamRecord;

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
            let control = AttemptControl::default();
            let record = StreamRecord::default();
            size_of_val(&client.perform(record, Bytes::new(), &control))
        });
        let bytes = bytes.await;
        assert!(bytes <= 4096, "{bytes} bytes");
    }
}
