//! A file that is read whole, up to a limit.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The bytes of a file; `None` where they are more than `limit_bytes`.
pub(super) fn read(path: &Path, limit_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit_bytes + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit_bytes).then_some(bytes))
}
