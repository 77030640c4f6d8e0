//! Where requests go: `--url` joined with the path of an API, never doubling `/v1`.
//!
//! A base may be a server's root, any prefix of it, end in a version (`/v1`, `/v4`), or already be the
//! whole path of the API, which is then used as it is. A query is kept on every path, and a user part
//! is refused: keys come from the environment or a file. Messages and [`Target`]'s `Display` leave
//! user part and query out, since they end up in results. Deliberately absent: resolving the host,
//! percent-encoding (a path is sent as it was written).

pub mod proxy;

use std::fmt;
use std::net::Ipv6Addr;

use super::stream::dialect::Api;

/// A server and the paths on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Name or address, an IPv6 address without its brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// `https`.
    pub tls: bool,
    /// For the request line of a POST: path and query.
    pub path_and_query: String,
    /// For the request line of the GET that lists models.
    pub models_path: String,
    /// Everything before the version: the root of what is not the API.
    pub base_path: String,
    /// For the `Host` header: with brackets, and without the port when it is the scheme's.
    pub authority: String,
}

impl Target {
    /// For the request line of a question to the tokenizer, which stands beside the versioned API.
    #[must_use]
    pub fn tokenize_path(&self) -> String {
        let query = self.models_path.find('?').map_or("", |at| &self.models_path[at..]);
        format!("{}/tokenize{query}", self.base_path)
    }
}

/// The URL without its query, fit for results and messages.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path_and_query.split('?').next().unwrap_or_default();
        write!(f, "{}://{}{path}", self.scheme(), self.authority)
    }
}

impl Target {
    /// `http` or `https`.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }

    /// Host and port, as a proxy is asked for them.
    #[must_use]
    pub fn host_and_port(&self) -> String {
        format!("{}:{}", bracketed(&self.host), self.port)
    }
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

/// What is wrong with a URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// No `scheme://`.
    #[error("the URL has no scheme; write http:// in front of it")]
    NoScheme,
    /// Neither `http` nor `https`.
    #[error("unknown scheme `{0}` in the URL; use http:// or https://")]
    Scheme(String),
    /// `user:password@`.
    #[error("the URL holds a user name or password; give a key by --api-key-env or --api-key-file")]
    UserInfo,
    /// Nothing where the host should be.
    #[error("the URL has no host")]
    NoHost,
    /// A host that no name or address can be.
    #[error("`{0}` is no host name or address (an IPv6 address stands in [brackets])")]
    Host(String),
    /// Not a number from 1 to 65535.
    #[error("`{0}` is no port; ports are 1 to 65535")]
    Port(String),
    /// A space, control or non-ASCII character, or a fragment.
    #[error("character {0:?} cannot stand in the URL's path or query; percent-encode it")]
    Character(char),
    /// The URL is that of the other API.
    #[error(
        "the URL is that of the {url} API, but --api is {api}; give --api {url} or the server's root"
    )]
    OtherApi {
        /// The API that the URL ends in.
        url: Api,
        /// The API that was asked for.
        api: Api,
    },
}

/// Reads a base URL and joins it with the paths of an API.
pub fn endpoint(base: &str, api: Api) -> Result<Target, UrlError> {
    let base = base.trim();
    let (scheme, rest) = base.split_once("://").ok_or(UrlError::NoScheme)?;
    let tls = match scheme.to_ascii_lowercase().as_str() {
        "http" => false,
        "https" => true,
        _ => return Err(UrlError::Scheme(scheme.to_owned())),
    };
    let usual_port = if tls { 443 } else { 80 };
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if authority.contains('@') {
        return Err(UrlError::UserInfo);
    }
    let (host, port) = host_and_port(authority, usual_port)?;
    if let Some(c) = tail.chars().find(|c| !c.is_ascii_graphic() || *c == '#') {
        return Err(UrlError::Character(c));
    }
    let (path, query) = tail.split_at(tail.find('?').unwrap_or(tail.len()));
    // A `?` with nothing behind it asks nothing.
    let query = if query.len() > 1 { query } else { "" };
    let (root, path) = join(path.trim_end_matches('/'), api)?;
    let bracketed = bracketed(&host);
    let version = root.rfind('/').filter(|at| is_version(&root[at + 1..]));
    Ok(Target {
        authority: if port == usual_port { bracketed } else { format!("{bracketed}:{port}") },
        base_path: root[..version.unwrap_or(root.len())].to_owned(),
        host,
        port,
        tls,
        path_and_query: format!("{path}{query}"),
        models_path: format!("{root}/models{query}"),
    })
}

/// The root under which the API's operations stand, with its version, and the path to POST to.
fn join(path: &str, api: Api) -> Result<(String, String), UrlError> {
    if let Some((named, operation)) = operation_at_end(path) {
        if named != api {
            return Err(UrlError::OtherApi { url: named, api });
        }
        return Ok((path[..path.len() - operation.len()].to_owned(), path.to_owned()));
    }
    // Servers number their own APIs too (`/api/paas/v4`), so any version stands for `/v1`.
    let root = if is_version(path.rsplit('/').next().unwrap_or_default()) {
        path.to_owned()
    } else {
        format!("{path}/v1")
    };
    let post = format!("{root}{}", operation(api));
    Ok((root, post))
}

/// The path of an API behind its version.
fn operation(api: Api) -> &'static str {
    api.path().strip_prefix("/v1").unwrap_or(api.path())
}

/// The API that a path ends in, if any. Some gateways serve it without a version, so none is asked
/// for; `/chat/completions` also ends in `/completions`, so it is looked for first.
fn operation_at_end(path: &str) -> Option<(Api, &'static str)> {
    [Api::Chat, Api::Completions]
        .into_iter()
        .map(|api| (api, operation(api)))
        .find(|(_, operation)| path.ends_with(operation))
}

fn is_version(segment: &str) -> bool {
    segment.strip_prefix('v').is_some_and(|digits| {
        !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
    })
}

/// Host and port of an authority without a user part.
pub(super) fn host_and_port(authority: &str, usual_port: u16) -> Result<(String, u16), UrlError> {
    let bad_host = |host: &str| UrlError::Host(host.to_owned());
    let (host, port) = if let Some(inner) = authority.strip_prefix('[') {
        let (address, after) = inner.split_once(']').ok_or_else(|| bad_host(authority))?;
        address.parse::<Ipv6Addr>().map_err(|_| bad_host(address))?;
        if after.is_empty() {
            (address, None)
        } else {
            (address, Some(after.strip_prefix(':').ok_or_else(|| bad_host(authority))?))
        }
    } else {
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        };
        // With more colons it is an address without its brackets.
        let named = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
        if !host.bytes().all(named) || port.is_some_and(|port| port.contains(':')) {
            return Err(bad_host(authority));
        }
        if host.is_empty() {
            return Err(UrlError::NoHost);
        }
        (host, port)
    };
    let port = match port {
        None => usual_port,
        Some(port) if !port.bytes().all(|b| b.is_ascii_digit()) => {
            return Err(UrlError::Port(port.to_owned()));
        }
        Some(port) => match port.parse::<u16>() {
            Ok(number) if number > 0 => number,
            _ => return Err(UrlError::Port(port.to_owned())),
        },
    };
    Ok((host.to_owned(), port))
}

#[cfg(test)]
mod tests;
