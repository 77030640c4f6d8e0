//! The servers' own pages while a run goes on: a thread that reads them every second, away from the
//! workers, and what came in.
//!
//! Readings are taken at whole seconds of the run, so that they fall between the lines of its timeline;
//! one before the start and one after the end hold all that the run asked for. Deliberately absent: what
//! follows from the figures (see [`super::server_count`]).

use std::pin::pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use futures_util::future::{Either, join_all, select};
use tokio::sync::oneshot;

use super::error::RunError;
use super::settings::{MetricsPages, Settings, Target};
use crate::clock::{Clock, monotonic};
use crate::report::ServerSample;
use crate::server::{Connection, Servers};
use crate::telemetry::count::{Count, Counting, offset_s};
use crate::telemetry::monitored::{MonitoredServer, distinct, refuse_twice};
use crate::telemetry::reading::Series;
use crate::telemetry::rules::{Counter, Gauge, Moves};
use crate::telemetry::{MonitorError, Reading, Track};
use crate::units::{NS_PER_S, Nanos};

/// Before the last reading: some servers add up a little after they answered.
const SETTLES: Nanos = Nanos::from_millis(100);
/// The last reading holds up the end of the run no longer than this.
const LAST_LIMIT: Nanos = Nanos::from_secs(3);

/// What to read, and how to get there.
#[derive(Debug)]
struct Pages {
    urls: Vec<String>,
    /// They are pages, and not servers that have one.
    are_given: bool,
    connection: Connection,
}

/// The readings of one instant.
#[derive(Debug)]
pub(super) struct Taken {
    /// Of each server that was read: which, when (seconds from the start), and what it said.
    pub(super) samples: Vec<(usize, f64, Vec<ServerSample>)>,
    /// Of all servers together, where each was read.
    pub(super) count: Option<Count>,
    /// What a person should know.
    pub(super) news: Vec<String>,
}

/// The thread.
#[derive(Debug)]
pub(super) struct Scraping {
    taken: Receiver<Taken>,
    begin: Option<oneshot::Sender<Nanos>>,
    end: oneshot::Sender<()>,
    thread: JoinHandle<()>,
    /// When the counts of completion tokens move, of all of them.
    pub(super) moves: Moves,
    /// How the engines are called.
    pub(super) engines: Vec<&'static str>,
}

/// What a first look at every page gave.
type Known = Result<Vec<(&'static str, Moves)>, MonitorError>;

impl Pages {
    /// Those of a run's servers, where they may be read.
    fn of(settings: &Settings, servers: &Servers) -> Result<Option<Self>, MonitorError> {
        let connection = settings.server.connection.clone();
        match (&settings.output.metrics, servers.simulated_url()) {
            (MetricsPages::Off, _) => Ok(None),
            (MetricsPages::Given(urls), _) => {
                refuse_twice(urls)?;
                Ok(Some(Self { urls: urls.clone(), are_given: true, connection }))
            }
            (MetricsPages::Own, Some(url)) => {
                let connection = Connection::default();
                Ok(Some(Self { urls: vec![url], are_given: false, connection }))
            }
            (MetricsPages::Own, None) => {
                let Target::Servers(urls) = &settings.target else { return Ok(None) };
                if !settings.server.may_probe() {
                    return Ok(None);
                }
                // Load may go to one server by several names for it.
                Ok(Some(Self { urls: distinct(urls)?, are_given: false, connection }))
            }
        }
    }
}

impl Scraping {
    /// That of a run, where pages may be read and can be; says why not where a run can do without.
    pub(super) fn of(
        settings: &Settings,
        servers: &Servers,
        note: &mut dyn FnMut(&str),
    ) -> Result<Option<Self>, RunError> {
        let Some(pages) = Pages::of(settings, servers)? else { return Ok(None) };
        let are_given = pages.are_given;
        match Self::start(pages) {
            Ok(scraping) => Ok(Some(scraping)),
            Err(error) if are_given => Err(error.into()),
            Err(error) => {
                let why = error.to_string();
                let why = why.lines().next().unwrap_or_default();
                note(&format!("no metrics page, so nobody else counts this run's tokens: {why}"));
                Ok(None)
            }
        }
    }

    /// Starts the thread and waits until every page was read.
    fn start(pages: Pages) -> Result<Self, MonitorError> {
        let (ready, is_ready) = channel();
        let (give, taken) = channel();
        let (begin, begins) = oneshot::channel();
        let (end, ends) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(move || read_on(&pages, &ready, &give, begins, ends))
            .map_err(|source| MonitorError::System { what: "cannot start a thread", source })?;
        let gone = |_| MonitorError::Page("the reader of metrics pages is gone".to_owned());
        let known = is_ready.recv().map_err(gone)??;
        let is_per_step = known.iter().all(|(_, moves)| *moves == Moves::PerStep);
        let moves = if is_per_step { Moves::PerStep } else { Moves::PerFinished };
        let engines = known.iter().map(|(name, _)| *name).collect();
        Ok(Self { taken, begin: Some(begin), end, thread, moves, engines })
    }

    /// Says when the run starts.
    pub(super) fn begins(&mut self, t0: Nanos) {
        if let Some(begin) = self.begin.take() {
            // The thread may be gone: then nothing comes in.
            let _ = begin.send(t0);
        }
    }

    /// What came in since the last time.
    pub(super) fn taken(&self) -> impl Iterator<Item = Taken> {
        self.taken.try_iter()
    }

    /// Takes the last reading; gives all that is left.
    pub(super) fn finish(self) -> Vec<Taken> {
        drop(self.begin);
        let _ = self.end.send(());
        let _ = self.thread.join();
        self.taken.try_iter().collect()
    }
}

fn read_on(
    pages: &Pages,
    ready: &Sender<Known>,
    give: &Sender<Taken>,
    begins: oneshot::Receiver<Nanos>,
    ends: oneshot::Receiver<()>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(source) => {
            let what = "cannot start the reader of metrics pages";
            return drop(ready.send(Err(MonitorError::System { what, source })));
        }
    };
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let mut reader = match Reader::open(pages).await {
            Ok((reader, known)) => {
                let _ = ready.send(Ok(known));
                reader
            }
            Err(error) => return drop(ready.send(Err(error))),
        };
        if let Ok(t0) = begins.await {
            reader.follow(t0, give, ends).await;
        }
    });
}

struct Reader {
    clock: Clock,
    servers: Vec<(MonitoredServer, Counting)>,
    /// What the first look told.
    news: Vec<String>,
}

impl Reader {
    async fn open(pages: &Pages) -> Result<(Self, Vec<(&'static str, Moves)>), MonitorError> {
        let clock =
            Clock::real().map_err(|source| MonitorError::System { what: "no timer", source })?;
        let mut servers = Vec::new();
        let (mut known, mut news) = (Vec::new(), Vec::new());
        for url in &pages.urls {
            let mut server = MonitoredServer::new(url, pages.are_given, &pages.connection, &clock)?;
            news.extend(server.first().await?);
            known.extend(server.rules().map(|rules| (rules.name, rules.moves)));
            servers.push((server, Counting::default()));
        }
        Ok((Self { clock, servers, news }, known))
    }

    /// Reads until the end, and once more.
    async fn follow(&mut self, t0: Nanos, give: &Sender<Taken>, mut ends: oneshot::Receiver<()>) {
        // What the first look saw, nothing of the run in it.
        let news = std::mem::take(&mut self.news);
        let mut taken = Taken { samples: Vec::new(), count: None, news };
        self.collect(t0, &mut taken);
        let mut second = 0;
        while give.send(taken).is_ok() {
            second = (monotonic().since(t0).0 / NS_PER_S).max(second) + 1;
            let sleep = self.clock.sleep_until(t0 + Nanos(second * NS_PER_S));
            if let Either::Right(_) = select(pin!(sleep), &mut ends).await {
                self.clock.sleep_until(self.clock.now() + SETTLES).await;
                let limit = self.clock.sleep_until(self.clock.now() + LAST_LIMIT);
                if let Either::Left((last, _)) = select(pin!(self.take(t0)), limit).await {
                    let _ = give.send(last);
                }
                return;
            }
            taken = self.take(t0).await;
        }
    }

    async fn take(&mut self, t0: Nanos) -> Taken {
        let answers = join_all(self.servers.iter_mut().map(|(server, _)| server.sample())).await;
        let mut taken = Taken { samples: Vec::new(), count: None, news: Vec::new() };
        for answer in answers {
            match answer {
                Ok(news) => taken.news.extend(news),
                Err(error) => taken.news.push(error.to_string()),
            }
        }
        self.collect(t0, &mut taken);
        taken
    }

    fn collect(&mut self, t0: Nanos, taken: &mut Taken) {
        let mut counts = Vec::new();
        for (target, (server, counting)) in self.servers.iter_mut().enumerate() {
            let Some(count) = counting.up_to(&server.track, t0) else { continue };
            counts.push(count);
            if let Some((at_s, samples)) = samples(&server.track, t0) {
                taken.samples.push((target, at_s, samples));
            }
        }
        let is_whole = counts.len() == self.servers.len();
        taken.count = counts.into_iter().reduce(|all, one| all.and(&one)).filter(|_| is_whole);
    }
}

const COUNTERS: [(Counter, &str); 8] = [
    (Counter::Generation, "output_tok"),
    (Counter::Prompt, "input_tok"),
    (Counter::Cached, "cached_tok"),
    (Counter::CacheQueries, "cache_queries_tok"),
    (Counter::CacheHits, "cache_hits_tok"),
    (Counter::Finished, "finished"),
    (Counter::Preempted, "preempted"),
    (Counter::Accepted, "accepted_tok"),
];
const GAUGES: [(Gauge, &str); 4] = [
    (Gauge::Running, "running"),
    (Gauge::Waiting, "waiting"),
    (Gauge::KvUse, "kv_use"),
    (Gauge::CacheHitRate, "cache_hit"),
];

/// The figures of the last reading under the names that files have them by.
fn samples(track: &Track, t0: Nanos) -> Option<(f64, Vec<ServerSample>)> {
    let (stamp, reading): (_, &Reading) = track.last()?;
    let mut samples = Vec::new();
    for (counter, metric) in COUNTERS {
        for (series, value) in reading.counters.get(&counter).into_iter().flatten() {
            samples.push(ServerSample { metric, labels: labels(series), value: *value });
        }
    }
    for (gauge, metric) in GAUGES {
        let value = reading.gauges.get(&gauge);
        let sample = |value: &f64| ServerSample { metric, labels: String::new(), value: *value };
        samples.extend(value.map(sample));
    }
    Some((offset_s(stamp, t0), samples))
}

fn labels(series: &Series) -> String {
    let label = |(name, value): &(String, String)| format!("{name}={value:?}");
    series.iter().map(label).collect::<Vec<_>>().join(",")
}
