//! The decoder of server-sent events, over bodies in reads of 16 KiB, and cut at every event. Limit: the
//! line feeds of the same bytes found with `memchr`. Budget: 4 times that, about 60 ns an event; 6 times where each event is a read of its own.
//!
//! `cargo bench --bench sse`

mod ratio;

use std::hint::black_box;
use std::process::ExitCode;

use ratio::{Budgets, cpu_of, event, in_turn};
use underfire::client::sse::Decoder;

const EVENTS: usize = 256 * 8_000;
const READ_BYTES: usize = 16 << 10;

fn main() -> ExitCode {
    let events: Vec<String> = (0..256).map(event).collect();
    let body = events.concat();
    let times = EVENTS / events.len();
    let budgets = Budgets::default();
    let whole_events: Vec<&[u8]> = events.iter().map(String::as_bytes).collect();
    let reads: Vec<&[u8]> = body.as_bytes().chunks(READ_BYTES).collect();
    for (what, reads, budget) in
        [("reads of 16 KiB", reads, 4.0), ("a read per event", whole_events, 6.0)]
    {
        let figures = in_turn(
            || {
                cpu_of(|| {
                    let mut seen = 0;
                    for _ in 0..times {
                        let mut decoder = Decoder::new();
                        for read in &reads {
                            decoder
                                .feed(black_box(read), |event| {
                                    seen += usize::from(!event.data.is_empty());
                                })
                                .expect("short events");
                        }
                    }
                    assert_eq!(seen, EVENTS);
                }) / EVENTS as f64
            },
            || {
                cpu_of(|| {
                    let mut lines = 0;
                    for read in (0..times).flat_map(|_| &reads) {
                        lines += memchr::memchr_iter(b'\n', black_box(read)).count();
                    }
                    assert_eq!(lines, times * 256 * 2);
                }) / EVENTS as f64
            },
        );
        budgets.tell(what, "ns an event", figures, budget);
    }
    budgets.end()
}
