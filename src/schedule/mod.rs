//! From a trace to an ordered plan: which rows are sent, and when each is due.
//!
//! Pure: rows in, [`Planned`] rows out, in due order, one at a time. The order in which the shaping
//! options act is fixed: window, speed, gap cap, limit, duration (rows that the format marks as
//! failed were dropped, and rows sorted, by [`crate::trace::read`]).

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
