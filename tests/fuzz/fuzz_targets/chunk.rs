//! The parser of one event and the reader of error bodies: no bytes make them panic, what they say fits
//! a cell, and laying one object over another gives an object again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;
use underfire::client::dialect::{Parsed, error_message, merge, parse, parse_event};

fn fits_a_cell(text: &str) {
    assert!(text.chars().count() <= 500 && !text.chars().any(char::is_control), "{text:?}");
}

fuzz_target!(|data: &[u8]| {
    let plain = parse(data);
    if let Ok(Parsed::Chunk(chunk)) = &plain {
        assert_eq!(chunk.clone().into_owned(), *chunk);
        assert!(!chunk.is_answer() || chunk.kind.is_some());
        if let Some(error) = &chunk.error {
            fits_a_cell(error);
        }
    }
    assert_eq!(parse_event(b"", data), plain);
    // An event named `error` is one, whatever its data.
    match parse_event(b"error", data).expect("always read") {
        Parsed::Chunk(chunk) => fits_a_cell(&chunk.error.expect("an error")),
        Parsed::Done => panic!("an error is no end"),
    }
    fits_a_cell(&error_message(data));
    if let Ok(over) = serde_json::from_slice::<&RawValue>(data)
        && let Ok(merged) = merge(b"{\"model\":\"m\",\"stream_options\":{\"include_usage\":true}}", over)
    {
        serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&merged)
            .expect("an object");
    }
});
