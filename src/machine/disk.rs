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
pub fn outlive_file_limit() -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _entered = runtime.enter();
    // Once it was asked for, the signal never has its usual effect again, heard or not.
    signal(SignalKind::from_raw(SIGXFSZ)).map(drop)
}

/// What a run will write, as far as it is known beforehand.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expected {
    /// Rows of `requests.csv`.
    pub rows: u64,
    /// Completion tokens of the rows that ask for a length.
    pub output_tok: u64,
    /// Some rows ask for no length, and add to that.
    pub is_open_ended: bool,
    /// `chunks.csv` is written.
    pub chunks: bool,
}

impl Expected {
    fn bytes(&self) -> u64 {
        let per_token = TOKEN_BYTES + if self.chunks { CHUNK_BYTES } else { 0 };
        let tokens = self.output_tok.saturating_mul(per_token);
        self.rows.saturating_mul(ROW_BYTES).saturating_add(tokens)
    }

    /// A warning where it is not going to fit in `folder`.
    #[must_use]
    pub fn warning(&self, folder: &Path) -> Option<String> {
        let system = statvfs(folder).ok()?;
        self.warning_at(system.blocks_available().saturating_mul(system.fragment_size()))
    }

    fn warning_at(&self, free: u64) -> Option<String> {
        let mb = |bytes: u64| bytes.div_ceil(1_000_000);
        let (needed, more) =
            (self.bytes(), " and more, since the length of some answers is unknown");
        (needed > free).then(|| {
            format!(
                "the results may take {} MB{}, and {} MB are free where they go",
                mb(needed),
                if self.is_open_ended { more } else { "" },
                mb(free)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_does_not_fit_is_warned_of() {
        let small = Expected { rows: 1_000, output_tok: 10_000, ..Expected::default() };
        assert_eq!(small.warning_at(10_000_000), None);
        let large = Expected { rows: 27_000_000, output_tok: 3_000_000_000, chunks: true, ..small };
        let text = large.warning_at(1_000_000_000).expect("it is large");
        assert_eq!(text, "the results may take 151500 MB, and 1000 MB are free where they go");
        let large = Expected { is_open_ended: true, ..large };
        let text = large.warning_at(1_000_000_000).expect("it is large");
        assert!(text.contains("151500 MB and more, since the length"), "{text}");
        assert_eq!(Expected::default().warning(Path::new("/")), None);
        let endless = Expected { rows: u64::MAX, output_tok: u64::MAX, ..large };
        assert_eq!(endless.bytes(), u64::MAX);
    }
}
