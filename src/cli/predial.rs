//! What came of connections dialled before `t0`.

use serde_json::{Value, json};

use crate::client::Dialled;
use crate::metrics::Percentile;
use crate::units::Nanos;

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
