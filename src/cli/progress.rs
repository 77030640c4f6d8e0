//! What a run tells while it is prepared and while it lasts, to the person at the terminal.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

use super::console::say;
use crate::run::{Event, Observer, Progress, describe_target};
use crate::server::Remark;

/// Says it all, or with `--quiet` only warnings.
pub(super) struct Console {
    quiet: bool,
    bar: Option<ProgressBar>,
}

/// A line that is written over and over, on a terminal.
pub(super) fn live_line() -> Option<ProgressBar> {
    std::io::stderr().is_terminal().then(|| {
        let bar = ProgressBar::new_spinner();
        bar.set_style(ProgressStyle::with_template("{wide_msg}").expect("a fixed template"));
        bar
    })
}

impl Console {
    pub(super) fn new(quiet: bool) -> Self {
        Self { quiet, bar: None }
    }

    fn note(&self, text: &str) {
        if !self.quiet {
            self.say(text);
        }
    }

    /// Whatever is on the live line stays below.
    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| say(text)),
            None => say(text),
        }
    }

    fn show(&self, progress: &Progress) {
        let Some(bar) = &self.bar else { return };
        let Progress { elapsed_s, planned, sent, ended, failed, output_tok } = *progress;
        let planned = planned.map_or_else(String::new, |planned| format!("/{planned}"));
        bar.set_message(format!(
            "{elapsed_s:.0} s  sent {sent}{planned}  open {}  ok {}  failed {failed}  {:.0} tok/s",
            sent.saturating_sub(ended),
            ended - failed,
            output_tok as f64 / elapsed_s.max(1.0),
        ));
    }
}

impl Observer for Console {
    fn observe(&mut self, event: Event<'_>) {
        match event {
            Event::Note(note) => self.note(&format!("note: {note}")),
            Event::Warning(warning) => self.say(&format!("warning: {warning}")),
            Event::Step(step) => self.note(step),
            Event::Server(Remark::Note(note)) => self.note(&format!("note: {note}")),
            Event::Server(Remark::Waiting(step) | Remark::Preflight(step)) => self.note(&step),
            Event::Ready { traffic, plan, servers } => {
                if let Some(plan) = plan {
                    self.note(traffic.describe(plan).trim_end());
                }
                let (target, servers_told) = (describe_target(servers), servers.describe());
                self.note(&format!("server: {target}\n{}", servers_told.trim_end()));
                for notice in &servers.notices {
                    self.note(&format!("note: {notice}"));
                }
            }
            Event::Started(_) if !self.quiet => self.bar = live_line(),
            Event::Started(_) | Event::Ended(_) => {}
            Event::StoppingEarly(reason) => self.say(&format!("stopping early: {reason}")),
            Event::Progress(progress) => self.show(&progress),
            Event::Over => {
                if let Some(bar) = self.bar.take() {
                    bar.finish_and_clear();
                }
            }
        }
    }
}
