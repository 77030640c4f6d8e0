//! Any bytes as a trace of one format: read or refused, with the same rows in every pass, and no panic.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::OnceLock;

use underfire::trace::read::{Failed, Format, Input, ReadOptions, open, walk};

/// A file of this process, written anew for every input.
fn place() -> &'static PathBuf {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        let name = format!("underfire-fuzz-{}", std::process::id());
        std::env::temp_dir().join(name)
    })
}

/// Reads `input` as `format` says, or as its content tells.
pub fn read(format: Option<Format>, input: &[u8]) {
    let path = place();
    std::fs::write(path, input).expect("a temporary file");
    let options = ReadOptions { format, failed: Failed::Keep, ..ReadOptions::default() };
    if let Ok(trace) = open(Input::File(path.clone()), options.clone()) {
        let pass = || -> Vec<_> {
            let rows = trace.rows().expect("a file is read again");
            rows.map(|row| row.expect("validated")).map(|row| (row.row, row.at)).collect()
        };
        let rows = pass();
        assert!(rows.is_sorted_by_key(|(_, at)| *at));
        assert_eq!(rows, pass());
        assert_eq!(rows.len() as u64, trace.facts().expect("a file").rows_kept);
    }
    let _ = walk(&Input::File(path.clone()), &options, &mut |_| ControlFlow::Continue(()));
}
