//! Whether the results of a run will fit where they go: an estimate before `t0`, and a warning; and that
//! a limit on the size of files is an error like any other.
//!
//! Deliberately absent: a refusal. The estimate is rough, and what does not fit is kept whole as far as
//! it went.

use std::path::Path;

use nix::libc::SIGXFSZ;
use nix::sys::statvfs::statvfs;
use tokio::signal::unix::{SignalKind, signal};

/// A row of `requests.csv`, with what it adds to the other files; of the built-in server also a row of
/// its log. Rows of real servers have 250 to 330 bytes.
const ROW_BYTES: u64 = 500;
/// What a token adds to `intervals.csv` at the most: a bucket of its own.
const TOKEN_BYTES: u64 = 10;
/// A line of `chunks.csv`.
const CHUNK_BYTES: u64 = 36;

/// Makes a write past the limit on the size of files (`ulimit -f`) fail, where the system would end the
/// process: the error is handled, and rows that were written stay whole.
pub(super) fn outlive_file_limit() -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _entered = runtime.enter();
    // Once it was asked for, the signal never has its usual effect again, heard or not.
    signal(SignalKind::from_raw(SIGXFSZ)).map(drop)
}

/// What the results will take, in bytes.
fn estimate(rows: u64, output_tok: u64, chunks: bool) -> u64 {
    let per_token = TOKEN_BYTES + if chunks { CHUNK_BYTES } else { 0 };
    rows.saturating_mul(ROW_BYTES).saturating_add(output_tok.saturating_mul(per_token))
}

/// A warning where the results in `folder` are not going to fit.
pub(super) fn warning(folder: &Path, rows: u64, output_tok: u64, chunks: bool) -> Option<String> {
    let system = statvfs(folder).ok()?;
    let free = system.blocks_available().saturating_mul(system.fragment_size());
    words(estimate(rows, output_tok, chunks), free)
}

fn words(needed: u64, free: u64) -> Option<String> {
    let mb = |bytes: u64| bytes.div_ceil(1_000_000);
    (needed > free).then(|| {
        format!(
            "the results may take {} MB, and {} MB are free where they go",
            mb(needed),
            mb(free)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_does_not_fit_is_warned_of() {
        assert_eq!(words(estimate(1_000, 10_000, false), 10_000_000), None);
        let text =
            words(estimate(27_000_000, 3_000_000_000, true), 1_000_000_000).expect("it is large");
        assert_eq!(text, "the results may take 151500 MB, and 1000 MB are free where they go");
        assert_eq!(warning(Path::new("/"), 0, 0, true), None);
        assert_eq!(estimate(u64::MAX, u64::MAX, true), u64::MAX);
    }
}
