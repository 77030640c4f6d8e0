//! The model server as a discrete-event machine: who has a slot, and when each token is due.
//!
//! Times go in, events come out. Absent: any clock, any socket, any text; see [`super::settings`] for
//! the model itself. Events bear the instant at which the model has them, however late they are
//! collected, so a driver that oversleeps delays the tokens it hands out but never the model.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use super::draw::Jitter;
use super::settings::Settings;
use crate::units::Nanos;

/// What happens to a request, by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Its first token is there.
    FirstToken {
        /// Whose.
        id: u64,
        /// When, by the model.
        at: Nanos,
        /// How long it had queued for a slot before its prefill.
        queued: Nanos,
    },
    /// A later token is there.
    Token {
        /// Whose.
        id: u64,
        /// When, by the model.
        at: Nanos,
    },
    /// That was its last token; the slot is free.
    Finished {
        /// Whose.
        id: u64,
        /// When, by the model.
        at: Nanos,
    },
}

/// Why a request was not taken: the queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the queue is full: {queued} requests are waiting, and `max_queued` is {limit}")]
pub struct QueueFull {
    /// How many are waiting.
    pub queued: usize,
    /// How many may.
    pub limit: usize,
}

/// A request from its admission to its last token.
struct Stream {
    prompt_tok: u64,
    output_tok: u64,
    sent_tok: u64,
    admitted: Nanos,
    /// When it got its slot; `None` while it queues.
    started: Option<Nanos>,
    jitter: Option<Jitter>,
}

/// When a stream's next token is due. Equal instants come in the order in which they were planned.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Nanos,
    order: u64,
    id: u64,
}

/// The machine.
pub struct Engine {
    settings: Settings,
    streams: HashMap<u64, Stream>,
    /// One entry per running stream, and those of cancelled ones until they come to the top.
    due: BinaryHeap<Reverse<Due>>,
    /// Ids that wait for a slot, and those of cancelled ones until they come to the front.
    queue: VecDeque<u64>,
    running: usize,
    planned: u64,
}

impl Engine {
    /// An idle server. The settings must have passed [`Settings::check`].
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            streams: HashMap::new(),
            due: BinaryHeap::new(),
            queue: VecDeque::new(),
            running: 0,
            planned: 0,
        }
    }

    /// Streams that hold a slot.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running
    }

    /// Requests that wait for one.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.streams.len() - self.running
    }

    /// Takes a request at `now`: it starts at once, or queues, or is refused.
    ///
    /// `id` is also the request's number in the draws of chance and must never have been used before.
    /// Call [`Self::advance`] to `now` first, so that slots freed by then are free.
    pub fn admit(
        &mut self,
        now: Nanos,
        id: u64,
        prompt_tok: u64,
        output_tok: u64,
    ) -> Result<(), QueueFull> {
        debug_assert!(self.next_event().is_none_or(|next| next > now), "advance before admitting");
        debug_assert!(output_tok > 0, "an answer has at least one token");
        let full = self.running >= self.settings.max_running;
        if full && self.queued() >= self.settings.max_queued {
            let limit = self.settings.max_queued;
            return Err(QueueFull { queued: self.queued(), limit });
        }
        let jitter = Jitter::new(self.settings.seed, id, self.settings.jitter);
        let stream =
            Stream { prompt_tok, output_tok, sent_tok: 0, admitted: now, started: None, jitter };
        let before = self.streams.insert(id, stream);
        debug_assert!(before.is_none(), "ids are used once");
        if full {
            self.queue.push_back(id);
        } else {
            self.start(now, id);
        }
        Ok(())
    }

    /// When the next event is due.
    #[must_use]
    pub fn next_event(&self) -> Option<Nanos> {
        self.due.peek().map(|Reverse(due)| due.at)
    }

    /// Gives out every event up to and including `now`, in order.
    pub fn advance(&mut self, now: Nanos, each: &mut impl FnMut(Event)) {
        loop {
            let Some(mut top) = self.due.peek_mut() else { break };
            let Due { at, id, .. } = top.0;
            if at > now {
                break;
            }
            let Some(stream) = self.streams.get_mut(&id) else {
                PeekMut::pop(top);
                continue;
            };
            stream.sent_tok += 1;
            each(if stream.sent_tok == 1 {
                let queued = stream.started.unwrap_or(at).since(stream.admitted);
                Event::FirstToken { id, at, queued }
            } else {
                Event::Token { id, at }
            });
            if stream.sent_tok < stream.output_tok {
                let step = self.settings.step(self.running);
                let step = stream.jitter.as_mut().map_or(step, |jitter| jitter.apply(step));
                self.planned += 1;
                // In place: the heap sifts once instead of twice.
                top.0 = Due { at: at + step, order: self.planned, id };
            } else {
                PeekMut::pop(top);
                self.streams.remove(&id);
                each(Event::Finished { id, at });
                self.running -= 1;
                self.start_queued(at);
            }
        }
        self.drop_stale();
    }

    /// The client went away: frees the slot, or the place in the queue, at once. Returns how long the
    /// request had queued; `None` when it is not here (any more).
    pub fn cancel(&mut self, now: Nanos, id: u64) -> Option<Nanos> {
        let stream = self.streams.remove(&id)?;
        let queued = stream.started.unwrap_or(now).since(stream.admitted);
        if stream.started.is_some() {
            self.running -= 1;
            self.start_queued(now);
            self.drop_stale();
        } else if self.queue.len() > 2 * self.queued() + 64 {
            // Its entry in the queue goes when it comes to the front, or when most entries are dead.
            self.queue.retain(|id| self.streams.contains_key(id));
        }
        Some(queued)
    }

    fn start_queued(&mut self, now: Nanos) {
        while self.running < self.settings.max_running {
            let Some(id) = self.queue.pop_front() else { return };
            if self.streams.contains_key(&id) {
                self.start(now, id);
            }
        }
    }

    fn start(&mut self, now: Nanos, id: u64) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        self.running += 1;
        stream.started = Some(now);
        let prefill = self.settings.prefill(stream.prompt_tok);
        let prefill = stream.jitter.as_mut().map_or(prefill, |jitter| jitter.apply(prefill));
        self.planned += 1;
        self.due.push(Reverse(Due { at: now + prefill, order: self.planned, id }));
    }

    /// Keeps the top of the heap a living stream's, so that [`Self::next_event`] is true.
    fn drop_stale(&mut self) {
        while let Some(top) = self.due.peek_mut() {
            if self.streams.contains_key(&top.0.id) {
                return;
            }
            PeekMut::pop(top);
        }
    }
}

#[cfg(test)]
mod tests;
