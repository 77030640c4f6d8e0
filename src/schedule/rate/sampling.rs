//! Fewer sessions, or more of them: a share is left out, or each is sent several times at once.
//!
//! Which ones hangs on the seed and their names: the less are kept, the smaller a part of the same, and the
//! order of asking changes nothing.

use crate::random::uniform_of;
use crate::trace::Request;
use crate::trace::ids::of_name;

/// What a number is drawn for; the value is part of the draw and must never change.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// Whether a session stays.
    Thin = 1,
    /// Whether it gets one copy more.
    Clone = 2,
    /// When a row that was rounded came.
    Dequantise = 3,
    /// The gap before a row without a time.
    Pace = 4,
}

/// Uniform on the open interval (0, 1).
pub(super) fn uniform(seed: u64, purpose: Purpose, key: u64) -> f64 {
    uniform_of(seed, purpose as u64, key)
}

/// What stays or goes together: a session, else the row alone.
fn key_of(request: &Request) -> u64 {
    request.session.as_ref().map_or(request.row, |session| of_name(session))
}

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

/// Rows and their copies, each copy right after its row. `first_copy` is the first row number that the
/// source does not use; copies are numbered from there on, and belong to sessions of their own.
pub fn cloned<E>(
    rows: impl Iterator<Item = Result<Request, E>>,
    factor: f64,
    seed: u64,
    first_copy: u64,
) -> impl Iterator<Item = Result<Request, E>> {
    let mut next_copy = first_copy;
    rows.flat_map(move |row| {
        let mut made = Vec::with_capacity(1);
        if let Ok(original) = &row {
            let broken = uniform(seed, Purpose::Clone, key_of(original)) < factor.fract();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "at most 10^6"
            )]
            let copies = (factor as u64).saturating_sub(1) + u64::from(broken);
            for copy in 1..=copies {
                made.push(Ok(copy_of(original, copy, &mut next_copy)));
            }
        }
        made.insert(0, row);
        made
    })
}

/// A copy with a number of its own; the session, too, gets one.
pub(super) fn copy_of(original: &Request, copy: u64, next_copy: &mut u64) -> Request {
    let row = *next_copy;
    *next_copy += 1;
    Request {
        row,
        source_row: Some(original.source_row.unwrap_or(original.row)),
        session: original.session.as_ref().map(|name| format!("{name}~{copy}").into()),
        ..original.clone()
    }
}
