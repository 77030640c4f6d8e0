//! Connections dialled before `t0`: how many, and what came of it.

use serde_json::{Value, json};

use crate::client::Dialled;
use crate::metrics::Percentile;
use crate::replay::Mode;
use crate::units::Nanos;

/// Slots that are first free later than this find their connections when they need them.
const SPAN: Nanos = Nanos::from_secs(10);

/// Connections to dial: as many as asked for; else in a closed loop one a slot, so that its first rows do
/// not measure how fast a server takes connections.
pub(super) fn count(asked: Option<u32>, mode: Mode, rows: Option<u64>, workers: usize) -> usize {
    let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    match (asked, mode) {
        (Some(asked), _) => size(asked.into()),
        (None, Mode::Closed { slots, ramp, .. }) => {
            let soon = Mode::first_free(slots, ramp, 1, 0).take_while(|free| *free <= SPAN);
            // Any worker may be the one that takes the rows.
            soon.count().min(rows.map_or(usize::MAX, size).saturating_mul(workers))
        }
        (None, Mode::Open | Mode::Capped { .. }) => 0,
    }
}

/// What there is to say when some were not made.
pub(super) fn warning(dialled: &Dialled) -> Option<String> {
    let (failed, all) = (dialled.failed, dialled.failed + dialled.times.len() as u64);
    let reason = dialled.first_error.as_deref().unwrap_or("no reason");
    (failed > 0).then(|| {
        format!(
            "{failed} of {all} connections could not be made before t0, so requests dial them again: \
             {reason}"
        )
    })
}

/// The same for the manifest, with what the connections took.
pub(super) fn manifest(dialled: &Dialled) -> Value {
    let mut times = dialled.times.clone();
    times.sort_unstable();
    let at = |rank: u64| {
        let place = usize::try_from(rank.saturating_sub(1)).unwrap_or(usize::MAX);
        times.get(place).copied().map(Nanos::as_millis_f64)
    };
    let n = times.len() as u64;
    json!({
        "dialled": n,
        "failed": dialled.failed,
        "first_error": dialled.first_error,
        "connect_ms": {
            "p50": at(Percentile::P50.rank(n)),
            "p99": at(Percentile::P99.rank(n)),
            "max": at(n),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOSED: Mode = Mode::Closed { slots: 40, ramp: Nanos::ZERO, until: Nanos::MAX };

    #[test]
    fn a_closed_loop_dials_what_it_soon_needs() {
        let ramp = |s| Mode::Closed { slots: 40, ramp: Nanos::from_secs(s), until: Nanos::MAX };
        assert_eq!(count(None, CLOSED, None, 1), 40);
        assert_eq!(count(None, CLOSED, Some(7), 1), 7, "no more than rows can use");
        assert_eq!(count(None, CLOSED, Some(7), 2), 14);
        assert_eq!(count(None, ramp(40), None, 1), 11, "those of the first ten seconds");
        assert_eq!(count(Some(3), CLOSED, Some(7), 1), 3);
        assert_eq!(count(Some(0), CLOSED, None, 1), 0);
        assert_eq!(count(None, Mode::Open, Some(7), 1), 0);
        assert_eq!(count(Some(9), Mode::Open, Some(7), 1), 9);
    }

    #[test]
    fn dial_times_and_failures_are_told() {
        let mut dialled = Dialled::default();
        assert_eq!(manifest(&dialled)["connect_ms"]["max"], Value::Null);
        assert_eq!(warning(&dialled), None);
        let first_error = Some("refused".to_owned());
        let times = (1..=200).rev().map(Nanos::from_millis).collect();
        dialled.add(Dialled { times, failed: 2, first_error });
        dialled.add(Dialled {
            failed: 1,
            first_error: Some("later".to_owned()),
            ..dialled.clone()
        });
        let told = manifest(&dialled);
        assert_eq!(told["connect_ms"], json!({ "p50": 100.0, "p99": 198.0, "max": 200.0 }));
        let words = warning(&dialled).expect("some failed");
        assert!(words.starts_with("3 of 403 ") && words.ends_with(": refused"), "{words}");
    }
}
