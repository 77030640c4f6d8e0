//! Sends every session several times at once, and a share of them once more where the factor is broken.

use super::chance::{Purpose, key_of, uniform};
use crate::trace::Request;

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
