//! Looks at what the machine tells of this process while a run lasts, and sums it up at the end.
//! Deliberately absent: what it means.

use crate::machine::cgroup::{Cgroup, Throttled};
use crate::machine::process::{Threads, allowed_cores};
use crate::machine::sockets;
use crate::metrics::client_figures::{ClientFigures, Heartbeat, kept};
use crate::replay::drain::Shared;
use crate::units::Nanos;

/// What was seen of a run so far.
#[derive(Debug, Default)]
pub(super) struct ClientWatch {
    cgroup: Option<Cgroup>,
    /// The first and the last look at what it held back.
    throttled: Option<[Throttled; 2]>,
    threads: Threads,
    /// The first and the last look at the processor time used.
    cpu: Option<[(Nanos, Nanos); 2]>,
    fds: Option<u64>,
    ports: Option<u64>,
    heartbeat: Option<Heartbeat>,
    record_wait: Option<Nanos>,
}

impl ClientWatch {
    pub(super) fn new() -> Self {
        Self { cgroup: Cgroup::here(), ..Self::default() }
    }

    /// Looks, `at` this time, when all threads together had `used` so much processor time.
    pub(super) fn look(&mut self, at: Nanos, used: Option<Nanos>) {
        self.threads.look(at);
        if let Some(throttled) = self.cgroup.as_ref().and_then(Cgroup::throttled) {
            self.throttled.get_or_insert([throttled; 2])[1] = throttled;
        }
        if let Some(used) = used {
            self.cpu.get_or_insert([(at, used); 2])[1] = (at, used);
        }
        let open = sockets::open_descriptors();
        self.fds = self.fds.max(open);
        let taken = open.zip(sockets::ports_in_time_wait()).map(|(open, waiting)| open + waiting);
        self.ports = self.ports.max(taken);
    }

    /// Takes what the workers left.
    pub(super) fn hear(&mut self, shared: &Shared) {
        let told =
            shared.heartbeat().map(|beat| Heartbeat::of(beat.n, [beat.p50, beat.p99, beat.max]));
        self.heartbeat = told.or(self.heartbeat);
        self.record_wait = shared.waits_for_caller().map(|waits| waits.span);
    }

    /// What it comes to.
    pub(super) fn figures(&self) -> ClientFigures {
        let (busiest, waited) = self.threads.sum().unzip();
        let cores = allowed_cores().map(|cores| cores as f64);
        let quota = self.cgroup.as_ref().and_then(Cgroup::quota_cores);
        let span = self.cpu.map_or(Nanos::ZERO, |[from, to]| to.0.since(from.0));
        ClientFigures {
            cpu: self.cpu.and_then(|[from, to]| share(to.1.since(from.1), span)),
            cpu_allowed: cores.into_iter().chain(quota).reduce(f64::min).map(kept),
            thread_cpu_share: busiest.map(kept),
            cpu_wait_share: waited.map(kept),
            cpu_throttled_share: self
                .throttled
                .and_then(|[from, to]| share(to.time.since(from.time), span)),
            cpu_throttled: self.throttled.map(|[from, to]| to.periods.saturating_sub(from.periods)),
            fds: self.fds,
            fds_limit: sockets::descriptor_limit(),
            ports: self.ports,
            ports_limit: sockets::port_limit(),
            heartbeat_ms: self.heartbeat,
            record_wait_ms: self.record_wait.map(|span| kept(span.as_millis_f64())),
        }
    }
}

/// A part of a span, as it is kept; `None` of no span.
fn share(part: Nanos, span: Nanos) -> Option<f64> {
    (span > Nanos::ZERO).then(|| kept(part.as_secs_f64() / span.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_s_use_is_that_between_the_first_look_and_the_last() {
        let mut watch = ClientWatch::default();
        for (at_s, used_s) in [(1, 10), (2, 10), (5, 13)] {
            watch.look(Nanos::from_secs(at_s), Some(Nanos::from_secs(used_s)));
        }
        let figures = watch.figures();
        assert_eq!(figures.cpu, Some(0.75));
        if cfg!(target_os = "linux") {
            assert!(figures.fds.is_some_and(|n| n > 2), "{figures:?}");
            assert!(figures.cpu_allowed.is_some_and(|n| n >= 1.0), "{figures:?}");
        }
        assert_eq!(ClientWatch::default().figures().cpu, None);
    }
}
