//! The run folder: where a run's files go, and the promise that none overwrites another's.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Folders are made here when `--out` names none.
const RESULTS: &str = "results";
/// Any of these shows that a folder holds a run.
const MARKS_OF_A_RUN: [&str; 6] =
    ["requests.csv", "run.json", "summary.csv", "intervals.csv", "timeline.csv", "chunks.csv"];
/// Longest name of a run in a folder's name.
const NAME_LIMIT: usize = 64;
/// Runs of one name in one second.
const SAME_NAME_LIMIT: u32 = 1_000;

/// Why there is no folder for the run.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// `--out` names a folder with a run in it.
    #[error("{} already holds a run (it has a {file})\nhint: choose another --out, or move that run away", path.display())]
    HoldsRun {
        /// The folder.
        path: PathBuf,
        /// The file that shows it.
        file: &'static str,
    },
    /// `--out` names something else.
    #[error("{} is not a folder", path.display())]
    NotAFolder {
        /// What it names.
        path: PathBuf,
    },
    /// Every name is taken.
    #[error("{} and {SAME_NAME_LIMIT} more of that name exist already", path.display())]
    Crowded {
        /// The first name tried.
        path: PathBuf,
    },
    /// The folder cannot be made or read.
    #[error("failed to create the run folder {}: {source}", path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A folder that belongs to this run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes the folder of a run: exactly `out`, or `results/<name>-<utc_compact>/`, numbered on from
    /// `-2` where that exists.
    pub fn create(out: Option<&Path>, name: &str, utc_compact: &str) -> Result<Self, FolderError> {
        match out {
            Some(path) => Self::take(path),
            None => Self::make(Path::new(RESULTS), name, utc_compact),
        }
    }

    /// A folder that is there already.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Whether `out` may become the folder of a run. Makes nothing.
    pub fn check(out: &Path) -> Result<(), FolderError> {
        let path = out.to_owned();
        if path.exists() && !path.is_dir() {
            return Err(FolderError::NotAFolder { path });
        }
        // `symlink_metadata` sees a dangling link too, which creating a file would follow.
        let holds = |file: &&str| path.join(file).symlink_metadata().is_ok();
        match MARKS_OF_A_RUN.into_iter().find(holds) {
            Some(file) => Err(FolderError::HoldsRun { path, file }),
            None => Ok(()),
        }
    }

    fn take(path: &Path) -> Result<Self, FolderError> {
        Self::check(path)?;
        let path = path.to_owned();
        match fs::create_dir_all(&path) {
            Ok(()) => Ok(Self { path }),
            Err(source) => Err(FolderError::Io { path, source }),
        }
    }

    fn make(parent: &Path, name: &str, utc_compact: &str) -> Result<Self, FolderError> {
        fs::create_dir_all(parent)
            .map_err(|source| FolderError::Io { path: parent.to_owned(), source })?;
        let first = format!("{}-{utc_compact}", plain_name(name));
        for number in 1..=SAME_NAME_LIMIT {
            let path = parent.join(match number {
                1 => first.clone(),
                _ => format!("{first}-{number}"),
            });
            // Making it is the test for it: two runs that start at once get two folders.
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(FolderError::Io { path, source }),
            }
        }
        Err(FolderError::Crowded { path: parent.join(first) })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where a file in it is.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

/// A name that is safe in a folder's name on every system: letters, digits, `.`, `_` and `-`.
fn plain_name(name: &str) -> String {
    let mut plain = String::new();
    for c in name.chars() {
        let c = if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') { c } else { '-' };
        if !(c == '-' && plain.ends_with('-')) && plain.len() < NAME_LIMIT {
            plain.push(c);
        }
    }
    match plain.trim_matches(['-', '.']) {
        "" => "run".to_owned(),
        trimmed => trimmed.to_owned(),
    }
}

/// A file of the run cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("failed to write {}: {source}", path.display())]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// Writes a file whole or not at all: under a temporary name beside it, then renamed.
pub fn replace_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), WriteError> {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    let written = fs::File::create(&temporary)
        .and_then(|file| {
            let mut out = io::BufWriter::new(file);
            write(&mut out)?;
            out.flush()
        })
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The first error is the one worth telling.
        let _ = fs::remove_file(&temporary);
    }
    written.map_err(|source| WriteError { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_number_on_when_taken() {
        let parent = tempfile::tempdir().expect("a folder");
        let results = parent.path().join("a/results");
        let names: Vec<String> = (0..3)
            .map(|_| {
                let folder = Folder::make(&results, "chat", "20261130T120000Z").expect("a folder");
                folder.path().file_name().expect("a name").to_string_lossy().into_owned()
            })
            .collect();
        let base = "chat-20261130T120000Z";
        assert_eq!(names, [base.to_owned(), format!("{base}-2"), format!("{base}-3")]);
    }

    #[test]
    fn names_are_plain() {
        let check = |name: &str, wanted: &str| assert_eq!(plain_name(name), wanted, "{name}");
        check("chat", "chat");
        check("../../etc/passwd", "etc-passwd");
        check("a b/ü:c", "a-b-c");
        check("", "run");
        check("..", "run");
        check("v1.5_x", "v1.5_x");
        check(&"x".repeat(200), &"x".repeat(NAME_LIMIT));
    }

    #[test]
    fn a_folder_with_a_run_is_refused_and_untouched() {
        let parent = tempfile::tempdir().expect("a folder");
        let out = parent.path().join("deep/run");
        let folder = Folder::create(Some(&out), "x", "y").expect("parents are made");
        assert_eq!(folder.path(), out);
        fs::write(folder.file("notes.txt"), "mine").expect("a file");
        Folder::create(Some(&out), "x", "y").expect("other files do no harm");
        for file in MARKS_OF_A_RUN {
            fs::write(folder.file(file), "").expect("a file");
            let error = Folder::create(Some(&out), "x", "y").expect_err("it holds a run");
            let text = error.to_string();
            assert!(text.contains("already holds a run") && text.contains("--out"), "{text}");
            fs::remove_file(folder.file(file)).expect("a file");
        }
        let error = Folder::create(Some(&folder.file("notes.txt")), "x", "y").expect_err("a file");
        assert!(error.to_string().contains("is not a folder"), "{error}");
    }

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        let parent = tempfile::tempdir().expect("a folder");
        let path = parent.path().join("run.json");
        replace_file(&path, |out| out.write_all(b"one")).expect("space");
        let failed = replace_file(&path, |out| {
            out.write_all(b"tw")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        let text = failed.expect_err("no space").to_string();
        assert!(text.contains("failed to write ") && text.contains("run.json: "), "{text}");
        assert_eq!(fs::read_to_string(&path).expect("the file"), "one");
        assert_eq!(fs::read_dir(parent.path()).expect("a folder").count(), 1);
    }
}
