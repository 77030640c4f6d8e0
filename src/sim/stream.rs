//! The answer of one request: from the engine's events to the frames of an HTTP body.
//!
//! The driver counts tokens into a [`Mailbox`]; the connection, when woken, takes out all that are
//! there, one frame per SSE event, and writes them in one go. A client that does not read lets the
//! count grow and nothing else. Absent: bytes of an event (see [`super::chunk`]) and sockets.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame};

use super::chunk::{Chunks, Plan, request_id};
use super::draw;
use super::engine::QueueFull;
use super::mailbox::Mailbox;
use super::request::Api;
use super::server::Server;
use super::truth::{Ended, Ledger};

/// A request from its arrival to its row in the truth log. Dropped before its end, it is cancelled:
/// that is how a client's going away frees its slot.
pub(super) struct Entry {
    server: Rc<Server>,
    api: Api,
    number: u64,
    pub(super) ledger: Ledger,
    mailbox: Rc<Mailbox>,
    is_open: bool,
}

impl Entry {
    pub(super) fn new(server: Rc<Server>, api: Api, number: u64, ledger: Ledger) -> Self {
        Self { server, api, number, ledger, mailbox: Rc::default(), is_open: true }
    }

    pub(super) fn mailbox(&self) -> &Rc<Mailbox> {
        &self.mailbox
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn api(&self) -> Api {
        self.api
    }

    pub(super) fn server(&self) -> &Rc<Server> {
        &self.server
    }

    /// Has the engine take it.
    pub(super) fn admit(&self, plan: &Plan) -> Result<(), QueueFull> {
        self.server.admit(self.number, self.ledger.arrival, &self.mailbox, plan)
    }

    /// Ends it before its last token, which frees its slot.
    pub(super) fn abort(&mut self, ended: Ended) {
        if self.is_open {
            self.ledger.queued = self.server.cancel(self.number);
            self.end(ended);
        }
    }

    pub(super) fn end(&mut self, ended: Ended) {
        if !std::mem::take(&mut self.is_open) {
            return;
        }
        self.ledger.queued = self.mailbox.queued().or(self.ledger.queued);
        let row = self.ledger.row(request_id(self.api, self.number), ended);
        self.server.note(&row);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.abort(Ended::Cancelled);
    }
}

/// The next event of a stream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Role,
    Token,
    Usage,
    Done,
    End,
}

/// A streamed answer.
pub(super) struct TokenBody {
    entry: Entry,
    plan: Plan,
    chunks: Chunks,
    stage: Stage,
    /// Frames are cut from it; its memory comes back when the connection has copied them.
    out: BytesMut,
}

impl TokenBody {
    pub(super) fn new(entry: Entry, plan: Plan, chunks: Chunks) -> Self {
        let stage = match plan.ask.api {
            Api::Chat => Stage::Role,
            Api::Completions => Stage::Token,
        };
        Self { entry, plan, chunks, stage, out: BytesMut::new() }
    }

    /// Formats the next event; the stage must have one.
    fn event(&mut self) -> Bytes {
        self.out.reserve(512);
        match self.stage {
            Stage::Role => {
                self.chunks.role(&mut self.out);
                self.stage = Stage::Token;
            }
            Stage::Token => self.token(),
            Stage::Usage => {
                self.chunks.usage(self.plan.output_tok, &mut self.out);
                self.stage = Stage::Done;
            }
            Stage::Done | Stage::End => {
                Chunks::done(&mut self.out);
                self.stage = Stage::End;
                self.entry.end(Ended::Done);
            }
        }
        self.out.split().freeze()
    }

    fn token(&mut self) {
        let index = self.entry.ledger.output_tok;
        let is_last = index + 1 == self.plan.output_tok;
        let text = draw::word(self.entry.server.settings().seed, self.entry.number, index);
        let finish = is_last.then_some(self.plan.finish);
        self.chunks.token(index + 1, text, finish, &mut self.out);
        if is_last {
            self.stage = if self.plan.ask.usage { Stage::Usage } else { Stage::Done };
        }
        // Stamped last: the frame is yielded next.
        self.entry.ledger.token(self.entry.server.clock().now());
    }
}

impl Body for TokenBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        let waits = match this.stage {
            Stage::Role | Stage::Token => {
                this.entry.ledger.output_tok == this.entry.mailbox.ready_tok()
            }
            Stage::Usage | Stage::Done => false,
            Stage::End => return Poll::Ready(None),
        };
        if waits {
            this.entry.mailbox.watch(context);
            return Poll::Pending;
        }
        Poll::Ready(Some(Ok(Frame::data(this.event()))))
    }

    fn is_end_stream(&self) -> bool {
        self.stage == Stage::End
    }
}

/// Waits for all tokens of an answer that is not streamed, and formats it.
pub(super) async fn whole(mut entry: Entry, plan: Plan, chunks: Chunks) -> Bytes {
    poll_fn(|context| {
        if entry.mailbox.ready_tok() == plan.output_tok {
            return Poll::Ready(());
        }
        entry.mailbox.watch(context);
        Poll::Pending
    })
    .await;
    let seed = entry.server.settings().seed;
    let text: String =
        (0..plan.output_tok).map(|index| draw::word(seed, entry.number, index)).collect();
    let document = chunks.document(&text, plan.output_tok, plan.finish).freeze();
    entry.ledger.whole(entry.server.clock().now(), plan.output_tok);
    entry.end(Ended::Done);
    document
}
