//! Where the windows of a watch go: a line or an object to stdout, a row to the file, the last second to
//! the terminal, and notes to stderr.
//!
//! Deliberately absent: figures, and when they are taken.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context;
use indicatif::ProgressBar;

use super::console::{plain, say, try_print};
use super::progress::live_line;
use super::watch_words::{Told, watch_columns};
use crate::clock::Anchor;
use crate::columns::{PLAIN, WriteCell, write_cells};
use crate::report::{LineFile, RecorderError};
use crate::telemetry::Window;
use crate::telemetry::remaining::{Outlook, Unknown};
use crate::units::Nanos;

/// Tells.
pub(super) struct WatchOutput {
    json: bool,
    anchor: Anchor,
    start: Nanos,
    file: Option<LineFile>,
    live: Option<ProgressBar>,
    /// Said since the last window.
    notes: Vec<String>,
    /// What is said once.
    told: BTreeSet<String>,
}

impl WatchOutput {
    pub(super) fn new(json: bool) -> Self {
        let live = if json { None } else { live_line() };
        Self {
            json,
            anchor: Anchor::now(),
            start: Nanos::ZERO,
            file: None,
            live,
            notes: Vec::new(),
            told: BTreeSet::new(),
        }
    }

    /// Windows are rows of `watch.csv` too; refuses a folder that has one.
    pub(super) fn write_into(&mut self, folder: &Path) -> anyhow::Result<()> {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("failed to make the folder {}", folder.display()))?;
        self.file = Some(LineFile::create(folder.join("watch.csv"), &watch_columns())?);
        Ok(())
    }

    /// Times are told from here.
    pub(super) fn starts(&mut self, start: Nanos) {
        self.start = start;
    }

    /// Tells a window that ended at `end`; false where nobody listens any more.
    pub(super) fn tell(
        &mut self,
        end: Nanos,
        window: Option<&Window>,
        outlook: Option<Result<Outlook, Unknown>>,
    ) -> anyhow::Result<bool> {
        let notes = std::mem::take(&mut self.notes);
        let (t, utc) = (end.since(self.start), self.anchor.utc_at(end));
        let told = Told { t, utc, window, outlook, notes: &notes };
        // Each of the two gets the window, whatever keeps the other from it.
        let kept = self.file.as_mut().map_or(Ok(()), |file| keep(file, &told));
        let text = if self.json {
            told.json()
        } else {
            let end = told.end_line().map_or_else(String::new, |line| format!("{line}\n"));
            format!("{}\n{end}", told.line())
        };
        let listens = self.quietly(|| try_print(&text)).context("failed to write to stdout")?;
        kept?;
        Ok(listens)
    }

    /// The last second, on a terminal.
    pub(super) fn show(&self, window: &Window) {
        let Some(live) = &self.live else { return };
        let (t, utc) = (window.to.since(self.start), self.anchor.utc_at(window.to));
        let told = Told { t, utc, window: Some(window), outlook: None, notes: &[] };
        live.set_message(plain(&told.line()).into_owned());
    }

    /// Says something, which stands with the next window too.
    pub(super) fn note(&mut self, words: String) {
        self.quietly(|| say(&format!("note: {words}")));
        self.notes.push(words);
    }

    /// Says something the first time; later it only stands with the window, where it is `of_window`.
    pub(super) fn note_once(&mut self, words: String, of_window: bool) {
        if self.told.insert(words.clone()) {
            self.note(words);
        } else if of_window {
            self.notes.push(words);
        }
    }

    /// Clears the terminal of what was only for now.
    pub(super) fn end(&self) {
        if let Some(live) = &self.live {
            live.finish_and_clear();
        }
    }

    /// Does something with the live line out of the way.
    fn quietly<T>(&self, speak: impl FnOnce() -> T) -> T {
        match &self.live {
            Some(live) => live.suspend(speak),
            None => speak(),
        }
    }
}

/// A row, handed to the system at once; an error where nobody would find it.
fn keep(file: &mut LineFile, told: &Told<'_>) -> Result<(), RecorderError> {
    file.write(|line| write_cells(&told.row(), line, WriteCell::<PLAIN>::write))?;
    file.flush()?;
    file.check_is_there()
}
