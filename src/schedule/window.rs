//! The window of trace time, cut by the start of sessions.
//!
//! A session is kept or left whole: cut by row, a conversation would lose its beginning. Rows come
//! in time order, so the first row of a session is its start. Names of sessions are kept as far as the
//! window needs them.

use std::collections::HashSet;
use std::sync::Arc;

use crate::trace::Request;
use crate::units::Nanos;

/// Which rows belong to the window.
#[derive(Debug)]
pub(super) struct Window {
    from: Option<Nanos>,
    to: Option<Nanos>,
    /// Sessions that started before `from`.
    left: HashSet<Arc<str>>,
    /// Sessions that started inside; filled only where there is a `to` they can outlive.
    kept: HashSet<Arc<str>>,
}

impl Window {
    pub(super) fn new(from: Option<Nanos>, to: Option<Nanos>) -> Self {
        Self { from, to, left: HashSet::new(), kept: HashSet::new() }
    }

    /// Whether the row's session started inside. A row without one is a session of its own.
    pub(super) fn keeps(&mut self, request: &Request) -> bool {
        let early = self.from.is_some_and(|from| request.at < from);
        let late = self.to.is_some_and(|to| request.at >= to);
        let Some(session) = &request.session else { return !early && !late };
        if early {
            self.left.insert(Arc::clone(session));
            return false;
        }
        if self.left.contains(session) {
            return false;
        }
        if late {
            return self.kept.contains(session);
        }
        if self.to.is_some() {
            self.kept.insert(Arc::clone(session));
        }
        true
    }

    /// Whether this row and all later ones are outside: past `to`, and no kept session can go on.
    pub(super) fn is_over(&self, request: &Request) -> bool {
        self.to.is_some_and(|to| request.at >= to) && self.kept.is_empty()
    }
}
