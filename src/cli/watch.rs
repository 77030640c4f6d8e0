//! `underfire watch`: what a running server does, from its metrics page. No load is sent.
//!
//! Readings are taken every second, so that a restart costs one of them; figures are told per window.

use std::future::Future;
use std::path::PathBuf;
use std::pin::{Pin, pin};

use anyhow::{Context, bail};
use clap::Args;
use futures_util::future::{Either, join_all, select};
use tokio::signal::unix::{SignalKind, signal};

use super::Exit;
use super::console::{complain, say};
use super::link_args::LinkArgs;
use super::watch_output::WatchOutput;
use super::watch_words::caution;
use crate::clock::Clock;
use crate::server::SOCKET_URL;
use crate::telemetry::Window;
use crate::telemetry::figures::untold;
use crate::telemetry::lifetime::Lifetime;
use crate::telemetry::monitored::{MonitorError, MonitoredServer, refuse_twice};
use crate::telemetry::remaining::Remaining;
use crate::telemetry::rules::Counter;
use crate::units::{Nanos, UnitError};

/// Readings are this far apart, or a whole part of a shorter window.
const SAMPLE_EVERY: Nanos = Nanos::from_secs(1);
/// Parts of a window whose rates say how steady it is.
const PIECES: u64 = 5;
const WINDOW_MIN: Nanos = Nanos::from_millis(100);
const WINDOW_MAX: Nanos = Nanos::from_secs(3600);
/// No model answers at such length.
const MEAN_MAX_TOK: f64 = 1e9;

/// Arguments of `watch`.
#[derive(Debug, Args)]
pub(super) struct WatchArgs {
    /// Server, as `http[s]://host:port[/base]`; its page is found below it
    #[arg(required_unless_present_any = ["metrics", "unix_socket"])]
    url: Option<String>,
    /// Metrics page, in the place of the server's own (repeatable: servers add up)
    #[arg(long, value_name = "URL")]
    metrics: Vec<String>,
    /// Only what is of this model, where a page has several (default: all, added up)
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Figures are told for each D
    #[arg(long, value_name = "D", default_value = "10s", value_parser = window)]
    window: Nanos,
    /// One window, and end
    #[arg(long, conflicts_with = "for_time")]
    once: bool,
    /// End after D (default: Ctrl-C)
    #[arg(long = "for", id = "for_time", value_name = "D", value_parser = Nanos::parse_duration)]
    for_time: Option<Nanos>,
    /// One JSON object per window
    #[arg(long)]
    json: bool,
    /// Write watch.csv into this folder, which must not hold one
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Samples that a data run still has to make: tells the time left
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    remaining: Option<u64>,
    /// Mean completion tokens of those (default: from what the server counts)
    #[arg(long, value_name = "M", requires = "remaining", value_parser = above_zero)]
    mean_tokens: Option<f64>,
    #[command(flatten)]
    link: LinkArgs,
}

fn window(text: &str) -> Result<Nanos, String> {
    let window = Nanos::parse_duration(text).map_err(|error: UnitError| error.to_string())?;
    if (WINDOW_MIN..=WINDOW_MAX).contains(&window) {
        return Ok(window);
    }
    Err("a window is 100ms to 1h".to_owned())
}

fn above_zero(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number <= MEAN_MAX_TOK => Ok(number),
        _ => Err(format!("must be a number above zero, {MEAN_MAX_TOK} at the most")),
    }
}

/// Carries out the command.
pub(super) fn watch(args: &WatchArgs) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let clock = Clock::real().context("no timer")?;
        let mut servers = servers(args, &clock)?;
        let quit = pin!(interrupted()?);
        let watched = Watching::begin(args, clock).run(&mut servers, quit).await;
        match watched {
            Err(error) if matches!(error.downcast_ref(), Some(MonitorError::Several { .. })) => {
                complain(&error);
                Ok(Exit::CannotAnswer)
            }
            watched => watched,
        }
    })
}

fn servers(args: &WatchArgs, clock: &Clock) -> anyhow::Result<Vec<MonitoredServer>> {
    let connection = args.link.connection()?;
    let server = |url: &str, is_page| {
        let mut server = MonitoredServer::new(url, is_page, &connection, clock)?;
        server.only(args.model.clone());
        anyhow::Ok(server)
    };
    if args.metrics.is_empty() {
        return Ok(vec![server(args.url.as_deref().unwrap_or(SOCKET_URL), false)?]);
    }
    refuse_twice(&args.metrics)?;
    args.metrics.iter().map(|url| server(url, true)).collect()
}

/// Resolves at the first SIGINT or SIGTERM.
fn interrupted() -> std::io::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

struct Watching<'a> {
    args: &'a WatchArgs,
    clock: Clock,
    output: WatchOutput,
    remaining: Option<Remaining>,
    /// Some window had a rate.
    has_measured: bool,
}

impl<'a> Watching<'a> {
    fn begin(args: &'a WatchArgs, clock: Clock) -> Self {
        let remaining = args.remaining.map(|samples| Remaining::new(samples, args.mean_tokens));
        Self { args, clock, output: WatchOutput::new(args.json), remaining, has_measured: false }
    }

    async fn run(
        mut self,
        servers: &mut [MonitoredServer],
        mut quit: Pin<&mut impl Future<Output = ()>>,
    ) -> anyhow::Result<Exit> {
        let answers = join_all(servers.iter_mut().map(MonitoredServer::first));
        let answers = match select(answers, quit.as_mut()).await {
            Either::Left((answers, _)) => answers.into_iter().collect::<Result<Vec<_>, _>>()?,
            Either::Right(_) => return Ok(Exit::Interrupted),
        };
        introduce(servers)?;
        answers.into_iter().flatten().for_each(|news| self.output.note(news));
        if let Some(remaining) = &mut self.remaining {
            let all = servers.iter().map(|server| Lifetime::of(server.track.last()?.1));
            let all: Option<Vec<Lifetime>> = all.collect();
            remaining.begins_with(all.and_then(|all| all.into_iter().reduce(Lifetime::and)));
        }
        if let Some(folder) = &self.args.out {
            self.output.write_into(folder)?;
        }
        let whole = self.args.for_time.unwrap_or(Nanos::MAX);
        let length = self.args.window.min(whole);
        let step = Nanos(length.0 / length.0.div_ceil(SAMPLE_EVERY.0).max(1));
        let start = self.clock.now();
        self.output.starts(start);
        let (mut tick, mut from, mut goes_on) = (0, start, true);
        while goes_on {
            tick += 1;
            let due = start + Nanos(step.0 * tick);
            if due.since(start) > whole {
                self.last_window(servers, from)?;
                break;
            }
            if !self.sample(due, servers, quit.as_mut()).await? {
                self.last_window(servers, from)?;
                self.output.end();
                return Ok(Exit::Interrupted);
            }
            let now = self.clock.now();
            // A page that took longer than a step is not asked for twice at once.
            tick = tick.max(now.since(start).0 / step.0);
            if now.since(from) + Nanos(step.0 / 2) >= length {
                goes_on = self.window(servers, from, now)? && !self.args.once;
                from = now;
            }
            let last = Nanos(step.0 * 3 / 2);
            if let Some(window) = together(servers, now.since(last), now) {
                self.output.show(&window);
            }
        }
        self.output.end();
        Ok(if self.has_measured { Exit::Ok } else { Exit::CannotAnswer })
    }

    /// Waits for the time of a reading and takes it; false when interrupted before.
    async fn sample(
        &mut self,
        due: Nanos,
        servers: &mut [MonitoredServer],
        quit: Pin<&mut impl Future<Output = ()>>,
    ) -> anyhow::Result<bool> {
        let sleep = self.clock.sleep_until(due);
        let readings = pin!(async {
            sleep.await;
            join_all(servers.iter_mut().map(MonitoredServer::sample)).await
        });
        let Either::Left((news, _)) = select(readings, quit).await else {
            return Ok(false);
        };
        for news in news {
            if let Some(news) = news? {
                self.output.note(news);
            }
        }
        Ok(true)
    }

    /// Tells a window that has ended; false where nobody listens any more.
    fn window(
        &mut self,
        servers: &[MonitoredServer],
        from: Nanos,
        to: Nanos,
    ) -> anyhow::Result<bool> {
        let window = together(servers, from, to);
        if let Some(window) = &window {
            self.limits(servers, window);
            self.has_measured |= window.generation.is_some();
        }
        if let (Some(remaining), Some(window)) = (&mut self.remaining, &window) {
            let generated =
                window.generation.map(|rate| rate.tok_s * window.measured.as_secs_f64());
            let finished = window.grown.get(&Counter::Finished).copied();
            remaining.add_counts(generated.unwrap_or(0.0), finished);
            let piece = to.since(from).0 / PIECES;
            let pieces = (0..PIECES).filter_map(|at| {
                let begin = from + Nanos(piece * at);
                together(servers, begin, begin + Nanos(piece))?.generation.map(|rate| rate.tok_s)
            });
            remaining.add_rates(pieces);
        }
        let end = window.as_ref().map_or(to, |window| window.to);
        let outlook = self.remaining.as_ref().map(Remaining::outlook);
        self.output.tell(end, window.as_ref(), outlook)
    }

    /// The rest of a window that is cut off, where it has anything.
    fn last_window(&mut self, servers: &[MonitoredServer], from: Nanos) -> anyhow::Result<()> {
        let now = self.clock.now();
        if together(servers, from, now).is_some() {
            self.window(servers, from, now)?;
        }
        Ok(())
    }

    /// What the servers do not tell: to people once, in the data wherever there is no rate for it.
    fn limits(&mut self, servers: &[MonitoredServer], window: &Window) {
        for rules in servers.iter().filter_map(MonitoredServer::rules) {
            let untold = untold(window, rules);
            if !untold.is_empty() {
                let words = format!("{} does not tell: {}", rules.name, untold.join(", "));
                self.output.note_once(words, false);
            }
            if let Some(words) = caution(window.generation.as_ref(), rules) {
                self.output.note_once(words, window.generation.is_none());
            }
        }
    }
}

/// Says what is watched, and what cannot be told of it.
fn introduce(servers: &[MonitoredServer]) -> anyhow::Result<()> {
    let fronts = servers.iter().filter(|server| server.rules().is_some_and(|r| r.is_front));
    let fronts = fronts.count();
    if fronts > 0 && fronts < servers.len() {
        bail!(
            "some of these pages are of a proxy and others of engines: both count the same tokens\n\
             hint: give either the one or the others"
        );
    }
    for server in servers {
        let Some(rules) = server.rules() else { continue };
        say(&format!("watching {} at {}", rules.name, server.name));
        if !rules.note.is_empty() {
            say(&format!("note: {}: {}", rules.name, rules.note));
        }
    }
    if servers.iter().filter_map(MonitoredServer::rules).any(|rules| !rules.latencies.is_empty()) {
        say("note: latency percentiles are interpolated within the server's own buckets");
    }
    Ok(())
}

/// All servers in one window; `None` where one of them has nothing to say.
fn together(servers: &[MonitoredServer], from: Nanos, to: Nanos) -> Option<Window> {
    let mut windows = servers.iter().map(|server| Window::of(&server.track, from, to));
    let first = windows.next()??;
    windows.try_fold(first, |all, window| Some(all.and(&window?)))
}
