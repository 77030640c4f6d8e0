//! The JSON of a chunk, as servers send it for every token, and with keys in another order (the full
//! parser). Limit: the text found by its key and its closing quote, nothing checked. Budget: 8 times that,
//! about 200 ns; the full parser 40 times.
//!
//! `cargo bench --bench chunk_json`

mod ratio;

use std::hint::black_box;
use std::process::ExitCode;

use ratio::{Budgets, cpu_of, event, in_turn};
use underfire::client::dialect::{Parsed, parse};

const CHUNKS: usize = 300_000;

fn main() -> ExitCode {
    let usual: Vec<String> = (0..64).map(|i| data(&event(i))).collect();
    let unusual: Vec<String> = usual.iter().map(|chunk| in_another_order(chunk)).collect();
    let budgets = Budgets::default();
    for (what, chunks, budget) in
        [("usual order of keys", usual, 8.0), ("another order of keys", unusual, 40.0)]
    {
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
                    let finder = memchr::memmem::Finder::new("\"content\":\"");
                    for chunk in each() {
                        let bytes = black_box(chunk.as_bytes());
                        let at = finder.find(bytes).expect("it is there") + 11;
                        black_box(memchr::memchr(b'"', &bytes[at..]).expect("it ends"));
                    }
                }) / CHUNKS as f64
            },
        );
        budgets.tell(what, "ns a chunk", figures, budget);
    }
    budgets.end()
}

fn data(event: &str) -> String {
    event.trim_start_matches("data: ").trim_end().to_owned()
}

/// `choices` first: no server does that, and any may.
fn in_another_order(chunk: &str) -> String {
    let at = chunk.find("\"choices\"").expect("it has them");
    let (before, choices) = chunk.split_at(at);
    let before = before.trim_start_matches('{').trim_end_matches(',');
    format!("{{{},{before}}}", choices.strip_suffix('}').expect("an object"))
}
