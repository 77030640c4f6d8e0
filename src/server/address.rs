//! Where a server is and how it is reached, from its URL. Nothing is asked of anybody here.

use super::error::ServerError;
use super::settings::{Connection, ServerSettings};
use crate::client::dialect::Api;
use crate::client::url::{self, Target, proxy};
use crate::client::{
    Endpoint, Hop, RequestHead, Retries, Route, Settings, Timeouts, Tls, Tunnel, tls_config,
};
use crate::redact::redact_url;

/// The URL where only a socket is named.
pub const SOCKET_URL: &str = "http://localhost";

/// A server that can be sent to.
#[derive(Clone, Debug)]
pub struct Address {
    /// Its URL, and the paths on it.
    pub target: Target,
    /// The way there.
    pub route: Route,
    /// The head of every POST.
    pub head: RequestHead,
    /// What it may be called in messages and results.
    pub name: String,
}

impl Address {
    /// A server by its URL, or that of its API or page, joined to `target` already.
    pub fn new(url: &str, target: Target, connection: &Connection) -> Result<Self, ServerError> {
        let mut route = Route::tcp(target.host.clone(), target.port);
        if target.tls {
            let config = tls_config(&connection.tls, connection.http2)?;
            route.tls = Some(Tls::new(&target.host, config)?);
        }
        let headers = &connection.headers;
        let mut head = RequestHead::new(&target.authority, &target.path_and_query, headers)?;
        route.http2 = connection.http2;
        if connection.http2 {
            head = head.for_http2(target.scheme(), &target.authority)?;
        }
        if let Some(path) = &connection.unix_socket {
            route.hop = Hop::Unix(path.clone());
        }
        if let Some(proxy) = &connection.proxy {
            head = through_proxy(proxy, &target, &mut route, head)?;
        }
        Ok(Self { target, route, head, name: redact_url(url) })
    }

    /// The servers with these URLs, in order.
    pub fn all(urls: &[String], settings: &ServerSettings) -> Result<Vec<Self>, ServerError> {
        let address = |name: &String| {
            Self::new(name, url::endpoint(name, settings.api)?, &settings.connection)
        };
        urls.iter().map(address).collect()
    }

    /// A simulated server of our own. A key is for the servers that were named, so it gets none.
    pub fn own(name: &str, api: Api) -> Result<Self, ServerError> {
        Self::new(name, url::endpoint(name, api)?, &Connection::default())
    }

    /// Where requests go, without wishes of a run.
    #[must_use]
    pub fn endpoint(&self, timeouts: Timeouts) -> Endpoint {
        let settings = Settings {
            head: self.head.clone(),
            timeouts,
            ignore_eos: false,
            retries: Retries::default(),
            keep_kinds: false,
        };
        Endpoint { route: self.route.clone(), settings }
    }
}

fn through_proxy(
    url: &str,
    target: &Target,
    route: &mut Route,
    head: RequestHead,
) -> Result<RequestHead, ServerError> {
    let proxy = proxy::proxy(url)?;
    route.hop = Hop::Tcp { host: proxy.host, port: proxy.port };
    if target.tls || route.http2 {
        let (authority, authorization) = (target.host_and_port(), proxy.authorization);
        route.tunnel = Some(Tunnel { authority, authorization });
        return Ok(head);
    }
    Ok(head.through_proxy(&target.authority, proxy.authorization.as_deref())?)
}
