//! The way to every server of a run, from what was typed. Nothing is asked of anybody here.

use anyhow::bail;

use super::args::RunArgs;
use super::link_args::LinkArgs;
use crate::client::dialect::Api;
use crate::client::url::{Target, endpoint, proxy};
use crate::client::{
    self, Endpoint, Headers, Hop, RequestHead, Retries, Route, Timeouts, Tls, Tunnel, tls_config,
};
use crate::report::redact_url;

/// The URL where only a socket is named.
pub(super) const SOCKET_URL: &str = "http://localhost";

/// A server that can be sent to.
#[derive(Clone, Debug)]
pub(super) struct Way {
    pub(super) target: Target,
    pub(super) route: Route,
    /// The head of every POST.
    pub(super) head: RequestHead,
    /// What it may be called in messages and results.
    pub(super) name: String,
}

impl Way {
    /// Where requests go, without wishes of a run.
    pub(super) fn endpoint(&self, timeouts: Timeouts) -> Endpoint {
        let settings = client::Settings {
            head: self.head.clone(),
            timeouts,
            ignore_eos: false,
            retries: Retries::default(),
            keep_kinds: false,
        };
        Endpoint { route: self.route.clone(), settings }
    }
}

/// The servers that were named, in order; none where one is to be simulated.
pub(super) fn ways(args: &RunArgs) -> anyhow::Result<Vec<Way>> {
    let link = &args.reach.link;
    let mut urls: Vec<&str> = args.target.url.iter().map(String::as_str).collect();
    if urls.is_empty() && link.unix_socket.is_some() {
        urls.push(SOCKET_URL);
    }
    let headers = link.headers()?;
    let way = |url: &&str| way(url, endpoint(url, args.target.api)?, link, &headers);
    let ways = urls.iter().map(way).collect::<anyhow::Result<Vec<Way>>>()?;
    if ways.is_empty() && (link.proxy.is_some() || link.has_tls()) {
        bail!("nothing is reached by TLS or a proxy without a server\nhint: give --url");
    }
    Ok(ways)
}

/// The way to one server.
pub(super) fn way(
    url: &str,
    target: Target,
    link: &LinkArgs,
    headers: &Headers,
) -> anyhow::Result<Way> {
    let mut route = Route::tcp(target.host.clone(), target.port);
    if target.tls {
        route.tls = Some(Tls::new(&target.host, tls_config(&link.tls(), link.http2)?)?);
    }
    let mut head = RequestHead::new(&target.authority, &target.path_and_query, headers)?;
    route.http2 = link.http2;
    if link.http2 {
        head = head.for_http2(target.scheme(), &target.authority)?;
    }
    if let Some(path) = &link.unix_socket {
        route.hop = Hop::Unix(path.clone());
    }
    if let Some(proxy) = &link.proxy {
        head = through_proxy(proxy, &target, &mut route, head)?;
    }
    Ok(Way { target, route, head, name: redact_url(url) })
}

/// The way to a simulated server of our own. A key is for the servers that were named, so it gets none.
pub(super) fn own(url: &str, api: Api) -> anyhow::Result<Way> {
    let target = endpoint(url, api)?;
    let head = RequestHead::new(&target.authority, &target.path_and_query, &Headers::default())?;
    let route = Route::tcp(target.host.clone(), target.port);
    Ok(Way { target, route, head, name: url.to_owned() })
}

fn through_proxy(
    url: &str,
    target: &Target,
    route: &mut Route,
    head: RequestHead,
) -> anyhow::Result<RequestHead> {
    let proxy = proxy::proxy(url)?;
    route.hop = Hop::Tcp { host: proxy.host, port: proxy.port };
    if target.tls || route.http2 {
        let (authority, authorization) = (target.host_and_port(), proxy.authorization);
        route.tunnel = Some(Tunnel { authority, authorization });
        return Ok(head);
    }
    Ok(head.through_proxy(&target.authority, proxy.authorization.as_deref())?)
}
