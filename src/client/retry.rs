//! `--retries`: a request that failed in a way that passes is sent again, a few times, politely.
//!
//! What passes: a connection that was refused, lost or not made in time; statuses 408, 429 and 5xx; an
//! answer that broke off with its connection before it said anything. Never after a token event: what
//! was generated counts. The row stays one: due and sent are those of the first try, what else was seen
//! is the last one's. Waits are as long as `Retry-After` says, else they double, with some of each drawn
//! from the seed. Deliberately absent: retries that nobody asked for.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;

use super::Client;
use super::control::AttemptControl;
use super::stream::{Attempt, Ended};
use crate::random::Random;
use crate::record::{Outcome, StreamRecord};
use crate::units::Nanos;

/// The first wait of its own; the next ones double.
const FIRST_WAIT: Nanos = Nanos::from_millis(500);
/// They double no further than this.
const LONGEST_OWN_WAIT: Nanos = Nanos::from_secs(8);
/// However long a server asks for, no wait is longer.
const LONGEST_WAIT: Nanos = Nanos::from_secs(60);
/// Up to this share of a wait of its own is left out, so that rows that failed together do not come
/// back together.
const JITTER: f64 = 0.25;

impl Client {
    /// Sends one request (again, where that was asked for) and follows its answer to the end; never fails:
    /// what goes wrong is in the record's outcome. Must run where local tasks can be spawned.
    pub async fn perform(
        self: &Rc<Self>,
        record: StreamRecord,
        body: Bytes,
        control: &AttemptControl,
    ) -> StreamRecord {
        let retries = self.settings.retries;
        let sent = self.clock.now();
        if retries.limit == 0 {
            return Box::new(Attempt::new(self, record, control, sent)).run(body).await.record;
        }
        for attempt in 1.. {
            let fresh = StreamRecord { attempts: Some(attempt), ..record.clone() };
            let attempt_of = Box::new(Attempt::new(self, fresh, control, sent));
            let ended = attempt_of.run(body.clone()).await;
            if attempt > retries.limit || !may_pass(&ended) {
                return ended.record;
            }
            let own = || own_wait(retries.seed, record.row, attempt);
            let at = self.clock.now() + ended.retry_after.unwrap_or_else(own).min(LONGEST_WAIT);
            // A try that is bound to run into its limit is not made: what the server said stands.
            let too_late =
                self.settings.timeouts.responding(sent).is_some_and(|limit| at >= limit.at);
            if too_late || !wait(self, control, at).await {
                return ended.record;
            }
        }
        record
    }
}

/// Whether a request that ended so may do better the next time.
fn may_pass(ended: &Ended) -> bool {
    let record = &ended.record;
    record.tokens.count() == 0
        && match record.outcome {
            Outcome::Connect => true,
            Outcome::Http(status) => matches!(status, 408 | 429 | 500..=599),
            // The limit on connecting; others leave no time for another try.
            Outcome::Timeout => record.conn_reused.is_none(),
            Outcome::Truncated => ended.broke,
            _ => false,
        }
}

/// Waits, unless the run ends first (false).
async fn wait(client: &Client, control: &AttemptControl, at: Nanos) -> bool {
    // It lives, though nothing is received meanwhile.
    control.saw_byte(at);
    let mut sleep = pin!(client.clock.sleep_until(at));
    let slept = poll_fn(|context| {
        if control.forbids_retries() {
            return Poll::Ready(false);
        }
        sleep.as_mut().poll(context).map(|()| true)
    });
    control.guard(&client.clock, None, slept).await.unwrap_or(false)
}

fn own_wait(seed: u64, row: u64, attempt: u32) -> Nanos {
    let doubled = FIRST_WAIT.0.saturating_mul(1 << (attempt - 1).min(16)).min(LONGEST_OWN_WAIT.0);
    let mut random = Random::keyed([seed, attempt.into(), 0, 0]);
    random.seek(row, 0);
    // A quarter of the upper 32 bits' share of the wait.
    let share = f64::from(random.next_u32()) / f64::from(u32::MAX);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of 8 s")]
    let left_out = (doubled as f64 * JITTER * share) as u64;
    Nanos(doubled - left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_within_bounds_and_are_drawn_from_the_seed() {
        for (attempt, whole_ms) in
            [(1, 500), (2, 1_000), (4, 4_000), (5, 8_000), (6, 8_000), (40, 8_000)]
        {
            let waits: Vec<u64> = (0..100).map(|row| own_wait(3, row, attempt).0).collect();
            let whole = Nanos::from_millis(whole_ms).0;
            assert!(waits.iter().all(|wait| (whole / 4 * 3..=whole).contains(wait)), "{waits:?}");
            assert!(waits.iter().min() < waits.iter().max(), "drawn");
        }
        assert_eq!(own_wait(3, 9, 2), own_wait(3, 9, 2));
        assert_ne!(own_wait(3, 9, 2), own_wait(4, 9, 2));
    }
}
