//! A thread that runs as soon as it wakes.
//!
//! Linux (6.12 and later) lets a thread that asks for short slices of the processor interrupt one that
//! asked for longer ones. With the default of some milliseconds, a send that is due waits while anything
//! else on the core is in the midst of its slice: another program, or our own recorder. The share of the
//! processor stays what it was, so nothing is taken from anybody. Deliberately absent: priorities and
//! real-time policies, which need rights and can starve a machine.

use uapi::{sched_getattr, sched_setattr};

use crate::units::Nanos;

/// The shortest slice that the kernel grants.
const SLICE: Nanos = Nanos(100_000);

/// Asks for it, for the calling thread and those that it starts. Where the kernel knows of no such thing,
/// nothing changes, and what that costs is in the lag.
pub(super) fn ask() {
    if let Ok(mut attributes) = sched_getattr(0, 0) {
        attributes.sched_runtime = SLICE.0;
        // Nothing hangs on it.
        let _ = sched_setattr(0, &attributes, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_of_its_own_has_the_slice() {
        let asked = std::thread::spawn(|| {
            ask();
            sched_getattr(0, 0).expect("every thread has them").sched_runtime
        });
        let other = sched_getattr(0, 0).expect("every thread has them").sched_runtime;
        let asked = asked.join().expect("no panic");
        // Kernels before 6.12 tell of no slices.
        assert!(asked == SLICE.0 || asked == 0, "{asked}");
        assert!(other == 0 || other > SLICE.0, "{other}");
    }
}
