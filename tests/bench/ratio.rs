//! What the benchmarks have in common: our work and the least work that could do the same are timed in
//! turn in one run, and the ratio of their medians is held to a budget. A machine's mood changes both
//! alike, so the ratio stands where absolute figures do not.
//!
//! A loop is timed by the processor time of its thread, which waiting and other processes do not add
//! to. Deliberately absent: statistics beyond the median.

#![allow(dead_code, reason = "each benchmark takes what it needs")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::cell::Cell;
use std::process::ExitCode;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::unistd::Pid;

/// Times each is run; the median counts.
pub(crate) const ROUNDS: usize = 5;

/// Processor time of this thread so far, in nanoseconds.
pub(crate) fn cpu_ns() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("the system tells");
    (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 * 1e3
}

/// Processor time of `work`, in nanoseconds.
pub(crate) fn cpu_of(work: impl FnOnce()) -> f64 {
    let before = cpu_ns();
    work();
    cpu_ns() - before
}

/// Medians of both, which are run in turn: each call returns a figure.
pub(crate) fn in_turn(mut ours: impl FnMut() -> f64, mut limit: impl FnMut() -> f64) -> (f64, f64) {
    let (mut of_ours, mut of_limit) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        of_ours.push(ours());
        of_limit.push(limit());
    }
    (median(of_ours), median(of_limit))
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The budgets of a benchmark.
#[derive(Default)]
pub(crate) struct Budgets {
    over: Cell<u32>,
}

impl Budgets {
    /// Prints one figure, its limit, and their ratio beside the budget on it.
    pub(crate) fn tell(&self, what: &str, unit: &str, figures: (f64, f64), budget: f64) {
        let (ours, limit) = figures;
        let ratio = ours / limit;
        let within = ratio <= budget;
        self.over.set(self.over.get() + u32::from(!within));
        let verdict = if within { "" } else { "  OVER" };
        println!(
            "{what}: {ours:.1} {unit}, limit {limit:.1}: {ratio:.2} (budget {budget}){verdict}"
        );
    }

    /// How the benchmark ends: with a failure where a budget was not kept.
    pub(crate) fn end(&self) -> ExitCode {
        ExitCode::from(u8::from(self.over.get() > 0))
    }
}

/// Keeps this thread on the `place`-th core that the process may use, where there are so many.
pub(crate) fn pin(place: usize) {
    let this = Pid::from_raw(0);
    let allowed = sched_getaffinity(this).expect("the system tells");
    let cores: Vec<usize> =
        (0..CpuSet::count()).filter(|core| allowed.is_set(*core).unwrap_or(false)).collect();
    let mut one = CpuSet::new();
    if let Some(core) = cores.get(place % cores.len().max(1))
        && one.set(*core).is_ok()
    {
        // Unpinned it is only less exact.
        let _ = sched_setaffinity(this, &one);
    }
}

/// An event as servers send them: one token, about 220 bytes.
pub(crate) fn event(index: usize) -> String {
    format!(
        "data: {{\"id\":\"chatcmpl-7c52c7a4e1f94a2c9f6d\",\"object\":\"chat.completion.chunk\",\
         \"created\":1796040000,\"model\":\"meta-llama/Llama-3.1-8B-Instruct\",\"choices\":[{{\"index\":0,\
         \"delta\":{{\"content\":\" word{}\"}},\"logprobs\":null,\"finish_reason\":null}}]}}\n\n",
        index % 10
    )
}
