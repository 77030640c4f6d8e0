//! Numbers the turns of sessions whose rows do not say them, in time order.
//!
//! Memory grows with the number of sessions, not with that of rows.

use std::collections::HashMap;
use std::sync::Arc;

use super::error::TraceError;
use crate::trace::Request;

/// Rows with their turns.
pub(super) struct Turns<I> {
    rows: I,
    last: HashMap<Arc<str>, u32>,
}

impl<I> Turns<I> {
    pub(super) fn new(rows: I) -> Self {
        Self { rows, last: HashMap::new() }
    }
}

impl<I: Iterator<Item = Result<Request, TraceError>>> Iterator for Turns<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        let mut item = self.rows.next()?;
        if let Ok(request) = &mut item
            && request.turn.is_none()
            && let Some(session) = &request.session
        {
            let last = self.last.entry(Arc::clone(session)).or_default();
            *last = last.saturating_add(1);
            request.turn = Some(*last);
        }
        Some(item)
    }
}
