//! Asks servers for their pages, over one kept connection each.
//!
//! Deliberately absent: when to ask again, and retries: a failed answer is a sample that is missing.

use super::exposition::{ExpositionError, Limits, parse};
use super::models::narrow;
use super::reading::{Reading, read, recognise};
use super::reading_error::ReadingError;
use super::track::Stamp;
use crate::client::{FetchError, Page, Pages};

/// Bytes of a wrong answer that a message quotes.
const QUOTED_CHARS: usize = 120;

/// Why there is no reading.
#[derive(Debug, thiserror::Error)]
pub enum ScrapeError {
    /// No answer.
    #[error(transparent)]
    Ask(#[from] FetchError),
    /// An answer that is no page.
    #[error("GET {path} {what}\nhint: {hint}")]
    NoPage {
        /// Asked, without its query.
        path: String,
        /// What came.
        what: String,
        /// What to do.
        hint: &'static str,
    },
    /// A page that cannot be read.
    #[error("the page at {path} is no Prometheus text{told}: {source}")]
    Text {
        /// Asked, without its query.
        path: String,
        /// Its content type, where that is another one.
        told: String,
        /// What is wrong.
        source: ExpositionError,
    },
    /// A page without the figures of any engine.
    #[error("GET {path}: {source}")]
    Reading {
        /// Asked, without its query.
        path: String,
        /// What is wrong.
        source: ReadingError,
    },
}

impl ScrapeError {
    /// Whether the page may stand elsewhere.
    fn is_elsewhere(&self) -> bool {
        matches!(self, Self::NoPage { .. })
    }
}

/// One server's page.
#[derive(Debug)]
pub struct Scraper {
    pages: Pages,
    path: String,
    /// To be asked in turn until one is a page.
    others: Vec<String>,
    /// The only model that counts.
    model: Option<String>,
    limits: Limits,
}

impl Scraper {
    /// Asks for `path`, or for the first of `others` that is a page where it is none; all with their
    /// queries.
    #[must_use]
    pub fn new(pages: Pages, path: String, others: Vec<String>) -> Self {
        Self { pages, path, others, model: None, limits: Limits::default() }
    }

    /// Reads the figures of this model alone.
    pub fn only(&mut self, model: Option<String>) {
        self.model = model;
    }

    /// One reading, stamped.
    pub async fn read(&mut self) -> Result<(Stamp, Reading), ScrapeError> {
        let first = match self.read_at(&self.path).await {
            Err(error) if error.is_elsewhere() => error,
            answer => return answer,
        };
        for path in std::mem::take(&mut self.others) {
            if let Ok(read) = self.read_at(&path).await {
                self.path = path;
                return Ok(read);
            }
        }
        Err(first)
    }

    /// The same over a new connection.
    pub async fn read_anew(&mut self) -> Result<(Stamp, Reading), ScrapeError> {
        self.pages.redial();
        self.read().await
    }

    async fn read_at(&self, path: &str) -> Result<(Stamp, Reading), ScrapeError> {
        let page = self.pages.get(path, self.limits.bytes).await?;
        let path = path.split('?').next().unwrap_or_default().to_owned();
        if let Some((what, hint)) = refusal(&page, self.limits.bytes) {
            let what = self.pages.scrub(what);
            return Err(ScrapeError::NoPage { path, what, hint });
        }
        let mut text = parse(&page.body, self.limits).map_err(|source| {
            let told = match page.content_type.as_str() {
                "" | "text/plain" | "application/openmetrics-text" => String::new(),
                other => format!(" (content-type: {other})"),
            };
            ScrapeError::Text { path: path.clone(), told, source }
        })?;
        let reading = recognise(&text).and_then(|rules| {
            if let Some(model) = &self.model {
                narrow(&mut text, rules, model)?;
            }
            Ok(read(&text, rules))
        });
        let reading = reading.map_err(|source| ScrapeError::Reading { path, source })?;
        Ok((Stamp::between(page.sent, page.answered), reading))
    }
}

/// What an answer is that is no page, and what to do.
fn refusal(page: &Page, limit_bytes: usize) -> Option<(String, &'static str)> {
    const ELSEWHERE: &str = "give the address of the engine's own page by --metrics URL (SGLang serves one with \
         --enable-metrics, llama.cpp with --metrics)";
    let said = || -> String {
        let text = String::from_utf8_lossy(&page.body);
        text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(QUOTED_CHARS).collect()
    };
    match page.status {
        200 => {}
        401 | 403 => {
            let hint = "give a key by --api-key-env VAR, --api-key-file FILE or --header";
            return Some((format!("answered {}: {}", page.status, said()), hint));
        }
        300..=399 => {
            let what = format!("redirects ({}) to {:?}", page.status, page.location);
            return Some((what, "redirects are not followed; give the final URL by --metrics URL"));
        }
        502..=504 => {
            let hint = "the server is starting or too busy; ask again in a while";
            return Some((format!("answered {}: {}", page.status, said()), hint));
        }
        status => return Some((format!("answered {status}: {}", said()), ELSEWHERE)),
    }
    if !matches!(page.encoding.as_str(), "" | "identity") {
        let what = format!(
            "came compressed (content-encoding: {}) although identity was asked for",
            page.encoding
        );
        return Some((what, "turn compression off for this path"));
    }
    if page.is_cut {
        let what = format!("answered more than {} MB", limit_bytes >> 20);
        return Some((what, "that is no metrics page of an engine; give its own by --metrics URL"));
    }
    let begins = |mark: &[u8]| page.body.trim_ascii_start().starts_with(mark);
    if page.content_type == "text/html" || begins(b"<") {
        return Some(("answered an HTML page".to_owned(), ELSEWHERE));
    }
    if page.content_type.ends_with("json") || begins(b"{\"") && page.content_type.is_empty() {
        return Some((format!("answered JSON: {}", said()), ELSEWHERE));
    }
    None
}
