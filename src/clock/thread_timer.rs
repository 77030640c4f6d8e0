//! Real sleeps where there is no `timerfd`: a thread beside each worker waits on a condition variable
//! and wakes the sleepers. Coarser than the kernel timer; the spin before a send makes up for it.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Wake, Waker};
use std::time::Duration;

use super::{monotonic, timers::Timers};

/// Starts the thread that serves `timers` for as long as anyone else holds them.
pub(super) fn serve(timers: &Arc<Timers>) -> io::Result<()> {
    let timers = timers.clone();
    let bell = Arc::new(Bell::default());
    std::thread::Builder::new().name("timer".to_owned()).spawn(move || {
        while Arc::strong_count(&timers) > 1 {
            timers.fire(monotonic());
            timers.watch(Waker::from(bell.clone()));
            let wait =
                timers.next().map_or(100_000_000, |at| at.since(monotonic()).0.min(100_000_000));
            bell.wait(Duration::from_nanos(wait));
        }
    })?;
    Ok(())
}

#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    fn wait(&self, at_most: Duration) {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut rung, _) = self
            .changed
            .wait_timeout_while(rung, at_most, |rung| !*rung)
            .unwrap_or_else(PoisonError::into_inner);
        *rung = false;
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
    }
}
