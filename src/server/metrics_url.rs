//! Where a server's metrics page stands.
//!
//! Beside the versioned API, unless the URL is that of the page. Deliberately absent: asking whether it
//! is there.

use crate::client::dialect::Api;
use crate::client::url::{Target, UrlError, endpoint};

/// Below a server's root, in the order of asking: TensorRT-LLM answers the first with JSON that is none.
const PATHS: [&str; 2] = ["/metrics", "/prometheus/metrics"];

/// A server and the paths of its page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsUrl {
    /// The server.
    pub target: Target,
    /// Path and query to ask for.
    pub path: String,
    /// To be asked for where that is no page.
    pub others: Vec<String>,
}

/// Reads the URL of a server, of its API, or (always, where `is_page`) of its page.
pub fn metrics_url(url: &str, is_page: bool) -> Result<MetricsUrl, UrlError> {
    let url = url.trim();
    let target = match endpoint(url, Api::Chat) {
        Err(UrlError::OtherApi { url: api, .. }) => endpoint(url, api)?,
        target => target?,
    };
    let tail = url
        .split_once("://")
        .map_or("", |(_, rest)| rest.find(['/', '?']).map_or("", |at| &rest[at..]));
    let (path, query) = tail.split_at(tail.find('?').unwrap_or(tail.len()));
    if path.ends_with("/metrics") || is_page && path.len() > 1 {
        return Ok(MetricsUrl { target, path: tail.to_owned(), others: Vec::new() });
    }
    let mut paths = PATHS.iter().map(|path| format!("{}{path}{query}", target.base_path));
    let path = paths.next().unwrap_or_default();
    let others = paths.collect();
    Ok(MetricsUrl { target, path, others })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_stands_beside_the_api_or_where_it_is_said_to() {
        for (url, is_page, expect, others) in [
            ("http://h", false, "/metrics", 1),
            ("http://h/", true, "/metrics", 1),
            ("http://h/v1", false, "/metrics", 1),
            ("http://h/llm/v1/chat/completions", false, "/llm/metrics", 1),
            ("http://h/v1/completions", false, "/metrics", 1),
            ("http://h/v1?key=k", false, "/metrics?key=k", 1),
            ("http://h:9/x/metrics?key=k", false, "/x/metrics?key=k", 0),
            ("http://h/stats/prometheus", true, "/stats/prometheus", 0),
        ] {
            let found = metrics_url(url, is_page).expect(url);
            assert_eq!((found.path.as_str(), found.others.len()), (expect, others), "{url}");
        }
        let trt = metrics_url("http://h", false).expect("a URL");
        assert_eq!(trt.others, ["/prometheus/metrics"]);
        assert!(metrics_url("h:8000", false).is_err());
        assert!(metrics_url("http://me:pw@h", true).is_err());
    }
}
