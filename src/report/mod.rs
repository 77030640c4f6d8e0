//! Figures to files and words: the run folder, its rows, its manifest, and the summary for people.
//!
//! Everything here takes plain data and gives text or a file. Deliberately absent: any statistic (see
//! [`crate::metrics`]), a clock (instants are handed in), printing, and the types of rooms that
//! measure: what they say about themselves comes in as JSON.

mod console;
mod folder;
mod manifest;
mod recorder;
mod redact;
mod summary_csv;
mod text_file;
mod whole_lines;
mod words;

pub use console::{RunFacts, render};
pub use folder::{Folder, FolderError, WriteError, replace_file};
pub use manifest::{ClockAnchor, Machine, Manifest, Scale, Target, WindowFacts};
pub use recorder::{Recorder, RecorderError};
pub use redact::{redact_arg, redact_command, redact_json, redact_text, redact_url};
pub use summary_csv::{HEADER, write_summary};
pub use text_file::{TextFile, TextFileError};
