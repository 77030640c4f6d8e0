//! Why a run could not be carried through.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::job::JobError;

/// Why a run could not be carried through.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError<P, C> {
    /// A thread or its runtime could not be started.
    #[error("cannot start a worker: {0}")]
    Worker(io::Error),
    /// A thread of the run panicked; what the others sent was followed to its end.
    #[error(transparent)]
    Panicked(Panicked),
    /// The plan broke off; what was sent before was followed to its end.
    #[error(transparent)]
    Plan(P),
    /// A row's content does not fit the API; what was sent before was followed to its end.
    #[error(transparent)]
    Content(JobError),
    /// The caller could not take an event; the run was stopped.
    #[error(transparent)]
    Caller(C),
}

/// A thread panicked: a fault of this program's. What was measured before stands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("thread `{thread}` panicked: {message}")]
pub struct Panicked {
    /// The thread.
    pub thread: String,
    /// What it said.
    pub message: String,
}

impl Panicked {
    /// Runs a thread's work.
    pub(super) fn catch<T>(thread: &str, work: impl FnOnce() -> T) -> Result<T, Self> {
        catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
            let (thread, message) = (thread.to_owned(), message(panic.as_ref()));
            Self { thread, message }
        })
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("it did not say why").to_owned()
}
