//! The head of every request to one server, made once and copied per request; and the keeping of the
//! secrets in it.
//!
//! Deliberately absent: reading keys from anywhere, and any `Display` or `Debug` that shows a value:
//! keys, header values and queries are in the request and nowhere else. Servers quote keys in their
//! errors, so what they say goes through [`RequestHead::scrub`].

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST,
    HeaderMap, HeaderName, HeaderValue, PROXY_AUTHORIZATION, TRANSFER_ENCODING, USER_AGENT,
};
use hyper::{Method, Request, Uri};

/// Shorter values are everyday words, and hiding those would spoil messages.
const SECRET_CHARS: usize = 6;

/// Headers that requests carry beside their own.
#[derive(Clone, Default)]
pub struct Headers {
    map: HeaderMap,
    secrets: Vec<String>,
}

/// What is wrong with a header. Never holds its value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// No colon.
    #[error("header {0} has no colon\nhint: write --header 'NAME: VALUE'")]
    NoColon(usize),
    /// Not a token.
    #[error("header {0} has a name that no header can have\nhint: write --header 'NAME: VALUE'")]
    Name(usize),
    /// A control character or a line break.
    #[error("the value of header `{0}` holds a character that no header can hold")]
    Value(HeaderName),
    /// Set by the client itself.
    #[error(
        "header `{0}` cannot be given: it belongs to how requests are framed and answers are read"
    )]
    Ours(HeaderName),
    /// A key and an `authorization` header.
    #[error("an API key and an `authorization` header were given\nhint: give one of them")]
    TwoKeys,
    /// Not a path.
    #[error(
        "the URL's path or query holds a character that HTTP does not allow; percent-encode it"
    )]
    Path,
}

impl Headers {
    /// Adds the `nth` (from 1) header, written `NAME: VALUE`. A name may be given several times.
    pub fn add(&mut self, nth: usize, line: &str) -> Result<(), HeadError> {
        let (name, value) = line.split_once(':').ok_or(HeadError::NoColon(nth))?;
        let name: HeaderName = name.trim().parse().map_err(|_| HeadError::Name(nth))?;
        if [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING, ACCEPT_ENCODING].contains(&name) {
            return Err(HeadError::Ours(name));
        }
        self.put(name, value.trim())
    }

    /// Sends `key` as `Authorization: Bearer`.
    pub fn bearer(&mut self, key: &str) -> Result<(), HeadError> {
        if self.map.contains_key(AUTHORIZATION) {
            return Err(HeadError::TwoKeys);
        }
        self.put(AUTHORIZATION, &format!("Bearer {key}"))
    }

    /// Whether requests bear a key of any kind.
    #[must_use]
    pub fn has_key(&self) -> bool {
        self.map.contains_key(AUTHORIZATION)
    }

    fn put(&mut self, name: HeaderName, text: &str) -> Result<(), HeadError> {
        let mut value = HeaderValue::from_str(text).map_err(|_| HeadError::Value(name.clone()))?;
        value.set_sensitive(true);
        self.map.append(name, value);
        self.hide(text);
        // A server quotes the key, not the word before it.
        if let Some((_, key)) = text.split_once(' ') {
            self.hide(key.trim());
        }
        Ok(())
    }

    /// Keeps a text out of every message.
    pub fn hide(&mut self, secret: &str) {
        if secret.chars().count() >= SECRET_CHARS {
            self.secrets.push(secret.to_owned());
        }
    }
}

/// Names only.
impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.map.keys()).finish()
    }
}

/// The head of every request to one server.
#[derive(Clone)]
pub struct RequestHead {
    uri: Uri,
    headers: HeaderMap,
    secrets: Arc<[String]>,
    /// What stands before every path where a proxy is asked, or over HTTP/2: scheme and authority.
    prefix: String,
}

impl RequestHead {
    /// A head for POSTs to `path` (with its query) of the server that `Host` calls `authority`.
    pub fn new(authority: &str, path: &str, headers: &Headers) -> Result<Self, HeadError> {
        let uri = path.parse().map_err(|_| HeadError::Path)?;
        let host = HeaderValue::from_str(authority).map_err(|_| HeadError::Path)?;
        let mut map = ours(host);
        for name in headers.map.keys() {
            map.remove(name);
            for value in headers.map.get_all(name) {
                map.append(name, value.clone());
            }
        }
        let mut hidden = headers.clone();
        let query = path.split_once('?').map_or("", |(_, query)| query);
        for part in query.split('&') {
            hidden.hide(part.split_once('=').map_or(part, |(_, value)| value));
        }
        // The longest first, so that no part of one is left behind by a shorter one.
        hidden.secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Ok(Self { uri, headers: map, secrets: hidden.secrets.into(), prefix: String::new() })
    }

    /// The same head in the form that HTTP/2 takes.
    pub fn for_http2(mut self, scheme: &str, authority: &str) -> Result<Self, HeadError> {
        self.prefix = format!("{scheme}://{authority}");
        self.uri = format!("{}{}", self.prefix, self.uri).parse().map_err(|_| HeadError::Path)?;
        self.headers.remove(HOST);
        Ok(self)
    }

    /// The same head in the form that a proxy takes, for a server without TLS.
    pub fn through_proxy(
        mut self,
        authority: &str,
        authorization: Option<&str>,
    ) -> Result<Self, HeadError> {
        self.prefix = format!("http://{authority}");
        self.uri = format!("{}{}", self.prefix, self.uri).parse().map_err(|_| HeadError::Path)?;
        if let Some(authorization) = authorization {
            let mut value = HeaderValue::from_str(authorization)
                .map_err(|_| HeadError::Value(PROXY_AUTHORIZATION))?;
            value.set_sensitive(true);
            self.headers.insert(PROXY_AUTHORIZATION, value);
            let key = authorization.split(' ').next_back().unwrap_or_default().to_owned();
            self.secrets = self.secrets.iter().cloned().chain([key]).collect();
        }
        Ok(self)
    }

    /// A plain head, for a server that is no more than a pipe in memory.
    #[must_use]
    pub fn in_memory(path: &'static str) -> Self {
        let headers = ours(HeaderValue::from_static("sim"));
        Self {
            uri: Uri::from_static(path),
            headers,
            secrets: Arc::default(),
            prefix: String::new(),
        }
    }

    /// A POST with this head.
    pub(crate) fn post(&self, body: Bytes) -> Request<Bytes> {
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }

    /// A POST of a question to another path at the same server.
    pub(crate) fn post_to(&self, path: &str, body: Bytes) -> Result<Request<Bytes>, HeadError> {
        let mut request = self.post(body);
        let uri = format!("{}{path}", self.prefix);
        *request.uri_mut() = uri.parse().map_err(|_| HeadError::Path)?;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
        Ok(request)
    }

    /// A GET of another path at the same server.
    pub(crate) fn get(&self, path: &str) -> Result<Request<Bytes>, HeadError> {
        let mut request = Request::new(Bytes::new());
        let uri = format!("{}{path}", self.prefix);
        *request.uri_mut() = uri.parse().map_err(|_| HeadError::Path)?;
        *request.headers_mut() = self.headers.clone();
        request.headers_mut().remove(CONTENT_TYPE);
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("*/*"));
        Ok(request)
    }

    /// `text` without any of the secrets.
    #[must_use]
    pub fn scrub(&self, text: String) -> String {
        self.secrets.iter().fold(text, |text, secret| {
            if text.contains(secret.as_str()) { text.replace(secret.as_str(), "…") } else { text }
        })
    }
}

/// What every request carries.
fn ours(host: HeaderValue) -> HeaderMap {
    let agent = HeaderValue::from_static(concat!("underfire/", env!("CARGO_PKG_VERSION")));
    let fixed = HeaderValue::from_static;
    HeaderMap::from_iter([
        (HOST, host),
        (USER_AGENT, agent),
        (CONTENT_TYPE, fixed("application/json")),
        (ACCEPT, fixed("text/event-stream")),
        (ACCEPT_ENCODING, fixed("identity")),
    ])
}

/// Path and header names only.
impl fmt::Debug for RequestHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestHead")
            .field("path", &self.uri.path())
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[&str]) -> Result<Headers, HeadError> {
        let mut headers = Headers::default();
        lines.iter().enumerate().try_for_each(|(at, line)| headers.add(at + 1, line))?;
        Ok(headers)
    }

    #[test]
    fn a_head_has_ours_and_the_users() {
        let mut given =
            headers(&["X-Team:  blue ", "x-team: red", "User-Agent: me"]).expect("fine");
        given.bearer("sk-secret").expect("one key");
        let head = RequestHead::new("h:1", "/v1/x?a=b", &given).expect("a head");
        let request = head.post(Bytes::from_static(b"{}"));
        let get = |name: &str| -> Vec<_> {
            request.headers().get_all(name).iter().map(|v| v.to_str().expect("text")).collect()
        };
        assert_eq!(request.uri(), "/v1/x?a=b");
        assert_eq!(get("host"), ["h:1"]);
        assert_eq!(get("x-team"), ["blue", "red"]);
        assert_eq!(get("user-agent"), ["me"], "the user's own takes the place of ours");
        assert_eq!(get("authorization"), ["Bearer sk-secret"]);
        assert_eq!(get("accept-encoding"), ["identity"]);
        let probe = head.get("/v1/models").expect("a path");
        assert_eq!(probe.headers()["authorization"], "Bearer sk-secret");
        assert!(!probe.headers().contains_key("content-type"));
    }

    #[test]
    fn faults_are_told_without_values() {
        let check = |lines: &[&str], part: &str| {
            let error = headers(lines).expect_err(part).to_string();
            assert!(error.contains(part), "{error}");
            assert!(!error.contains("secret"), "{error}");
        };
        check(&["X: 1", "Bearer secret"], "header 2 has no colon");
        check(&["my secret: 1"], "header 1 has a name");
        check(&["X-Key: secret\nX: y"], "`x-key`");
        check(&["Content-Length: 3"], "`content-length`");
        let mut two = headers(&["Authorization: Basic secret"]).expect("fine");
        assert_eq!(two.bearer("secret"), Err(HeadError::TwoKeys));
    }

    #[test]
    fn secrets_are_scrubbed_and_never_printed() {
        let mut given = headers(&["X-Key: secret-1", "X-Short: a"]).expect("fine");
        given.bearer("sk-secret-2").expect("one key");
        let head = RequestHead::new("h", "/p?key=secret-3&v=1", &given).expect("a head");
        let said = "no secret-1, `Bearer sk-secret-2`, (sk-secret-2) or secret-3 a 1".to_owned();
        assert_eq!(head.scrub(said), "no …, `…`, (…) or … a 1");
        let shown = format!("{head:?} {given:?} {:?}", head.post(Bytes::new()).headers());
        assert!(!shown.contains("secret"), "{shown}");
        assert!(shown.contains("x-key"), "{shown}");
    }
}
