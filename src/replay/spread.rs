//! Which of several servers a row goes to: those of a session all to one, so that its cache is of use;
//! the others in turn.
//!
//! A pure function of the row, so that a plan is sent the same way by any number of workers.
//! Deliberately absent: weights, and anything that looks at how the servers do.

use crate::schedule::Planned;

/// The index of the target, of `targets` (at least one).
#[must_use]
pub fn target(planned: &Planned, targets: usize) -> u32 {
    let targets = targets.max(1) as u64;
    let key = match &planned.request.session {
        Some(session) => key(session),
        None => planned.index,
    };
    u32::try_from(key % targets).unwrap_or_default()
}

/// A number for a session: FNV-1a, folded, since its low bits alone follow the last letter too closely.
pub(super) fn key(session: &str) -> u64 {
    let hash = session.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Request;

    fn planned(index: u64, session: Option<&str>) -> Planned {
        let request = Request { session: session.map(Into::into), ..Request::default() };
        Planned { index, due: None, request }
    }

    #[test]
    fn rows_go_in_turn_and_sessions_stay() {
        let in_turn: Vec<u32> = (0..6).map(|index| target(&planned(index, None), 3)).collect();
        assert_eq!(in_turn, [0, 1, 2, 0, 1, 2]);
        let mut counts = [0; 3];
        for session in 0..3000 {
            let name = format!("user-{session}");
            let first = target(&planned(0, Some(&name)), 3);
            assert_eq!(first, target(&planned(17, Some(&name)), 3));
            counts[first as usize] += 1;
        }
        assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");
        assert_eq!(target(&planned(5, Some("x")), 1), 0);
    }
}
