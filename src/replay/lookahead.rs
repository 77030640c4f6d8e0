//! Rows on their way from the thread that makes them to the worker that sends them: made ahead of
//! their time, bounded in bytes.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::job::Job;

/// Where a worker's rows come from.
pub trait Rows {
    /// The plan's next row; `None` at its end.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Job>>;
}

/// Rows made when asked for, on the same thread: for virtual time.
#[derive(Debug)]
pub struct Inline<I>(pub I);

impl<I: Iterator<Item = Job>> Rows for Inline<I> {
    fn poll_next(&mut self, _context: &mut Context<'_>) -> Poll<Option<Job>> {
        Poll::Ready(self.0.next())
    }
}

/// A bounded queue between the maker and one worker, or several that share it.
#[derive(Debug)]
pub(super) struct Lookahead {
    state: Mutex<State>,
    room: Condvar,
    limit_bytes: usize,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Job>,
    bytes: usize,
    /// No more rows will come.
    ended: bool,
    /// Nobody wants more rows.
    abandoned: bool,
    waiting: Vec<Waker>,
}

impl Lookahead {
    /// Holds at most `limit_bytes` of jobs, or a single larger one.
    pub(super) fn new(limit_bytes: usize) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), room: Condvar::new(), limit_bytes })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a job would have to wait.
    pub(super) fn is_full(&self) -> bool {
        self.lock().bytes >= self.limit_bytes
    }

    /// Adds a job, waiting for room; false when nobody wants it.
    pub(super) fn push(&self, job: Job) -> bool {
        let state = self.lock();
        let mut state = self
            .room
            .wait_while(state, |state| !state.abandoned && state.bytes >= self.limit_bytes)
            .unwrap_or_else(PoisonError::into_inner);
        if state.abandoned {
            return false;
        }
        state.bytes += job.bytes();
        state.queue.push_back(job);
        wake_all(state);
        true
    }

    /// Says that no more jobs will come.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        wake_all(state);
    }

    /// Says that no more jobs are wanted.
    pub(super) fn abandon(&self) {
        self.lock().abandoned = true;
        self.room.notify_all();
    }
}

/// Wakes the workers that wait, after the lock is released.
fn wake_all(mut state: MutexGuard<'_, State>) {
    let waiting = std::mem::take(&mut state.waiting);
    drop(state);
    waiting.into_iter().for_each(Waker::wake);
}

impl Rows for Arc<Lookahead> {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Job>> {
        let mut state = self.lock();
        match state.queue.pop_front() {
            Some(job) => {
                state.bytes -= job.bytes();
                drop(state);
                self.room.notify_one();
                Poll::Ready(Some(job))
            }
            None if state.ended => Poll::Ready(None),
            None => {
                state.waiting.push(context.waker().clone());
                Poll::Pending
            }
        }
    }
}
