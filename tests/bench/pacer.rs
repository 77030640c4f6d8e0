//! The pacer: how late a deadline is met, 1,000 a second. Limit: a thread that blocks on a kernel timer
//! for each. Budget: half its lateness at the median, and no more than it at p99; the spin that buys this
//! costs at most 100 µs of CPU a deadline.
//!
//! `cargo bench --bench pacer`

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod ratio;

use nix::sys::time::{TimeSpec, TimeValLike};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use ratio::{Budgets, ROUNDS, cpu_ns, median, pin};
use std::process::ExitCode;
use underfire::clock::{Clock, monotonic};
use underfire::units::Nanos;

const DEADLINES: u64 = 500;
const EVERY: Nanos = Nanos::from_millis(1);
const BUDGET_CPU_US: f64 = 100.0;

fn main() -> ExitCode {
    pin(0);
    let (mut ours, mut limit, mut cpu) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let before = cpu_ns();
        ours.push(paced());
        cpu.push((cpu_ns() - before) / 1e3 / DEADLINES as f64);
        limit.push(blocking());
    }
    let of = |rounds: &[[f64; 2]], place: usize| median(rounds.iter().map(|r| r[place]).collect());
    let budgets = Budgets::default();
    budgets.tell("late, p50", "µs", (of(&ours, 0), of(&limit, 0)), 0.5);
    budgets.tell("late, p99", "µs", (of(&ours, 1), of(&limit, 1)), 1.0);
    println!("CPU a deadline: {:.1} µs (budget {BUDGET_CPU_US} µs)", median(cpu));
    budgets.end()
}

/// p50 and p99 of our lateness, in µs.
fn paced() -> [f64; 2] {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    let runtime = runtime.expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let clock = Clock::real().expect("a timer");
        let start = clock.now();
        let mut late = Vec::new();
        for deadline in deadlines(start) {
            clock.pace_until(deadline).await;
            late.push(clock.now().since(deadline));
        }
        ranks(late)
    })
}

/// The same of a bare timer.
fn blocking() -> [f64; 2] {
    let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::empty()).expect("a timer");
    let mut late = Vec::new();
    for deadline in deadlines(monotonic()) {
        let at = TimeSpec::nanoseconds(i64::try_from(deadline.0).expect("within 292 years"));
        timer
            .set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)
            .expect("a timer takes a time");
        timer.wait().expect("it rings");
        late.push(monotonic().since(deadline));
    }
    ranks(late)
}

fn deadlines(start: Nanos) -> impl Iterator<Item = Nanos> {
    (1..=DEADLINES).map(move |i| start + Nanos(EVERY.0 * i))
}

fn ranks(mut late: Vec<Nanos>) -> [f64; 2] {
    late.sort_unstable();
    [50, 99].map(|percent| late[late.len() * percent / 100].0 as f64 / 1e3)
}
