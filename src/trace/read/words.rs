//! Names that many rows share, held once.
//!
//! A file has few classes and models, and their rows share one text each.

use std::sync::Arc;

/// Different names that are remembered; a file with more of them only shares less.
const LIMIT: usize = 64;

/// The names met so far.
#[derive(Default)]
pub(super) struct Words {
    known: Vec<Arc<str>>,
}

impl Words {
    /// The shared text of `name`.
    pub(super) fn shared(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.known.iter().find(|known| ***known == *name) {
            return Arc::clone(known);
        }
        let new: Arc<str> = name.into();
        if self.known.len() < LIMIT {
            self.known.push(Arc::clone(&new));
        }
        new
    }
}
