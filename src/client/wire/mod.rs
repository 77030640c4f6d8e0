//! The bytes of one request and its response: dialling, TLS, HTTP/1.1 and HTTP/2, a stamp per read.
//!
//! Deliberately absent: what a body says (see [`super::stream`]), limits on waiting, and retries.

mod exchange;
mod forward;
mod framing;
mod http1;
#[cfg(test)]
mod http1_oracle;
mod http2;
mod keep_alive;
mod maybe_tls;
mod pool;
mod request_head;
mod response_head;
mod route;
mod rx_time;
mod stamped;
mod tls;

pub use exchange::HttpError;
pub use framing::FramingError;
pub use http1::Http1Error;
pub use http2::Http2Error;
pub use pool::{Dial, Pool};
pub use request_head::{HeadError, Headers, RequestHead};
pub use route::{Hop, Route, Tunnel};
pub use tls::{Tls, TlsError, TlsOptions, tls_config};

pub(super) use exchange::{Exchange, Link};
pub(super) use keep_alive::Terms;
pub(super) use pool::Reused;
pub(super) use response_head::Head;
