//! The head of a response, of either version of HTTP.
//!
//! Deliberately absent: what it means for a stream, and any secret of a URL that it holds.

use hyper::StatusCode;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, LOCATION};

use crate::units::Nanos;

/// Response head: what the rest of the client needs of it.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: StatusCode,
    /// `content-type`, lower case, without parameters; empty when absent.
    pub(crate) content_type: String,
    /// `content-encoding`, lower case; empty when absent.
    pub(crate) encoding: String,
    /// Where a redirect leads, without user and query; empty when absent.
    pub(crate) location: String,
    /// All of it, for probes.
    pub(crate) headers: HeaderMap,
    pub(crate) at: Nanos,
}

impl Head {
    pub(crate) fn new(status: StatusCode, headers: HeaderMap, at: Nanos) -> Self {
        Self {
            status,
            content_type: media_type(text(&headers, &CONTENT_TYPE)),
            encoding: text(&headers, &CONTENT_ENCODING).trim().to_ascii_lowercase(),
            location: place(text(&headers, &LOCATION)),
            headers,
            at,
        }
    }
}

/// A header's value, where it is text.
fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
}

fn media_type(full: &str) -> String {
    full.split(';').next().unwrap_or("").trim().to_ascii_lowercase()
}

/// A URL without what may be secret in it: user part, query and fragment.
fn place(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or("").trim();
    let Some((scheme, rest)) = url.split_once("//") else {
        return url.to_owned();
    };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit('@').next().unwrap_or("");
    format!("{scheme}//{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_keeps_no_secret() {
        for (url, expect) in [
            ("https://user:secret@h:1/v1/x?key=secret#y", "https://h:1/v1/x"),
            ("http://h", "http://h"),
            ("//h/a@b", "//h/a@b"),
            ("/login?token=secret", "/login"),
            ("", ""),
        ] {
            assert_eq!(place(url), expect);
        }
    }

    #[test]
    fn a_media_type_has_no_parameters() {
        assert_eq!(media_type("Text/Event-Stream; charset=utf-8"), "text/event-stream");
    }
}
