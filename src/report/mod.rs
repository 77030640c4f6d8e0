//! Figures to files and words: the run folder, its rows, its manifest, and the summary for people.
//!
//! Everything here takes plain data and gives text or a file. Deliberately absent: any statistic (see
//! [`crate::metrics`]), a clock (instants are handed in), printing, and the types of rooms that
//! measure: what they say about themselves comes in as JSON.

mod chunks_csv;
mod console;
mod folder;
mod intervals_csv;
mod line_file;
mod manifest;
mod number_format;
mod rebuild;
mod recorder;
mod run_facts;
mod server_csv;
mod summary;
mod text_file;
mod timeline_csv;
mod whole_lines;

pub use chunks_csv::ChunkRow;
pub use console::render;
pub use folder::{Folder, FolderError, WriteError, replace_file};
pub use intervals_csv::IntervalRow;
pub use line_file::{LineFile, RecorderError};
pub use manifest::{ClockAnchor, Machine, Manifest, ReadError, Scale, Target, WindowFacts};
pub use number_format::{NONE, grouped, percent, span};
pub use rebuild::{RebuildError, Rebuilt, rebuild};
pub use recorder::{Recorded, Recorder, SecondCount};
pub use run_facts::{OwnError, RunFacts};
pub use server_csv::{SERVER_COLUMNS, ServerFile, ServerSample};
pub use summary::{SUMMARY_COLUMNS, save_summary, summary_json, write_summary};
pub use text_file::{TextFile, TextFileError};
pub use timeline_csv::TIMELINE_COLUMNS;
