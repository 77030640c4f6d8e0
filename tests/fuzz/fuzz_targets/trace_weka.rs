//! The reader of weka traces.

#![no_main]

mod reading;

use libfuzzer_sys::fuzz_target;
use underfire::trace::read::Format;

fuzz_target!(|input: &[u8]| reading::read(Some(Format::Weka), input));
