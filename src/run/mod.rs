//! One run, from what is asked for to what it came to: a value that a library user, the command line or
//! another command makes, drives and looks at.
//!
//! [`Run::prepare`] opens the source, reaches the servers, fits the prompts and counts the plan;
//! [`Prepared::drive`] sends it and gives a [`Report`]. What happens meanwhile is told to an [`Observer`].
//! Nothing here is global: runs can follow one another in a process, with a folder or without, against
//! servers or in virtual time. Deliberately absent: arguments as typed, printing, signals, exit codes.

pub mod calibration;
mod client_monitor;
mod collector;
mod content;
mod drive;
mod error;
mod events;
mod manifest;
mod predial;
mod prepare;
mod prompts;
mod report;
mod scraping;
mod server_count;
mod settings;
mod setup;
mod token_count;
mod traffic;
mod truth;

pub use error::RunError;
pub use events::{Event, Observer, Progress};
pub use manifest::describe_target;
pub use prepare::{PlannedRun, Prepared, Run};
pub use report::Report;
pub use settings::{
    ContentSettings, FolderSettings, JudgementSettings, LimitSettings, MetricsPages,
    OutputSettings, Salt, ScheduleSettings, Settings, Target,
};
pub use traffic::Traffic;
pub use truth::CompareError;
