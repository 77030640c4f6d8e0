//! A streamed answer with faults: the events of an ordinary one, bent as the script says.
//!
//! It is slower than the ordinary body and only takes its place where something is to go wrong: what
//! is to happen is queued as steps, and the connection takes them one by one. Deliberately absent:
//! the decision what goes wrong (see `script`) and what lies below HTTP (see `wire`).

use std::collections::VecDeque;
use std::future::Future;
use std::io::Write as _;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use flate2::write::GzEncoder;
use hyper::body::{Body, Frame};

use super::script::{Broken, Done, Script};
use super::wire::Link;
use super::{Break, ErrorForm, content};
use crate::clock::{Clock, Sleep};
use crate::sim::chunk::{Chunks, Plan};
use crate::sim::draw;
use crate::sim::request::Api;
use crate::sim::stream::Entry;
use crate::sim::truth::Ended;
use crate::units::Nanos;

enum Step {
    Write(Bytes),
    Wait(Nanos),
    /// Lets the connection write out what it has.
    Flush,
    /// Ends the connection.
    Break,
    /// Nothing more, and no end.
    Never,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Head,
    Tokens,
    Usage,
    Done,
    End,
}

/// A streamed answer with faults.
pub(in crate::sim) struct FaultyBody {
    entry: Entry,
    plan: Plan,
    chunks: Chunks,
    script: Box<Script>,
    link: Rc<Link>,
    clock: Clock,
    stage: Stage,
    role_is_due: bool,
    steps: VecDeque<Step>,
    sleep: Option<Pin<Box<Sleep>>>,
    zip: Option<GzEncoder<Vec<u8>>>,
}

impl FaultyBody {
    pub(in crate::sim) fn new(
        entry: Entry,
        plan: Plan,
        chunks: Chunks,
        script: Box<Script>,
        link: Rc<Link>,
    ) -> Self {
        let gzip = || GzEncoder::new(Vec::new(), flate2::Compression::default());
        Self {
            clock: entry.server().clock().clone(),
            role_is_due: plan.ask.api == Api::Chat,
            zip: script.gzip.then(gzip),
            entry,
            plan,
            chunks,
            script,
            link,
            stage: Stage::Head,
            steps: VecDeque::new(),
            sleep: None,
        }
    }

    /// Queues what is next; false where that has not come due.
    fn produce(&mut self) -> bool {
        match self.stage {
            Stage::Head => {
                self.head();
                self.stage = Stage::Tokens;
            }
            Stage::Tokens => return self.tokens(),
            Stage::Usage => {
                self.usage();
                self.stage = Stage::Done;
            }
            Stage::Done => self.done(),
            Stage::End => {}
        }
        true
    }

    fn head(&mut self) {
        if self.script.bom {
            self.bytes(b"\xef\xbb\xbf");
        }
        if self.script.comments {
            self.bytes(b": PROCESSING\n\n");
        }
        if self.script.empty_choices {
            self.event(|chunks, out| chunks.choices("", 0, out));
        }
        if self.script.early_role {
            self.role();
        }
        self.steps.push_back(Step::Flush);
    }

    fn role(&mut self) {
        if std::mem::take(&mut self.role_is_due) {
            self.event(|chunks, out| {
                chunks.role(out);
            });
        }
    }

    /// Tokens that have come due, as many as one event bears; or the fault that comes before them.
    fn tokens(&mut self) -> bool {
        let (sent, total) = (self.entry.ledger.output_tok, self.plan.output_tok);
        if let Some((form, _)) = self.script.error.filter(|(_, after)| *after <= sent) {
            self.fail(form);
            return true;
        }
        if let Some((how, _)) = self.script.cut.filter(|(_, after)| *after <= sent) {
            self.cut(how);
            return true;
        }
        if sent == total {
            self.stage = Stage::Usage;
            return true;
        }
        let count =
            if self.script.empty { total } else { self.script.group.clamp(1, total - sent) };
        if self.entry.mailbox().ready_tok() < sent + count {
            return false;
        }
        self.role();
        if self.script.empty {
            let choice = r#"{"index":0,"delta":{},"text":"","finish_reason":"stop"}"#;
            self.event(|chunks, out| chunks.choices(choice, 0, out));
            self.stage = Stage::Usage;
            return true;
        }
        let text: String = (sent..sent + count).map(|index| self.word(index)).collect();
        let choice = content::choice(&self.plan, &self.script, &text, sent..sent + count);
        self.event(|chunks, out| chunks.choices(&choice, sent + count, out));
        self.entry.ledger.tokens(self.clock.now(), count);
        if let Some((span, _)) =
            self.script.stall.filter(|(_, after)| sent < *after && *after <= sent + count)
        {
            self.steps.push_back(Step::Flush);
            self.steps.push_back(Step::Wait(self.clock.now() + span));
        }
        true
    }

    fn word(&self, index: u64) -> &'static str {
        if self.script.utf8 {
            return content::wide(index);
        }
        draw::word(self.entry.server().settings().seed, self.entry.number(), index)
    }

    fn usage(&mut self) {
        if !self.plan.ask.usage || self.script.no_usage {
            return;
        }
        if let Some(span) = self.script.late_usage {
            self.steps.push_back(Step::Flush);
            self.steps.push_back(Step::Wait(self.clock.now() + span));
        }
        let output_tok = if self.script.empty { 0 } else { self.plan.output_tok };
        self.event(|chunks, out| chunks.usage(output_tok, out));
    }

    fn done(&mut self) {
        match self.script.done {
            Done::Missing | Done::OpenMute => {}
            Done::OpenBare => self.bytes(b"data: [DONE]\n"),
            Done::Whole | Done::Open => self.event(|_, out| Chunks::done(out)),
        }
        if matches!(self.script.done, Done::Open | Done::OpenBare | Done::OpenMute) {
            self.steps.extend([Step::Flush, Step::Never]);
        }
        self.finish();
        self.entry.end(Ended::Done);
    }

    fn fail(&mut self, form: ErrorForm) {
        self.bytes(content::error_event(form).as_bytes());
        self.event(|_, out| Chunks::done(out));
        self.finish();
        self.entry.abort(Ended::Refused);
    }

    fn cut(&mut self, how: Break) {
        if how == Break::End {
            self.finish();
        } else {
            if how == Break::Reset {
                self.link.reset_on_close();
            }
            self.steps.extend([Step::Flush, Step::Break]);
            self.stage = Stage::End;
        }
        self.entry.abort(Ended::Broken);
    }

    /// The end of the body, in order.
    fn finish(&mut self) {
        self.stage = Stage::End;
        if let Some(rest) = self.zip.take().and_then(|zip| zip.finish().ok()) {
            self.steps.push_back(Step::Write(rest.into()));
        }
    }

    fn event(&mut self, write: impl FnOnce(&Chunks, &mut BytesMut)) {
        if self.script.comments && self.stage != Stage::Head {
            self.bytes(b": keep-alive\n\n");
        }
        let mut out = BytesMut::with_capacity(512);
        write(&self.chunks, &mut out);
        let is_token = self.stage == Stage::Tokens && !self.role_is_due;
        let padding = if is_token { std::mem::take(&mut self.script.long_line) } else { 0 };
        if padding > 0 {
            // Into the object, before its brace and the blank line.
            let end = out.split_off(out.len() - 3);
            out.extend_from_slice(br#","padding":""#);
            out.resize(out.len() + padding, b'x');
            out.extend_from_slice(b"\"");
            out.unsplit(end);
        }
        self.bytes(&out);
    }

    /// Queues bytes in the form that the script wants.
    fn bytes(&mut self, bytes: &[u8]) {
        let mut shaped = self.script.shaped(bytes);
        if let Some(zip) = &mut self.zip {
            // Into memory: it cannot fail.
            let _ = zip.write_all(&shaped).and_then(|()| zip.flush());
            shaped = std::mem::take(zip.get_mut());
        }
        self.steps.push_back(Step::Write(shaped.into()));
    }

    /// Waits out the step in front; true when it is over.
    fn waited(&mut self, at: Nanos, context: &mut Context<'_>) -> bool {
        let clock = &self.clock;
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(clock.sleep_until(at)));
        if sleep.as_mut().poll(context).is_pending() {
            return false;
        }
        self.sleep = None;
        true
    }
}

impl Body for FaultyBody {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = &mut *self;
        loop {
            match this.steps.pop_front() {
                Some(Step::Write(bytes)) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Some(Step::Wait(at)) => {
                    if !this.waited(at, context) {
                        this.steps.push_front(Step::Wait(at));
                        return Poll::Pending;
                    }
                }
                Some(Step::Flush) => {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Some(Step::Break) => return Poll::Ready(Some(Err(Broken))),
                Some(Step::Never) => {
                    this.steps.push_front(Step::Never);
                    return Poll::Pending;
                }
                None if this.stage == Stage::End => return Poll::Ready(None),
                None => {
                    if !this.produce() {
                        this.entry.mailbox().watch(context);
                        return Poll::Pending;
                    }
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.stage == Stage::End && self.steps.is_empty()
    }
}
