//! Sessions: how many turns they have, and the pauses within them.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;

use super::lengths::Lengths;
use crate::trace::Request;
use crate::units::{NS_PER_MS, Nanos};

/// Sessions that are told apart; beyond it there are no figures.
const LIMIT: usize = 16 << 20;

/// Gathers sessions.
#[derive(Clone, Debug, Default)]
pub(super) struct Sessions {
    open: HashMap<Arc<str>, (u32, Nanos)>,
    rows: u64,
    overflown: bool,
    think: Pauses,
    between: Pauses,
}

/// Pauses, in milliseconds.
#[derive(Clone, Debug, Default)]
struct Pauses(Lengths);

impl Pauses {
    fn add(&mut self, pause: Nanos) {
        self.0.add(u32::try_from(pause.0 / NS_PER_MS).unwrap_or(u32::MAX));
    }

    fn figures(&self) -> Option<PauseFigures> {
        let found = self.0.figures()?;
        let [p10_s, p50_s, p90_s, p99_s] =
            [found.p10, found.p50, found.p90, found.p99].map(|ms| f64::from(ms) / 1e3);
        Some(PauseFigures { p10_s, p50_s, p90_s, p99_s })
    }
}

/// Sessions in figures.
#[derive(Clone, Debug, Serialize)]
pub struct SessionFigures {
    /// Sessions.
    pub sessions: u64,
    /// Rows that belong to one.
    pub rows: u64,
    /// Mean number of turns.
    pub turns_mean: f64,
    /// Median, as are the next percentiles by nearest rank.
    pub turns_p50: u32,
    /// 90th percentile.
    pub turns_p90: u32,
    /// 99th percentile.
    pub turns_p99: u32,
    /// Most turns.
    pub turns_max: u32,
    /// Recorded think times, from the end of a turn to the next.
    pub think: Option<PauseFigures>,
    /// From arrival to arrival of turns that follow one another.
    pub between: Option<PauseFigures>,
}

/// Pauses in figures (whole milliseconds).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[expect(clippy::struct_field_names, reason = "units stand last")]
pub struct PauseFigures {
    /// Nearest rank, as are the next.
    pub p10_s: f64,
    /// Median.
    pub p50_s: f64,
    /// 90th percentile.
    pub p90_s: f64,
    /// 99th percentile.
    pub p99_s: f64,
}

impl Sessions {
    pub(super) fn add(&mut self, request: &Request) {
        let Some(session) = &request.session else { return };
        self.rows += 1;
        if let Some(think) = request.think {
            self.think.add(think);
        }
        if let Some((turns, last)) = self.open.get_mut(session) {
            *turns = turns.saturating_add(1);
            self.between.add(request.at.since(*last));
            *last = request.at;
        } else if self.open.len() < LIMIT {
            self.open.insert(Arc::clone(session), (1, request.at));
        } else {
            self.overflown = true;
        }
    }

    pub(super) fn figures(&self) -> Option<SessionFigures> {
        if self.overflown {
            return None;
        }
        let mut turns = Lengths::default();
        self.open.values().for_each(|(count, _)| turns.add(*count));
        let found = turns.figures()?;
        Some(SessionFigures {
            sessions: self.open.len() as u64,
            rows: self.rows,
            turns_mean: found.mean,
            turns_p50: found.p50,
            turns_p90: found.p90,
            turns_p99: found.p99,
            turns_max: found.max,
            think: self.think.figures(),
            between: self.between.figures(),
        })
    }
}
