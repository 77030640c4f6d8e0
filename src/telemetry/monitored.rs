//! A server that is monitored: its page, its readings, and what was said of it.
//!
//! Deliberately absent: when readings are taken, and figures.

use super::models::listed;
use super::rules::Rules;
use super::track::SeveralServers;
use super::{Scraper, Track};
use crate::client::url::UrlError;
use crate::client::{Dial, Pages};
use crate::clock::Clock;
use crate::redact::redact_url;
use crate::server::metrics_url::metrics_url;
use crate::server::{Address, Connection, ServerError};

/// Why a server's page cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum MonitorError {
    /// A page that was named twice, or whose first reading failed.
    #[error("{0}")]
    Page(String),
    /// Its URL.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The way there.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// Several servers answer in turn.
    #[error("{name}: {source}")]
    Several {
        /// Which page.
        name: String,
        /// What shows it.
        source: SeveralServers,
    },
    /// A thread, a runtime or a timer.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why not.
        source: std::io::Error,
    },
}

/// Answers over connections of their own at the beginning: where load is balanced, they differ.
const FIRST_ANSWERS: u32 = 3;

/// Refuses pages of which one is named twice, in whatever spelling: its figures would count twice.
pub fn refuse_twice(urls: &[String]) -> Result<(), MonitorError> {
    let pages = pages(urls, true)?;
    let again = urls.iter().enumerate().find(|(at, _)| pages[..*at].contains(&pages[*at]));
    if let Some((_, url)) = again {
        return Err(MonitorError::Page(format!(
            "--metrics {} is given twice, and would be counted twice",
            redact_url(url)
        )));
    }
    Ok(())
}

/// The URLs of servers without those whose page is that of one before.
pub fn distinct(urls: &[String]) -> Result<Vec<String>, MonitorError> {
    let pages = pages(urls, false)?;
    let is_new = |at: usize| !pages[..at].contains(&pages[at]);
    Ok(urls.iter().enumerate().filter(|(at, _)| is_new(*at)).map(|(_, url)| url.clone()).collect())
}

/// Host, port and path of each page.
fn pages(urls: &[String], is_page: bool) -> Result<Vec<(String, String)>, MonitorError> {
    let page = |url: &String| {
        let found = metrics_url(url, is_page)?;
        Ok((found.target.authority, found.path))
    };
    urls.iter().map(page).collect()
}

/// A server that is monitored.
#[derive(Debug)]
pub struct MonitoredServer {
    /// What it may be called.
    pub name: String,
    scraper: Scraper,
    /// Its readings.
    pub track: Track,
    /// What was last said of it was about this; empty where nothing was.
    said: String,
}

impl MonitoredServer {
    /// By the URL of the server, or of its page. Must be called inside a `LocalSet`.
    pub fn new(
        url: &str,
        is_page: bool,
        connection: &Connection,
        clock: &Clock,
    ) -> Result<Self, MonitorError> {
        let found = metrics_url(url, is_page)?;
        let authority = found.target.authority.clone();
        let address = Address::new(url, found.target, connection)?;
        let pages = Pages::new(Dial::route(&address.route), address.head, authority, clock.clone());
        let scraper = Scraper::new(pages, found.path, found.others);
        Ok(Self { name: address.name, scraper, track: Track::default(), said: String::new() })
    }

    /// Counts this model alone.
    pub fn only(&mut self, model: Option<String>) {
        self.scraper.only(model);
    }

    /// Takes a reading; gives what a person should know of it and was not told already.
    async fn read(&mut self, anew: bool) -> Result<Option<String>, Failed> {
        let answer = if anew { self.scraper.read_anew().await } else { self.scraper.read().await };
        let (stamp, reading) = answer.map_err(|error| Failed::Reading(error.to_string()))?;
        let mut faults: Vec<String> = reading.faults.iter().map(ToString::to_string).collect();
        let mut about: Vec<String> =
            reading.faults.iter().map(|fault| fault.about().to_owned()).collect();
        if reading.models.len() > 1 {
            let (count, names) = (reading.models.len(), listed(&reading.models));
            faults.push(format!("its page has {count} models ({names}), which are added up"));
            about.push(names);
        }
        let restarted = self.track.push(stamp, reading)?;
        if restarted {
            return Ok(Some(format!("{}: the server restarted", self.name)));
        }
        let words = (!faults.is_empty()).then(|| faults.join("; "));
        Ok(self.news(about.join("; "), words))
    }

    /// The words, unless the last were about the same.
    fn news(&mut self, about: String, words: Option<String>) -> Option<String> {
        if about == self.said {
            return None;
        }
        self.said = about;
        words.map(|words| format!("{}: {words}", self.name))
    }

    /// One more reading; what fails is a sample that is missing, but for servers in turn.
    pub async fn sample(&mut self) -> Result<Option<String>, MonitorError> {
        match self.read(false).await {
            Ok(news) => Ok(news),
            Err(Failed::Reading(words)) => {
                Ok(self.news(words.clone(), Some(format!("no reading: {words}"))))
            }
            Err(Failed::Several(error)) => {
                Err(MonitorError::Several { name: self.name.clone(), source: error })
            }
        }
    }

    /// Answers over connections of their own: where load is balanced, they differ.
    pub async fn first(&mut self) -> Result<Option<String>, MonitorError> {
        let mut news = None;
        for _ in 0..FIRST_ANSWERS {
            match self.read(true).await {
                Ok(words) => news = news.or(words),
                Err(Failed::Reading(words)) => {
                    return Err(MonitorError::Page(format!("{}: {words}", self.name)));
                }
                Err(Failed::Several(error)) => {
                    return Err(MonitorError::Several { name: self.name.clone(), source: error });
                }
            }
        }
        Ok(news)
    }

    /// By which its page is read, once one was.
    pub fn rules(&self) -> Option<&'static Rules> {
        self.track.rules()
    }
}

/// Why there is no reading.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("{0}")]
    Reading(String),
    #[error(transparent)]
    Several(#[from] SeveralServers),
}
