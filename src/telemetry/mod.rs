//! What a server says of itself on its Prometheus page, and what follows from two such pages.
//!
//! Page -> [`exposition`] -> [`reading`] (by the engine's [`rules`]) -> [`track`] (samples at mid-point
//! stamps, restarts as segments) -> [`window`] (rates, means, percentiles) -> [`remaining`], or [`count`] ->
//! [`cross_check`] (a run's own count against the server's). All of that is pure; only [`scrape`] asks anybody, through the client's kept connection. Deliberately absent:
//! load of any kind, and rates that the server averages itself.

pub mod count;
pub mod cross_check;
pub mod exposition;
pub mod figures;
pub mod histogram;
pub mod lifetime;
pub mod models;
pub mod monitored;
pub mod reading;
pub mod reading_error;
pub mod remaining;
pub mod rules;
pub mod scrape;
pub mod track;
pub mod window;

#[cfg(test)]
mod tests;

pub use monitored::{MonitorError, MonitoredServer};
pub use reading::Reading;
pub use reading_error::ReadingError;
pub use scrape::{ScrapeError, Scraper};
pub use track::Track;
pub use window::Window;
