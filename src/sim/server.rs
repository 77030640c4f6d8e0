//! The server: one thread, an engine, and a driver that sleeps until the engine's next event.
//!
//! Time comes from a [`Clock`], real or virtual. Absent: any other source of time, connections (a task
//! each, see [`Server::serve_connection`]), and what the paths mean (that is in `route`).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io::Write;
use std::rc::{Rc, Weak};

use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::chunk::Plan;
use super::engine::{Engine, Event, QueueFull};
use super::exposition::Scrape;
use super::fault::Script;
use super::mailbox::Mailbox;
use super::meter::{Life, Meter};
use super::settings::Settings;
use super::truth::{Ledger, TruthError, TruthLog, TruthRow};
use crate::clock::{Anchor, Clock, Utc};
use crate::units::Nanos;

/// How often the truth log is flushed while rows come.
const FLUSH_EVERY: Nanos = Nanos::from_secs(1);
/// In real time, the least between two turns of the engine. At 75k tok/s a token is due every 13 µs;
/// a wake for each costs more than the write (measured on two shared cores: 8 to 11 µs of CPU a token
/// against 6 to 9 when they come a few at a time). No token is later than this for it, only those due
/// within it of the turn before are late at all, and the log has the true times.
const TURN_SPACING: Nanos = Nanos(100_000);

/// A request that the engine has.
struct Open {
    mailbox: Rc<Mailbox>,
    life: Life,
}

/// A simulated server.
pub struct Server {
    settings: Settings,
    clock: Clock,
    anchor: Anchor,
    engine: RefCell<Engine>,
    meter: RefCell<Meter>,
    open: RefCell<HashMap<u64, Open>>,
    truth: RefCell<Option<TruthLog>>,
    requests: Cell<u64>,
    connections: Cell<u64>,
    /// What the driver sleeps until; rung when something is due earlier.
    armed: Cell<Nanos>,
    bell: Rc<Notify>,
    flush_at: Cell<Option<Nanos>>,
    driver: AbortHandle,
}

impl Server {
    /// A server at rest. Must be called inside the `LocalSet` that will serve it: it starts the driver,
    /// which ends with the server. The settings must have passed [`Settings::check`].
    #[must_use]
    pub fn new(settings: Settings, clock: Clock, truth: Option<Box<dyn Write>>) -> Rc<Self> {
        let utc = if clock.is_virtual() { Utc(0) } else { Utc::now() };
        let anchor = Anchor { monotonic: clock.now(), utc };
        Rc::new_cyclic(|server: &Weak<Self>| {
            let bell = Rc::new(Notify::new());
            let driver = drive(server.clone(), clock.clone(), bell.clone());
            Self {
                engine: RefCell::new(Engine::new(settings.clone())),
                meter: RefCell::new(Meter::new(settings.max_model_len_tok)),
                settings,
                clock,
                anchor,
                open: RefCell::default(),
                truth: RefCell::new(truth.map(TruthLog::new)),
                requests: Cell::new(0),
                connections: Cell::new(0),
                armed: Cell::new(Nanos::MAX),
                bell,
                flush_at: Cell::new(None),
                driver: tokio::task::spawn_local(driver).abort_handle(),
            }
        })
    }

    /// What goes wrong with a request that has just come.
    pub(super) fn script(&self, number: u64) -> Option<Box<Script>> {
        self.settings.faults.script(self.settings.seed, number, self.age())
    }

    /// The number of a connection that has just come.
    pub(super) fn connect(&self) -> u64 {
        self.connections.replace(self.connections.get() + 1)
    }

    /// How long it has been there.
    pub(super) fn age(&self) -> Nanos {
        self.clock.now().since(self.anchor.monotonic)
    }

    /// Flushes the truth log and says whether all of it could be written.
    pub fn finish(&self) -> Result<(), TruthError> {
        self.flush_at.set(None);
        match self.truth.borrow_mut().as_mut() {
            None => Ok(()),
            Some(log) => {
                log.flush();
                log.take_failure().map_or(Ok(()), Err)
            }
        }
    }

    /// What it is like.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Streams that hold a slot.
    #[must_use]
    pub fn running(&self) -> usize {
        self.engine.borrow().running()
    }

    /// Requests that wait for one.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.engine.borrow().queued()
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The wall clock, in whole seconds since 1970.
    pub(super) fn unix_seconds(&self) -> i128 {
        self.anchor.utc_at(self.clock.now()).unix_seconds()
    }

    /// The number and the ledger of a request that has just arrived.
    pub(super) fn arrive(&self) -> (u64, Ledger) {
        let number = self.requests.replace(self.requests.get() + 1);
        (number, Ledger::new(self.clock.now(), self.truth.borrow().is_some()))
    }

    /// Has the engine take a request.
    pub(super) fn admit(
        &self,
        number: u64,
        arrival: Nanos,
        mailbox: &Rc<Mailbox>,
        plan: &Plan,
    ) -> Result<(), QueueFull> {
        let now = self.clock.now();
        self.collect(now);
        let prompt_tok = plan.ask.prompt_tok;
        self.engine.borrow_mut().admit(now, number, prompt_tok, plan.output_tok)?;
        let life = Life::new(arrival, prompt_tok, plan.finish);
        let open = Open { mailbox: mailbox.clone(), life };
        self.open.borrow_mut().insert(number, open);
        self.ring_if_earlier();
        Ok(())
    }

    /// Takes a request out, if it is in; returns how long it had queued.
    pub(super) fn cancel(&self, number: u64) -> Option<Nanos> {
        // Before its last tokens are collected: nobody will be given them.
        let open = self.open.borrow_mut().remove(&number)?;
        self.meter.borrow_mut().aborted(&open.life);
        let now = self.clock.now();
        self.collect(now);
        let queued = self.engine.borrow_mut().cancel(now, number);
        self.ring_if_earlier();
        queued
    }

    /// What it tells of itself now, if anything.
    pub(super) fn metrics(&self) -> Option<String> {
        self.collect(self.clock.now());
        let scrape = Scrape {
            settings: &self.settings,
            meter: &self.meter.borrow(),
            running: self.running(),
            queued: self.queued(),
            created_s: self.anchor.utc.0 as f64 / 1e9,
        };
        scrape.text()
    }

    /// Writes a request's row.
    pub(super) fn note(&self, row: &TruthRow) {
        if let Some(log) = self.truth.borrow_mut().as_mut() {
            log.write(row);
            if self.flush_at.get().is_none() {
                self.flush_at.set(Some(self.clock.now() + FLUSH_EVERY));
                self.ring_if_earlier();
            }
        }
    }

    /// Hands out every token due by `now`.
    fn collect(&self, now: Nanos) {
        let (mut all, mut meter) = (self.open.borrow_mut(), self.meter.borrow_mut());
        self.engine.borrow_mut().advance(now, &mut |event| match event {
            Event::FirstToken { id, at, queued } => {
                if let Some(open) = all.get_mut(&id) {
                    open.mailbox.set_queued(queued);
                    open.mailbox.put();
                    meter.first_token(&mut open.life, at, queued);
                }
            }
            Event::Token { id, at } => {
                if let Some(open) = all.get_mut(&id) {
                    open.mailbox.put();
                    meter.token(&mut open.life, at);
                }
            }
            Event::Finished { id, .. } => {
                if let Some(open) = all.remove(&id) {
                    meter.finished(&open.life);
                }
            }
        });
    }

    /// Does all that is due; returns when there is something again.
    fn turn(&self) -> Option<Nanos> {
        let now = self.clock.now();
        self.collect(now);
        if self.flush_at.get().is_some_and(|at| at <= now) {
            self.flush_at.set(None);
            if let Some(log) = self.truth.borrow_mut().as_mut() {
                log.flush();
            }
        }
        let next = self.next();
        self.armed.set(next.unwrap_or(Nanos::MAX));
        next
    }

    fn next(&self) -> Option<Nanos> {
        let event = self.engine.borrow().next_event();
        [event, self.flush_at.get()].into_iter().flatten().min()
    }

    fn ring_if_earlier(&self) {
        if self.next().is_some_and(|next| next < self.armed.get()) {
            self.bell.notify_one();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.driver.abort();
        if let Some(log) = self.truth.borrow_mut().as_mut() {
            log.flush();
        }
    }
}

/// Turns the engine at its times.
async fn drive(server: Weak<Server>, clock: Clock, bell: Rc<Notify>) {
    loop {
        // Held through a turn only, so that the last handle elsewhere ends the server.
        let Some(next) = server.upgrade().map(|server| server.turn()) else { return };
        let Some(mut at) = next else {
            bell.notified().await;
            continue;
        };
        if !clock.is_virtual() {
            at = at.max(clock.now() + TURN_SPACING);
        }
        tokio::select! {
            () = clock.sleep_until(at) => {}
            () = bell.notified() => {}
        }
    }
}
