//! underfire: replays LLM traffic, open loop, and measures what comes back.
pub mod client;
pub mod clock;
pub mod metrics;
pub mod prompt;
pub mod record;
pub mod replay;
pub mod report;
pub mod schedule;
pub mod sim;
pub mod trace;
pub mod units;
pub mod workload;
