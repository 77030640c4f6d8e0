//! Connections dialled before anybody needs them, so that the first requests find them made.
//!
//! Deliberately absent: keeping their number up. A connection that was dropped meanwhile is dialled again
//! by the request that would have used it, and its row says so.

use futures_util::StreamExt;
use futures_util::stream;

use super::control::AttemptControl;
use super::wire::{Link, Pool};
use crate::clock::Clock;
use crate::units::Nanos;

/// Connections on their way at a time, by worker: fewer than any server's queue of new ones holds.
const AT_ONCE: usize = 32;

/// What came of dialling ahead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dialled {
    /// How long each connection took: name, TCP and TLS.
    pub times: Vec<Nanos>,
    /// Those that were not made.
    pub failed: u64,
    /// Why the first of them was not.
    pub first_error: Option<String>,
}

impl Dialled {
    /// Adds what another pool or worker dialled.
    pub fn add(&mut self, other: Self) {
        self.times.extend(other.times);
        self.failed += other.failed;
        self.first_error = self.first_error.take().or(other.first_error);
    }
}

impl Pool {
    /// Dials `count` connections, each within `limit`, and keeps them. One is enough where requests share
    /// it.
    pub async fn dial_ahead(&self, clock: &Clock, count: usize, limit: Option<Nanos>) -> Dialled {
        let count = if self.is_shared() { count.min(1) } else { count };
        let mut dialled = Dialled::default();
        let dials = (0..count).map(|_| self.dial_one(clock, limit));
        let mut made = stream::iter(dials).buffer_unordered(AT_ONCE);
        while let Some(made) = made.next().await {
            match made {
                Ok(time) => dialled.times.push(time),
                Err(error) => {
                    dialled.failed += 1;
                    dialled.first_error.get_or_insert(error);
                }
            }
        }
        dialled
    }

    async fn dial_one(&self, clock: &Clock, limit: Option<Nanos>) -> Result<Nanos, String> {
        let began = clock.now();
        let deadline = limit.map(|limit| began + limit);
        let dial = AttemptControl::default().guard(clock, deadline, self.dial()).await;
        let link = dial.map_err(|_| "timed out".to_owned())?.map_err(|error| error.to_string())?;
        let time = clock.now().since(began);
        if let Link::Own(wire) = link {
            self.keep_fresh(wire);
        }
        Ok(time)
    }
}
