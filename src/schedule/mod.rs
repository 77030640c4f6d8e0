//! From a trace to an ordered plan: which rows are sent, and when each is due.
//!
//! Pure: rows in, [`Planned`] rows out, in due order, one at a time, in flat memory. The order in
//! which the shaping options act is fixed: window, speed, gap cap, limit, duration (rows that the
//! format marks as failed were dropped, and rows sorted, by [`crate::trace::read`]). All times are
//! integer nanoseconds: the same trace and [`Shape`] give the same plan, byte for byte, everywhere.
//!
//! A later turn with a think time has no due time in a plan, but the pause after which it follows
//! ([`PlanFacts::think_rows`] counts them). Deliberately absent: the clock, and any knowledge of how a
//! request went; what a finished request decides is decided in [`crate::replay`].

mod clip;
mod csv;
mod facts;
pub mod fidelity;
mod pass;
mod plan;
pub mod rate;
mod recent;
mod shape;

pub use self::clip::ServerLength;
pub use self::csv::{PLAN_COLUMNS, PlanWriteError, write_plan};
pub use self::facts::{End, PlanFacts};
pub use self::plan::{Plan, plan};
pub use self::recent::RecentSessions;
pub use self::shape::Shape;
pub use crate::trace::{Fnv, OutputSum};

use crate::trace::Request;
use crate::units::Nanos;

/// A row that will be sent.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Position in the plan, from 0. The row's own number is `request.row`.
    pub index: u64,
    /// Offset from `t0` at which the request leaves; `None` where a finished request decides
    /// (closed loop, a later turn with think time).
    pub due: Option<Nanos>,
    /// What is asked, with lengths as they will be sent.
    pub request: Request,
}

#[cfg(test)]
mod tests;
