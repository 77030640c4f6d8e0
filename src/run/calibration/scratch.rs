//! A folder that is gone when its calibration is.

use std::path::PathBuf;

use crate::report::Folder;
use crate::run::error::RunError;

/// A folder for as long as a calibration lasts, where nobody asked to keep it.
#[derive(Debug)]
pub struct Scratch {
    folder: Folder,
}

impl Scratch {
    /// Makes one among the system's temporary files.
    pub fn make() -> Result<Self, RunError> {
        let name = format!("underfire-calibration-{}", std::process::id());
        let parent = std::env::temp_dir();
        for number in 0..1_000 {
            let path: PathBuf = parent.join(format!("{name}-{number}"));
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(Self { folder: Folder::at(&path) }),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    let what = format!("cannot make a folder in {}", parent.display());
                    return Err(RunError::System { what, source: error });
                }
            }
        }
        Err(RunError::Settings(format!("{} is full of unfinished calibrations", parent.display())))
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Folder {
        &self.folder
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Left behind, it is only a few files in a folder for such.
        let _ = std::fs::remove_dir_all(self.folder.path());
    }
}
