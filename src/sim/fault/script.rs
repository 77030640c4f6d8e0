//! What the faults that fall on one request make of its answer: one plain value, resolved before the
//! first byte. Deliberately absent: bytes (see `body`) and sockets (see `wire`).

use super::{Break, ErrorForm, Fault, LineEnd, ReasoningKey};
use crate::units::Nanos;

/// How a request is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::sim) enum Answer {
    /// As asked.
    #[default]
    Stream,
    /// Not at all: the connection ends.
    Hangup,
    /// With an error status.
    Status(u16),
    /// With another place.
    Redirect(u16),
    /// With one document.
    Json,
}

/// After `[DONE]`, or instead of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::sim) enum Done {
    /// `[DONE]`, and the body ends.
    #[default]
    Whole,
    /// The body ends.
    Missing,
    /// `[DONE]`, and the body does not end.
    Open,
    /// The same, without the blank line.
    OpenBare,
    /// Not written, and neither is an end.
    OpenMute,
}

/// Why an answer is no response: the connection is to end.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("ended on purpose")]
pub(in crate::sim) struct Broken;

/// The faults of one request.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fault of its own")]
pub(in crate::sim) struct Script {
    /// As the truth log has them.
    pub(in crate::sim) logged: String,
    pub(in crate::sim) answer: Answer,
    /// How long after the arrival the head is kept back.
    pub(in crate::sim) head_after: Option<Nanos>,
    /// How long the connection may be idle afterwards.
    pub(in crate::sim) idle: Option<Nanos>,
    pub(in crate::sim) gzip: bool,
    /// The end of the connection is a reset.
    pub(in crate::sim) resets: bool,
    pub(in crate::sim) bytes: bool,
    pub(in crate::sim) utf8: bool,
    pub(super) error: Option<(ErrorForm, u64)>,
    pub(super) stall: Option<(Nanos, u64)>,
    pub(super) cut: Option<(Break, u64)>,
    pub(super) done: Done,
    pub(super) lines: LineEnd,
    pub(super) bom: bool,
    pub(super) comments: bool,
    pub(super) no_space: bool,
    pub(super) empty_choices: bool,
    pub(super) early_role: bool,
    /// Tokens in one event; 0 is 1.
    pub(super) group: u64,
    pub(in crate::sim) running_usage: bool,
    pub(super) late_usage: Option<Nanos>,
    pub(super) no_usage: bool,
    pub(super) no_finish: bool,
    pub(super) empty: bool,
    pub(super) long_line: usize,
    pub(super) reasoning: Option<(ReasoningKey, u64)>,
    pub(super) tools: bool,
}

impl Script {
    /// Adds a fault, by the word that stands for it in the truth log.
    pub(super) fn add(&mut self, fault: Fault, word: &str) {
        if !self.logged.is_empty() {
            self.logged.push('+');
        }
        self.logged.push_str(word);
        match fault {
            Fault::Refuse => {}
            Fault::Hangup(how) => {
                self.answer = Answer::Hangup;
                self.resets = how == Break::Reset;
            }
            Fault::Status(status) => self.answer = Answer::Status(status),
            Fault::Redirect(status) => self.answer = Answer::Redirect(status),
            Fault::Json => self.answer = Answer::Json,
            Fault::Headers(span) => self.head_after = Some(span),
            Fault::Error(form, after) => self.error = Some((form, after)),
            Fault::Stall(span, after) => self.stall = Some((span, after)),
            Fault::Cut(how, after) => {
                self.cut = Some((how, after));
                self.resets = how == Break::Reset;
            }
            Fault::NoDone => self.done = Done::Missing,
            Fault::Open(done) => self.done = done,
            Fault::Bytes => self.bytes = true,
            Fault::Utf8 => self.utf8 = true,
            Fault::Lines(lines) => self.lines = lines,
            Fault::Bom => self.bom = true,
            Fault::Comments => self.comments = true,
            Fault::NoSpace => self.no_space = true,
            Fault::EmptyChoices => self.empty_choices = true,
            Fault::EarlyRole => self.early_role = true,
            Fault::Group(tokens) => self.group = tokens,
            Fault::RunningUsage => self.running_usage = true,
            Fault::LateUsage(span) => self.late_usage = Some(span),
            Fault::NoUsage => self.no_usage = true,
            Fault::NoFinish => self.no_finish = true,
            Fault::Empty => self.empty = true,
            Fault::LongLine(bytes) => self.long_line = bytes,
            Fault::Gzip => self.gzip = true,
            Fault::Reasoning(key, tokens) => self.reasoning = Some((key, tokens)),
            Fault::Tools => self.tools = true,
            Fault::Idle(span) => self.idle = Some(span),
        }
    }

    /// Lines in the form that is wanted of them.
    pub(super) fn shaped(&self, bytes: &[u8]) -> Vec<u8> {
        let mut shaped = Vec::with_capacity(bytes.len());
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (line, ended) = match line.strip_suffix(b"\n") {
                Some(line) => (line, true),
                None => (line, false),
            };
            match line.strip_prefix(b"data: ") {
                Some(data) if self.no_space => {
                    shaped.extend_from_slice(b"data:");
                    shaped.extend_from_slice(data);
                }
                _ => shaped.extend_from_slice(line),
            }
            if ended {
                shaped.extend_from_slice(match self.lines {
                    LineEnd::Lf => b"\n",
                    LineEnd::CrLf => b"\r\n",
                    LineEnd::Cr => b"\r",
                });
            }
        }
        shaped
    }
}
