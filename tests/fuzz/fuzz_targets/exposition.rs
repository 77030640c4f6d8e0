//! The reader of metrics pages: no bytes make it panic or take more than its limits, a page that is read
//! is read the same with carriage returns, and its figures are counts.

#![no_main]

use libfuzzer_sys::fuzz_target;
use underfire::telemetry::exposition::{Limits, parse};
use underfire::telemetry::reading::{read, recognise};

fuzz_target!(|input: &[u8]| {
    let limits = Limits { bytes: 1 << 16, samples: 1000, labels: 8 };
    let Ok(page) = parse(input, limits) else { return };
    assert!(page.samples.len() <= limits.samples);
    assert!(page.samples.iter().all(|sample| sample.labels.len() <= limits.labels));
    if let Ok(text) = std::str::from_utf8(input)
        && text.len() * 2 <= limits.bytes
    {
        let text = text.replace('\n', "\r\n");
        let again = parse(text.as_bytes(), limits).expect("the same page");
        let names = |page: &underfire::telemetry::exposition::Exposition<'_>| -> Vec<String> {
            page.samples.iter().map(|sample| sample.name.to_string()).collect()
        };
        assert_eq!(names(&again), names(&page));
    }
    let Ok(rules) = recognise(&page) else { return };
    let reading = read(&page, rules);
    let counts = reading.counters.values().flat_map(|series| series.values());
    assert!(counts.into_iter().all(|count| count.is_finite() && *count >= 0.0));
});
