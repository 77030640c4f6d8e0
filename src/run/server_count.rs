//! A run's tokens against its servers' own count of them: the samples as they come in, and the words and
//! figures at the end.
//!
//! The run's side is that of its own `timeline.csv`. Deliberately absent: reading pages.

use serde_json::{Value, json};

use super::scraping::{Scraping, Taken};
use crate::clock::Anchor;
use crate::metrics::timeline::ServerSecond;
use crate::metrics::{Summary, Window};
use crate::record::Outcome;
use crate::report::{Folder, Recorder, RecorderError, SecondCount, ServerFile, grouped, percent};
use crate::telemetry::count::Count;
use crate::telemetry::cross_check::{Client, CrossCheck, Finding, Sides, cross_check};
use crate::telemetry::rules::Moves;
use crate::units::Nanos;

pub(super) const SERVER: &str = "server.csv";
/// Notes of the reading thread that are kept.
const NEWS_LIMIT: usize = 20;
/// Readings are this near to a whole second, or of none.
const NEAR_S: f64 = 0.25;

/// The servers' side of a run.
#[derive(Debug)]
pub(super) struct ServerCount {
    scraping: Option<Scraping>,
    /// Where readings go, where the run has a folder.
    file: Option<ServerFile>,
    started: Option<Anchor>,
    counts: Vec<Count>,
    moves: Moves,
    engines: Vec<&'static str>,
    news: Vec<String>,
}

impl ServerCount {
    /// What `scraping` reads goes into this folder, where there is one.
    pub(super) fn new(scraping: Scraping, folder: Option<&Folder>) -> Result<Self, RecorderError> {
        let file = folder.map(|folder| ServerFile::create(folder.file(SERVER))).transpose()?;
        let (moves, engines) = (scraping.moves, scraping.engines.clone());
        let (counts, news) = (Vec::new(), Vec::new());
        let scraping = Some(scraping);
        Ok(Self { scraping, file, started: None, counts, moves, engines, news })
    }

    /// Says when the run starts.
    pub(super) fn begins(&mut self, anchor: Anchor) {
        self.started = Some(anchor);
        if let Some(scraping) = &mut self.scraping {
            scraping.begins(anchor.monotonic);
        }
    }

    /// Takes in what was read since the last time.
    pub(super) fn take(&mut self, recorder: &mut Recorder) -> Result<(), RecorderError> {
        let Some(scraping) = &self.scraping else { return Ok(()) };
        let taken: Vec<Taken> = scraping.taken().collect();
        taken.into_iter().try_for_each(|taken| self.add(taken, recorder))?;
        self.file.as_mut().map_or(Ok(()), ServerFile::flush)
    }

    /// Takes the last reading.
    pub(super) fn finish(&mut self, recorder: &mut Recorder) -> Result<(), RecorderError> {
        let Some(scraping) = self.scraping.take() else { return Ok(()) };
        let taken = scraping.finish();
        taken.into_iter().try_for_each(|taken| self.add(taken, recorder))?;
        self.file.as_mut().map_or(Ok(()), ServerFile::flush)
    }

    fn add(&mut self, taken: Taken, recorder: &mut Recorder) -> Result<(), RecorderError> {
        let t0_utc_ns = self.started.map_or(0, |anchor| anchor.utc.0);
        let room = NEWS_LIMIT.saturating_sub(self.news.len());
        self.news.extend(taken.news.into_iter().take(room));
        if let Some(count) = taken.count {
            if let Some((second, said)) = second(self.counts.last(), &count) {
                recorder.server(second, said);
            }
            self.counts.push(count);
        }
        if let Some(file) = &mut self.file {
            for (target, t_s, samples) in &taken.samples {
                file.write(*t_s, t0_utc_ns, *target, samples)?;
            }
        }
        Ok(())
    }

    /// What follows for a run with these seconds, in words and for its manifest.
    pub(super) fn check(
        mut self,
        seconds: &[SecondCount],
        summary: &Summary,
        window: Window,
    ) -> (Vec<String>, Value) {
        let client = client(seconds, summary);
        let from_s = window.warmup.as_secs_f64();
        let to_s = window.last_due.map_or(client.tok_by_second.len() as f64, Nanos::as_secs_f64);
        let check = cross_check(&client, &self.counts, (from_s, to_s), self.moves);
        let mut notices = std::mem::take(&mut self.news);
        let value = if let Some(check) = check {
            notices.push(format!("the server's own count: {}", verdict(&check)));
            manifest(&check)
        } else {
            notices.push(format!(
                "the server's own count ({}): not held against this run's, for want of a reading before it or \
                 after it",
                self.engines.join(", ")
            ));
            Value::Null
        };
        (notices, value)
    }
}

/// What a reading says of the second that it ends, where one before it began that second.
fn second(before: Option<&Count>, count: &Count) -> Option<(u64, ServerSecond)> {
    let before = before?;
    let end = count.at_s.round();
    let is_near = (count.at_s - end).abs() <= NEAR_S && (before.at_s - (end - 1.0)).abs() <= NEAR_S;
    if !is_near || end < 1.0 || count.restarts > before.restarts {
        return None;
    }
    let said = ServerSecond {
        output_tok: Some(count.output_tok - before.output_tok),
        input_tok: count.input_tok.zip(before.input_tok).map(|(now, was)| now - was),
        running: count.running,
        waiting: count.waiting,
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a second of a run"
    )]
    Some((end as u64 - 1, said))
}

/// The run's own side.
fn client(seconds: &[SecondCount], summary: &Summary) -> Client {
    let all = &summary.all;
    Client {
        ok: all.count(Outcome::Ok),
        cut: all.count(Outcome::Incomplete) + all.count(Outcome::Timeout),
        resent: all.resent.unwrap_or(0),
        tok_by_second: seconds.iter().map(|second| second.output_tok).collect(),
        sent: seconds.iter().map(|second| second.sent).sum(),
    }
}

/// Both counts, and what follows.
fn verdict(check: &CrossCheck) -> String {
    let (sides, per_second) = match &check.window {
        // Of a window without a token there, no share is known.
        Some(window)
            if window.difference().is_some() && (!window.agree() || check.whole.agree()) =>
        {
            (window, true)
        }
        _ => (&check.whole, false),
    };
    let counts = if per_second {
        let span_s = sides.to_s - sides.from_s;
        format!(
            "client {}, server {} tok/s over {span_s:.1} s",
            whole(sides.client_tok / span_s),
            whole(sides.server_tok / span_s)
        )
    } else {
        let (client, server) = (whole(sides.client_tok), whole(sides.server_tok));
        format!("client {client}, server {server} tokens over the whole run")
    };
    format!("{counts}: {}", finding(check, sides))
}

fn finding(check: &CrossCheck, sides: &Sides) -> String {
    let off = sides.difference().map_or_else(|| "all".to_owned(), percent);
    let requests = |n: f64| format!("{} requests", whole(n));
    let (ours, theirs) = (check.finished.0 as f64, check.finished.1.unwrap_or(0.0));
    match check.finding {
        Finding::Agree => {
            let expected = (sides.server_tok > 0.0).then(|| sides.expected_tok / sides.server_tok);
            let expected = expected.map_or_else(|| "0.0%".to_owned(), percent);
            format!("agree within {off} ({expected} is to be expected)")
        }
        Finding::Restarted => "not compared: a server restarted in between".to_owned(),
        Finding::CutUncounted => format!(
            "{off} fewer there, whose counter leaves out requests that were cut, as some were here"
        ),
        Finding::Foreign { requests: Some(others) } => format!(
            "{off} more there: {} of its {} are not of this run, so somebody else sends to it too",
            whole(others),
            requests(theirs)
        ),
        Finding::Foreign { requests: None } => format!(
            "{off} more there, and requests ran there before this run or after it: somebody else sends to it \
             too"
        ),
        Finding::Resent => format!(
            "{off} more there: requests that were sent again were answered more than once ({} there, {} ok \
             here)",
            whole(theirs),
            whole(ours)
        ),
        Finding::Hidden => format!(
            "{off} more there for the same requests: tokens that it makes and does not send (reasoning, \
             answers of failed requests), or does not report in the usage"
        ),
        Finding::Elsewhere => format!(
            "{off} fewer there, for {} of {}: others were answered elsewhere (several servers behind this \
             address?)",
            whole(theirs),
            requests(ours)
        ),
        Finding::Overcounted => format!(
            "{off} fewer there for the same requests: is this the page of the server that answered, and does \
             its usage count what this run counts?"
        ),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of tokens")]
fn whole(value: f64) -> String {
    grouped(value.round().max(0.0) as u64)
}

fn manifest(check: &CrossCheck) -> Value {
    let sides = |sides: &Sides| {
        json!({
            "from_s": sides.from_s,
            "to_s": sides.to_s,
            "client_tok": sides.client_tok,
            "server_tok": sides.server_tok,
            "expected_difference_tok": sides.expected_tok,
        })
    };
    let finding = match check.finding {
        Finding::Agree => "agree",
        Finding::Restarted => "server restarted",
        Finding::CutUncounted => "cut requests are not counted there",
        Finding::Foreign { .. } => "foreign traffic",
        Finding::Resent => "requests sent again",
        Finding::Hidden => "hidden tokens",
        Finding::Elsewhere => "answered elsewhere",
        Finding::Overcounted => "fewer tokens there",
    };
    json!({
        "finding": finding,
        "window": check.window.as_ref().map(sides),
        "whole": sides(&check.whole),
        "ok_here": check.finished.0,
        "finished_there": check.finished.1,
    })
}
