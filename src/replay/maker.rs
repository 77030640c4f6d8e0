//! The thread that makes bodies ahead of their time, off the path of the sends.
//!
//! It is on its own: a source may block for as long as it likes (a pipe that says nothing), and a run
//! that is stopped does not wait for it.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use tokio::sync::watch;

use super::drain::Stop;
use super::error::Panicked;
use super::job::{BodyMaker, JobError, session_key};
use super::lookahead::Lookahead;
use crate::schedule::Planned;

/// Rows whose bodies are made before `t0`, unless the look-ahead is full earlier.
const PRIME_ROWS: usize = 4096;
/// From the first row on, preparation takes no longer than this: rows may come in slowly.
const PRIME_LIMIT: Duration = Duration::from_secs(2);
/// How often a wait looks whether the run was stopped.
const LOOK: Duration = Duration::from_millis(100);

/// Why the plan broke off.
#[derive(Debug)]
pub(super) enum Broken<E> {
    /// Its source failed.
    Plan(E),
    /// A row's content does not fit the API.
    Content(JobError),
    /// The thread panicked.
    Panicked(Panicked),
}

/// A maker at work.
pub(super) struct Maker<E> {
    progress: Receiver<Progress>,
    result: Receiver<Result<(), Broken<E>>>,
}

/// What a maker says of itself, once each.
enum Progress {
    FirstRow,
    Primed,
}

impl<E: Send + 'static> Maker<E> {
    /// Starts making; job `i` goes to queue `i` modulo their number, or to that of its session.
    pub(super) fn start<P>(
        plan: P,
        bodies: BodyMaker,
        queues: Vec<Arc<Lookahead>>,
    ) -> io::Result<Self>
    where
        P: Iterator<Item = Result<Planned, E>> + Send + 'static,
    {
        let bodies = Arc::new(bodies);
        let (say, progress) = mpsc::channel();
        let (end, result) = mpsc::channel();
        std::thread::Builder::new().name("bodies".to_owned()).spawn(move || {
            let made = Panicked::catch("bodies", || make(plan, &bodies, &queues, say));
            for queue in &queues {
                queue.end();
            }
            // Nobody listens any more when the run was stopped.
            let _ = end.send(made.unwrap_or_else(|panicked| Err(Broken::Panicked(panicked))));
        })?;
        Ok(Self { progress, result })
    }

    /// Waits until enough bodies are ready for `t0`, or `stop` is set.
    pub(super) fn wait_primed(&self, stop: &watch::Sender<Stop>) {
        let mut since_first = None;
        while *stop.borrow() == Stop::No && since_first.is_none_or(|waited| waited < PRIME_LIMIT) {
            match self.progress.recv_timeout(LOOK) {
                Ok(Progress::FirstRow) => since_first = Some(Duration::ZERO),
                Ok(Progress::Primed) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    since_first = since_first.map(|waited| waited + LOOK);
                }
            }
        }
    }

    /// How it ended. A stopped run does not wait for a maker that still waits for its source.
    pub(super) fn finish(self, stopped: bool) -> Result<(), Broken<E>> {
        let result =
            if stopped { self.result.recv_timeout(LOOK).ok() } else { self.result.recv().ok() };
        result.unwrap_or(Ok(()))
    }
}

fn make<E>(
    plan: impl Iterator<Item = Result<Planned, E>>,
    bodies: &Arc<BodyMaker>,
    queues: &[Arc<Lookahead>],
    say: Sender<Progress>,
) -> Result<(), Broken<E>> {
    let mut say = Some(say);
    for (count, planned) in plan.enumerate() {
        let job = bodies.job_in_time(planned.map_err(Broken::Plan)?).map_err(Broken::Content)?;
        // The turns of a session follow one another, so one worker has them all.
        let place = match &job.planned.request.session {
            Some(session) => usize::try_from(session_key(session)).unwrap_or(count),
            None => count,
        };
        let queue = &queues[place % queues.len()];
        let progress = match count {
            0 => Some(Progress::FirstRow),
            _ if count >= PRIME_ROWS || queue.is_full() => Some(Progress::Primed),
            _ => None,
        };
        if let (Some(progress), Some(to)) = (progress, &say) {
            let primed = matches!(progress, Progress::Primed);
            let _ = to.send(progress);
            if primed {
                say = None;
            }
        }
        if !queue.push(job) {
            break;
        }
    }
    Ok(())
}
