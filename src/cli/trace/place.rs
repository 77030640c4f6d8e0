//! Where a trace is written to: a file, or stdout.
//!
//! The file is written beside its place and moved there when it is whole, so that what failed leaves
//! nothing that looks like a trace.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// A place for a trace.
pub(super) struct Place<'a> {
    /// What it is made of, which must not be written over.
    pub(super) source: &'a Path,
    /// The file, or `-`.
    pub(super) out: &'a Path,
    /// Replace the file where it exists.
    pub(super) force: bool,
}

impl Place<'_> {
    /// Has it written; the number of rows, where it is a file. A closed pipe is no error.
    pub(super) fn save(
        &self,
        write: impl FnOnce(&mut dyn Write) -> anyhow::Result<u64>,
    ) -> anyhow::Result<Option<u64>> {
        if self.out == Path::new("-") {
            let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
            let written = write(&mut out).and_then(|_| Ok(out.flush()?));
            return match written {
                Err(error) if !is_closed_pipe(&error) => Err(error),
                _ => Ok(None),
            };
        }
        self.check()?;
        let failed = || format!("failed to write {}", self.out.display());
        let mut unfinished = self.out.as_os_str().to_owned();
        unfinished.push(".part");
        let unfinished = PathBuf::from(unfinished);
        let file = File::create(&unfinished).with_context(failed)?;
        let mut out = BufWriter::with_capacity(1 << 16, file);
        let rows = match write(&mut out).and_then(|rows| Ok(out.flush().map(|()| rows)?)) {
            Ok(rows) => rows,
            Err(error) => {
                // What is left of it is of no use; why it failed is what matters.
                let _ = std::fs::remove_file(&unfinished);
                return Err(error);
            }
        };
        std::fs::rename(&unfinished, self.out).with_context(failed)?;
        Ok(Some(rows))
    }

    fn check(&self) -> anyhow::Result<()> {
        if !self.out.exists() {
            return Ok(());
        }
        let same = |path: &Path| path.canonicalize().ok();
        if same(self.out) == same(self.source) {
            bail!("{} is the source itself\nhint: give another file", self.out.display());
        }
        if !self.force {
            bail!("{} exists\nhint: --force replaces it", self.out.display());
        }
        Ok(())
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe)
    })
}
