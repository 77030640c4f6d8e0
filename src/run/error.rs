//! Why a run cannot be prepared, or broke off.

use std::io;
use std::path::PathBuf;

use super::truth::CompareError;
use crate::lab::{LabError, LoadError};
use crate::prompt::corpus::CorpusError;
use crate::prompt::tokenizer::TokenizerError;
use crate::replay::job::JobError;
use crate::replay::{Panicked, ReplayError};
use crate::report::{FolderError, RecorderError, TextFileError, WriteError};
use crate::schedule::rate::RateError;
use crate::server::ServerError;
use crate::telemetry::MonitorError;
use crate::trace::read::TraceError;
use crate::workload::WorkloadError;
use crate::workload::servegen::ServeGenError;

/// Why a run cannot be prepared, or broke off.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Settings that contradict each other or the source.
    #[error("{0}")]
    Settings(String),
    /// A trace.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A workload file.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A folder of `ServeGen` clients.
    #[error(transparent)]
    ServeGen(#[from] ServeGenError),
    /// The rate that was asked for.
    #[error(transparent)]
    Rate(#[from] RateError),
    /// The file of prompts.
    #[error(transparent)]
    Prompts(#[from] CorpusError),
    /// The file of a tokenizer.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// A row that cannot be put into words.
    #[error(transparent)]
    Body(#[from] JobError),
    /// A server.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A metrics page.
    #[error(transparent)]
    Monitor(#[from] MonitorError),
    /// The run folder.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A growing file of the run.
    #[error(transparent)]
    Recorder(#[from] RecorderError),
    /// The same while requests were under way.
    #[error("cannot write results: {0}")]
    Results(#[source] RecorderError),
    /// The file of texts.
    #[error(transparent)]
    Texts(#[from] TextFileError),
    /// A file that is written once.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The plan as a file.
    #[error("failed to write the plan to {}: {reason}", path.display())]
    Plan {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A calibration's load.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The simulated server's log, or the rows that it is held against.
    #[error(transparent)]
    Truth(#[from] CompareError),
    /// Virtual time.
    #[error(transparent)]
    Virtual(#[from] LabError),
    /// A thread or its runtime.
    #[error("cannot start a worker: {0}")]
    Worker(io::Error),
    /// A thread panicked.
    #[error(transparent)]
    Panicked(#[from] Panicked),
    /// The system would not do something.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// Why not.
        source: io::Error,
    },
    /// A signal came before the first row was due: there are no results.
    #[error("interrupted before the first row was due")]
    Interrupted,
}

impl RunError {
    /// Nobody is there to send to, or nobody who would serve: no request could succeed.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Server(error) if error.is_unreachable())
    }
}

impl From<ReplayError<TraceError, Self>> for RunError {
    fn from(error: ReplayError<TraceError, Self>) -> Self {
        match error {
            ReplayError::Worker(error) => Self::Worker(error),
            ReplayError::Panicked(panicked) => panicked.into(),
            ReplayError::Plan(error) => error.into(),
            ReplayError::Content(error) => error.into(),
            ReplayError::Caller(error) => error,
        }
    }
}
