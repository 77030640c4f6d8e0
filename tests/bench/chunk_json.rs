//! The JSON of a chunk, as servers send it for every token, and with a value in it that nests. Limit:
//! the quotes of the same bytes found with `memchr`, which nobody can do without. Budget: twice that,
//! about 200 ns.
//!
//! `cargo bench --bench chunk_json`

mod ratio;

use std::hint::black_box;
use std::process::ExitCode;

use ratio::{Budgets, cpu_of, event, in_turn};
use underfire::client::dialect::{Parsed, parse};

const CHUNKS: usize = 256_000;

fn main() -> ExitCode {
    let usual: Vec<String> = (0..64).map(|i| data(&event(i))).collect();
    let nested =
        |chunk: &String| chunk.replace("\"logprobs\":null", "\"logprobs\":{\"content\":[]}");
    let nesting: Vec<String> = usual.iter().map(nested).collect();
    let budgets = Budgets::default();
    for (what, chunks) in [("usual", usual), ("nested value", nesting)] {
        let each = || (0..CHUNKS / chunks.len()).flat_map(|_| &chunks);
        let figures = in_turn(
            || {
                cpu_of(|| {
                    for chunk in each() {
                        match parse(black_box(chunk.as_bytes())) {
                            Ok(Parsed::Chunk(chunk)) => assert!(chunk.kind.is_some()),
                            other => panic!("{other:?}"),
                        }
                    }
                }) / CHUNKS as f64
            },
            || {
                cpu_of(|| {
                    for chunk in each() {
                        let quotes = memchr::memchr_iter(b'"', black_box(chunk.as_bytes()));
                        assert!(black_box(quotes.fold(0, |sum, at| sum ^ at)) < chunk.len() * 2);
                    }
                }) / CHUNKS as f64
            },
        );
        budgets.tell(what, "ns a chunk", figures, 2.0);
    }
    budgets.end()
}

fn data(event: &str) -> String {
    event.trim_start_matches("data: ").trim_end().to_owned()
}
