//! The rows of a workload, in time order, as far as they have been drawn.
//!
//! A session's later turns stand at the time of the turn before plus the pause: the earliest at which
//! they can be due, an answer taking no time. So a row is never met after it was due, and the order
//! does not depend on any server.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::arrival::Clock;
use super::class::Class;
use super::draw::{Draws, Purpose};
use super::prefix::PrefixTree;
use super::session::{SessionPlan, pick};
use super::{Stream, Workload};
use crate::trace::{Content, Request};
use crate::units::Nanos;

/// The rows of a workload under a seed.
#[derive(Debug)]
pub(super) struct Rows {
    workload: Arc<Workload>,
    streams: Vec<Progress>,
    later: BTreeMap<(Nanos, usize, u64), Later>,
    row: u64,
    next_id: u64,
}

/// How far a stream of arrivals has come.
#[derive(Debug)]
struct Progress {
    draws: Draws,
    clock: Clock,
    /// The next arrival, and its number.
    at: Nanos,
    number: u64,
    /// By class.
    trees: Vec<PrefixTree>,
}

/// A later turn of a session that goes on.
#[derive(Debug)]
struct Later {
    at: Nanos,
    stream: usize,
    plan: SessionPlan,
    turn: u32,
    class: usize,
    think: Nanos,
    input_tok: u32,
    u_input: f64,
    session: Arc<str>,
    system: Option<Arc<[u64]>>,
}

impl Rows {
    pub(super) fn new(workload: Arc<Workload>, seed: u64) -> Self {
        let start = |(place, stream): (usize, &Stream)| {
            let mut draws = Draws::new(seed, place as u64);
            let mut clock = Clock::default();
            let at = clock.next(&stream.arrival, &mut draws);
            let trees = vec![PrefixTree::default(); stream.classes.len()];
            Progress { draws, clock, at, number: 0, trees }
        };
        let streams = workload.streams.iter().enumerate().map(start).collect();
        let next_id = workload.first_free_id;
        Self { workload, streams, later: BTreeMap::new(), row: 0, next_id }
    }

    /// The stream whose next arrival is the earliest.
    fn earliest(&self) -> Option<usize> {
        let end = self.workload.last_start();
        let open = self.streams.iter().enumerate().filter(|(_, stream)| stream.at < end);
        open.min_by_key(|(_, stream)| stream.at).map(|(place, _)| place)
    }

    fn arrive(&mut self, place: usize) -> Request {
        let workload = Arc::clone(&self.workload);
        let stream = &workload.streams[place];
        let progress = &mut self.streams[place];
        let (at, number, draws) = (progress.at, progress.number, &mut progress.draws);
        progress.number += 1;
        progress.at = progress.clock.next(&stream.arrival, draws).max(at);
        let class_at = match &stream.classes[..] {
            [_] => 0,
            classes => {
                pick(&mut draws.of(Purpose::Class, number), classes.iter().map(|class| class.share))
            }
        };
        let class = &stream.classes[class_at];
        let u_input = draws.of(Purpose::Input, number).uniform();
        let input_tok = class.input.at(u_input);
        let output_tok = class.output.at(u_input, (Purpose::Output, number), draws);
        let mut request = Request { at, input_tok, output_tok, ..request_of(class) };
        if let Some(sessions) = &class.sessions {
            let plan = sessions.plan(number, draws);
            let name = if place == 0 { number.to_string() } else { format!("{place}-{number}") };
            let first = Later {
                at,
                stream: place,
                plan,
                turn: 1,
                class: class_at,
                think: Nanos::ZERO,
                input_tok,
                u_input,
                session: name.into(),
                system: class.prefixes.as_ref().and_then(|prefix| prefix.system(number, draws)),
            };
            return self.turn(first, request);
        }
        if let Some(prefixes) = &class.prefixes {
            request.prefix = if prefixes.has_tree() {
                let tree = &mut progress.trees[class_at];
                tree.next(prefixes, number, input_tok, &mut self.next_id, draws)
            } else {
                let system = prefixes.system(number, draws);
                system.map(|system| Box::new(prefixes.of_system(&system, input_tok)))
            };
        }
        request
    }

    /// Completes the row of a turn, and lays up the one after it.
    fn turn(&mut self, turn: Later, request: Request) -> Request {
        let workload = Arc::clone(&self.workload);
        let class = &workload.streams[turn.stream].classes[turn.class];
        let prefix = class.prefixes.as_ref().zip(turn.system.as_ref());
        let request = Request {
            session: Some(Arc::clone(&turn.session)),
            turn: Some(turn.turn),
            think: (turn.turn > 1).then_some(turn.think),
            prefix: prefix
                .map(|(prefixes, system)| Box::new(prefixes.of_system(system, turn.input_tok))),
            ..request
        };
        let draws = &mut self.streams[turn.stream].draws;
        let so_far = (request.input_tok, request.output_tok);
        if let Some(sessions) = &class.sessions
            && let Some((input_tok, u_input)) =
                sessions.next_input(turn.plan, turn.turn + 1, so_far, draws)
        {
            let think = sessions.think(turn.plan, turn.turn + 1, draws);
            let (at, turn_number) = (turn.at + think, turn.turn + 1);
            let later = Later { at, think, turn: turn_number, input_tok, u_input, ..turn };
            self.later.insert(later.key(), later);
        }
        request
    }

    fn go_on(&mut self, turn: Later) -> Request {
        let workload = Arc::clone(&self.workload);
        let class = &workload.streams[turn.stream].classes[turn.class];
        let index = (Purpose::TurnOutput, turn.plan.index(turn.turn));
        let draws = &mut self.streams[turn.stream].draws;
        let output_tok = class.output.at(turn.u_input, index, draws);
        let request =
            Request { at: turn.at, input_tok: turn.input_tok, output_tok, ..request_of(class) };
        self.turn(turn, request)
    }
}

impl Iterator for Rows {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        if self.workload.row_limit.is_some_and(|limit| self.row >= limit) {
            return None;
        }
        let arrival = self.earliest();
        let arrives_at = arrival.map(|place| self.streams[place].at);
        let turn = self.later.first_entry();
        let turn = turn.filter(|turn| arrives_at.is_none_or(|at| turn.get().at <= at));
        let mut request = match (turn, arrival) {
            (Some(turn), _) => {
                let turn = turn.remove();
                self.go_on(turn)
            }
            (None, Some(place)) => self.arrive(place),
            (None, None) => return None,
        };
        request.row = self.row;
        self.row += 1;
        Some(request)
    }
}

/// What a row says beside its lengths.
fn request_of(class: &Class) -> Request {
    let (prompt, body) = (class.input.text(), &class.body);
    let content = (prompt.is_some() || body.is_some()).then(|| {
        let prompt = prompt.map(|text| text.as_ref().to_owned());
        Box::new(Content { prompt, body: body.clone(), ..Content::default() })
    });
    Request { class: class.name.clone(), content, ..Request::default() }
}

/// By time; what falls together goes by stream and session, so that the order is always the same.
impl Later {
    fn key(&self) -> (Nanos, usize, u64) {
        (self.at, self.stream, self.plan.number)
    }
}
