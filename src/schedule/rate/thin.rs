//! Leaves out sessions, whole ones, by their names: the less are kept, the smaller a part of the same.

use super::chance::{Purpose, key_of, uniform};
use crate::trace::Request;

/// Keeps a share of the sessions; a row without one is a session of its own.
pub fn thinned<E>(
    rows: impl Iterator<Item = Result<Request, E>>,
    share: f64,
    seed: u64,
) -> impl Iterator<Item = Result<Request, E>> {
    rows.filter(move |row| {
        row.as_ref().map_or(true, |row| uniform(seed, Purpose::Thin, key_of(row)) < share)
    })
}
