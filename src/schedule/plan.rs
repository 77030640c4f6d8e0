//! The plan itself: an iterator that turns rows of a trace into rows with a due time.
//!
//! Streaming: one row is held at a time. It stops reading as soon as no later row can be planned, so
//! that an endless source ends, and a pipe is not waited for.

use super::clip::{LengthCheck, clip_input, clip_output, total_tok};
use super::facts::{End, Tally};
use super::fidelity::Fidelity;
use super::pass::{Later, Pass};
use super::recent::RecentSessions;
use super::shape::{Shape, Window};
use super::{PlanFacts, Planned};
use crate::trace::Request;
use crate::units::Nanos;

/// Plans the rows of a trace, which come in time order.
pub fn plan<I, E>(rows: I, shape: &Shape) -> Plan<I::IntoIter>
where
    I: IntoIterator<Item = Result<Request, E>>,
{
    // What acts on due times does nothing where there are none.
    let duration = shape.duration.filter(|_| !shape.closed_loop);
    let max_gap = shape.max_gap.filter(|_| !shape.closed_loop);
    Plan {
        rows: rows.into_iter(),
        window: Window::new(shape.from, shape.to),
        tally: Tally::new(shape.limit.is_some() || duration.is_some()),
        pass: Pass::default(),
        later: Later::none(),
        begun: RecentSessions::default(),
        fidelity: None,
        shape: Shape { max_gap, duration, ..shape.clone() },
    }
}

/// Rows with due times, in due order. Errors of the source pass through, each in its place.
#[derive(Debug)]
pub struct Plan<I> {
    rows: I,
    shape: Shape,
    window: Window,
    tally: Tally,
    pass: Pass,
    later: Later<I>,
    /// Sessions with a row in the plan, which a turn can follow; longer after it is due at its own time.
    begun: RecentSessions<()>,
    fidelity: Option<Box<Fidelity>>,
}

/// Where a row falls on the replayed time line.
#[derive(Clone, Copy, Debug)]
struct Step {
    due: Nanos,
    /// Idle time before it that the gap cap takes out.
    removed: Nanos,
    /// It came out of time order, and waits for the row before it.
    is_late: bool,
}

impl<I, E> Iterator for Plan<I>
where
    I: Iterator<Item = Result<Request, E>>,
{
    type Item = Result<Planned, E>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.facts().end == End::Open {
            match self.read() {
                Ok(row) => return Some(row),
                Err(end) if !self.begin_again() => self.tally.end(end),
                Err(_) => {}
            }
        }
        None
    }
}

impl<I, E> Plan<I>
where
    I: Iterator<Item = Result<Request, E>>,
{
    /// The next row of the pass, or what ended it.
    fn read(&mut self) -> Result<Result<Planned, E>, End> {
        if self.shape.limit.is_some_and(|limit| self.pass.rows >= limit) {
            return Err(End::Limit);
        }
        loop {
            let mut request = match self.rows.next() {
                None => return Err(End::Source),
                Some(Err(error)) => return Ok(Err(error)),
                Some(Ok(request)) => request,
            };
            self.pass.take(&mut request);
            if !self.window.keeps(&request) {
                self.tally.facts.left_out += u64::from(self.later.is_empty());
                if self.window.is_over(&request) {
                    return Err(End::Window);
                }
                continue;
            }
            let step = self.step(request.at);
            if self.shape.duration.is_some_and(|duration| step.due >= duration) {
                if self.later.is_empty() {
                    self.tally.cut(request.session.as_ref());
                }
                return Err(End::Duration);
            }
            return Ok(Ok(self.planned(request, step)));
        }
    }
}

impl<I> Plan<I> {
    /// Gathers what is asked and planned as well.
    #[must_use]
    pub fn with_fidelity(mut self) -> Self {
        self.fidelity = Some(Box::default());
        self
    }

    /// What was asked and planned so far, where [`Self::with_fidelity`] asked for it.
    pub fn fidelity(&self) -> Option<&Fidelity> {
        self.fidelity.as_deref()
    }

    /// What the plan amounts to so far; complete once the iterator has ended.
    pub fn facts(&self) -> &PlanFacts {
        &self.tally.facts
    }

    /// The same shape for `count` further passes over the source, end to end.
    #[must_use]
    pub fn repeated(self, count: u64, passes: impl Iterator<Item = I> + Send + 'static) -> Self {
        Self { later: Later::of(count, passes), ..self }
    }

    #[cfg(test)]
    pub(super) fn sessions_held(&self) -> usize {
        self.begun.held()
    }

    /// Starts the next pass, if there is one. One without rows has no use for another.
    fn begin_again(&mut self) -> bool {
        if self.pass.rows == 0 {
            return false;
        }
        let Some(rows) = self.later.next() else { return false };
        self.rows = rows;
        self.window = Window::new(self.shape.from, self.shape.to);
        self.pass = self.pass.after(self.shape.duration);
        self.tally.facts.repeats += 1;
        true
    }

    /// When a row is due: trace time from the window's start, sped up, without the idle time that
    /// the gap cap removed. It never goes back, whatever the source does.
    fn step(&self, at: Nanos) -> Step {
        let from = self.shape.from.unwrap_or(Nanos::ZERO);
        let due = self.shape.speed.shorten(at.since(from)).since(self.pass.removed);
        let gap = due.since(self.pass.last_due);
        let removed = self.shape.max_gap.map_or(Nanos::ZERO, |max| gap.since(max));
        let is_late = due < self.pass.last_due;
        Step { due: due.since(removed).max(self.pass.last_due), removed, is_late }
    }

    /// Whether the row is due after the turn before it. Its pause then becomes that of the replay; a row
    /// with nothing to follow has none, and is due at its own time.
    fn follows(&mut self, request: &mut Request) -> bool {
        let Some(session) = &request.session else { return false };
        let before = self.begun.insert(session, self.tally.facts.rows, ());
        let think = request.think.take().filter(|_| before.is_some());
        request.think = think.map(|think| self.shape.speed.shorten(think));
        request.think.is_some()
    }

    fn planned(&mut self, mut request: Request, step: Step) -> Planned {
        let follows = self.follows(&mut request);
        let step =
            if follows { Step { removed: Nanos::ZERO, is_late: false, ..step } } else { step };
        self.pass.rows += 1;
        self.pass.removed += step.removed;
        let due = (!follows).then(|| self.pass.plan(step.due));
        let due = due.filter(|_| !self.shape.closed_loop);
        if let Some(fidelity) = self.fidelity.as_mut().filter(|_| self.pass.is_first()) {
            fidelity.asked.add(due.map(|_| request.at), &request);
        }
        let facts = &mut self.tally.facts;
        facts.removed += step.removed;
        facts.shortened_gaps += u64::from(step.removed > Nanos::ZERO);
        facts.late_rows += u64::from(step.is_late);
        facts.clipped_input += u64::from(clip_input(&mut request, self.shape.max_input_tok));
        facts.clipped_output += u64::from(clip_output(&mut request, self.shape.max_output_tok));
        if request.output_tok == Some(0) {
            request.output_tok = Some(1);
            facts.raised_output += 1;
        }
        if let Some(length) = self.shape.server_length {
            match length.apply(&mut request) {
                LengthCheck::Fits => {}
                LengthCheck::Clipped => facts.clipped_to_server += 1,
                LengthCheck::TooLong => {
                    facts.too_long += 1;
                    facts.first_too_long.get_or_insert(request.row);
                }
            }
        }
        facts.longest_tok = facts.longest_tok.max(total_tok(&request));
        let planned = Planned { index: facts.rows, due, request };
        self.tally.planned(&planned);
        if let Some(fidelity) = self.fidelity.as_mut().filter(|_| self.pass.is_first()) {
            fidelity.planned.add(due, &planned.request);
        }
        planned
    }
}

impl<I, E> Plan<I>
where
    I: Iterator<Item = Result<Request, E>>,
{
    /// After the iterator has ended: reads on to the end of the source, only to count the sessions
    /// that were cut, the rows left out and the rows cut off. For the pass before a run, and a dry
    /// run; not for an endless source. Stops at the first error of the source.
    pub fn read_rest(&mut self) -> Result<&PlanFacts, E> {
        if self.facts().end == End::Source {
            return Ok(self.facts());
        }
        for request in self.rows.by_ref() {
            let mut request = request?;
            self.pass.take(&mut request);
            if self.window.keeps(&request) {
                self.tally.cut(request.session.as_ref());
            } else {
                self.tally.facts.left_out += 1;
            }
        }
        Ok(&self.tally.facts)
    }
}
