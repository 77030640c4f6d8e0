//! What decides when rows leave: the open loop, a closed one, and the open one with a cap.

use crate::units::Nanos;

/// Slots that are first free later than this find their connections when they need them.
const PREDIAL_SPAN: Nanos = Nanos::from_secs(10);

/// What decides when rows leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Each at its own time.
    Open,
    /// So many at a time, none due at or after `until`.
    Closed {
        /// Requests in flight.
        slots: usize,
        /// The first ones leave one after the other over this time.
        ramp: Nanos,
        /// End of the run, as an offset from `t0`.
        until: Nanos,
    },
    /// Each at its own time, or as soon after it as fewer than `slots` are in flight.
    Capped {
        /// Requests in flight.
        slots: usize,
        /// When the plan's last row is due, where that is known.
        last_due: Option<Nanos>,
    },
}

impl Mode {
    /// When each slot of a closed loop that worker `index` of `workers` has is first free.
    pub(crate) fn first_free(
        slots: usize,
        ramp: Nanos,
        workers: usize,
        index: usize,
    ) -> impl Iterator<Item = Nanos> {
        (index..slots).step_by(workers.max(1)).map(move |slot| {
            let share = u128::from(ramp.0) * slot as u128 / slots as u128;
            Nanos(u64::try_from(share).unwrap_or(u64::MAX))
        })
    }

    /// Connections to dial before `t0`: as many as were asked for; else in a closed loop one a slot, so that
    /// its first rows do not measure how fast a server takes connections.
    #[must_use]
    pub fn predial(self, asked: Option<u32>, rows: Option<u64>, workers: usize) -> usize {
        let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        match (asked, self) {
            (Some(asked), _) => size(asked.into()),
            (None, Self::Closed { slots, ramp, .. }) => {
                let soon = Self::first_free(slots, ramp, 1, 0);
                let soon = soon.take_while(|free| *free <= PREDIAL_SPAN).count();
                // Any worker may be the one that takes the rows.
                soon.min(rows.map_or(usize::MAX, size).saturating_mul(workers))
            }
            (None, Self::Open | Self::Capped { .. }) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_loop_dials_what_it_soon_needs() {
        let ramp = |s| Mode::Closed { slots: 40, ramp: Nanos::from_secs(s), until: Nanos::MAX };
        assert_eq!(ramp(0).predial(None, None, 1), 40);
        assert_eq!(ramp(0).predial(None, Some(7), 1), 7, "no more than rows can use");
        assert_eq!(ramp(0).predial(None, Some(7), 2), 14);
        assert_eq!(ramp(40).predial(None, None, 1), 11, "those of the first ten seconds");
        assert_eq!(ramp(0).predial(Some(3), Some(7), 1), 3);
        assert_eq!(ramp(0).predial(Some(0), None, 1), 0);
        assert_eq!(Mode::Open.predial(None, Some(7), 1), 0);
        assert_eq!(Mode::Open.predial(Some(9), Some(7), 1), 9);
    }
}
