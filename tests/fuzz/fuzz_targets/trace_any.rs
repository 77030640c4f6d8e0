//! Any bytes, whose format is told by them.

#![no_main]

mod reading;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| reading::read(None, input));
