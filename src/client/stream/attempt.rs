//! The life of one request: connect, send, head, events, end. Each step either goes on or names the
//! outcome.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use hyper::StatusCode;

use super::dialect;
use super::failure::{
    Failure, cut_failure, describe_encoding, dial_failure, is_compressed, no_events, one_line,
    other_form,
};
use super::retry_after::{quoted_retry_after, retry_after};
use crate::client::Client;
use crate::client::control::{AttemptControl, Step};
use crate::client::timeouts::Deadline;
use crate::client::wire::{Exchange, Head, HttpError, Link, Reused, Terms};
use crate::record::{Outcome, StreamRecord, TokenTimes};
use crate::units::Nanos;

/// Bytes of an error body that are kept for its message.
const ERROR_BODY_LIMIT: usize = 64 * 1024;
/// How long after `[DONE]` the end of the body may take before the connection is given up.
const END_OF_BODY_LIMIT: Nanos = Nanos::from_secs(1);

pub(crate) struct Attempt<'a> {
    pub(super) client: &'a Rc<Client>,
    pub(super) control: &'a AttemptControl,
    pub(super) record: StreamRecord,
    /// When the first attempt started, and this one.
    sent: Nanos,
    started: Nanos,
    /// How long the server asks to be left alone.
    retry_after: Option<Nanos>,
    /// The connection broke within the answer.
    pub(super) broke: bool,
    /// What is known of the connection.
    terms: Terms,
    /// How long it had rested.
    rested: Nanos,
    /// How long the bytes at hand had lain in the kernel.
    pub(super) rx_delay: Option<Nanos>,
    /// `[DONE]` was seen.
    pub(super) done: bool,
    /// Since when nothing of the answer is missing but its end, as an offset.
    pub(super) whole: Option<Nanos>,
    /// What the body holds beside its events.
    pub(super) stray: Vec<u8>,
}

/// An attempt that has ended.
pub(crate) struct Ended {
    pub(crate) record: StreamRecord,
    /// How long the server asks to be left alone.
    pub(crate) retry_after: Option<Nanos>,
    /// The connection broke within the answer.
    pub(crate) broke: bool,
}

impl<'a> Attempt<'a> {
    /// An attempt that starts now, of a request that was first `sent` then.
    pub(crate) fn new(
        client: &'a Rc<Client>,
        record: StreamRecord,
        control: &'a AttemptControl,
        sent: Nanos,
    ) -> Self {
        Self {
            client,
            control,
            record,
            sent,
            started: client.clock.now(),
            retry_after: None,
            broke: false,
            terms: Terms::default(),
            rested: Nanos::ZERO,
            rx_delay: None,
            done: false,
            whole: None,
            stray: Vec::new(),
        }
    }

    pub(crate) async fn run(mut self: Box<Self>, body: Bytes) -> Ended {
        self.control.saw_byte(self.started);
        if self.client.settings.keep_kinds {
            self.record.tokens = TokenTimes::keeping_kinds();
        }
        self.record.sent = Some(self.client.offset(self.sent));
        let (outcome, error) = match self.exchange(body).await {
            Ok(outcome) => (outcome, None),
            Err(failure) => (failure.outcome, Some(failure.error)),
        };
        self.record.outcome = outcome;
        // A server may quote the key that it refuses.
        let head = &self.client.settings.head;
        let error = self.record.error.take().or(error);
        self.record.error = error.map(|text| one_line(&head.scrub(text)));
        self.record.request_id = self.record.request_id.take().map(|id| head.scrub(id));
        self.record.finish_reason = self.record.finish_reason.take().map(|why| head.scrub(why));
        if self.record.close.is_none() {
            self.record.close = Some(self.client.offset(self.client.clock.now()));
        }
        Ended { record: self.record, retry_after: self.retry_after, broke: self.broke }
    }

    async fn exchange(&mut self, body: Bytes) -> Result<Outcome, Failure> {
        // Apart, so that a stream does not keep the room that dialling and TLS take for all its life.
        let connection = Box::pin(self.connect()).await?;
        let mut exchange = Exchange::start(connection);
        let head = Box::pin(self.head(&mut exchange, body)).await?;
        self.terms = self.terms.after(&head.headers);
        if head.status != StatusCode::OK {
            let message = Box::pin(self.refusal(&mut exchange, &head)).await;
            recycle(self.client, exchange, self.terms).await;
            return Err(Failure::new(Outcome::Http(head.status.as_u16()), message));
        }
        if is_compressed(&head) {
            return Err(Failure::new(Outcome::StreamError, describe_encoding(&head)));
        }
        if let Some(form) = other_form(&head.content_type) {
            let message = self.message(&mut exchange).await;
            return Err(Failure::new(Outcome::StreamError, no_events(form, &message)));
        }
        self.events(&mut exchange).await?;
        self.expect_events(&head.content_type)?;
        if self.done || exchange.has_ended() {
            recycle(self.client, exchange, self.terms).await;
        }
        self.verdict()
    }

    async fn connect(&mut self) -> Result<Link, Failure> {
        if let Some(Reused { link, terms, rested }) = self.client.pool.reuse() {
            (self.terms, self.rested) = (terms, rested);
            self.record.conn_reused = Some(true);
            return Ok(link);
        }
        let deadline = self.client.settings.timeouts.connecting(self.sent, self.started);
        let dial = self.client.pool.dial();
        let connection = self
            .control
            .guard(&self.client.clock, deadline.map(|deadline| deadline.at), dial)
            .await
            .map_err(|cut| cut_failure(cut, deadline, "before a connection was made"))?
            .map_err(|error| dial_failure(&error))?;
        self.record.conn_reused = Some(false);
        self.record.connect = Some(self.client.clock.now().since(self.started));
        Ok(connection)
    }

    async fn head(&mut self, exchange: &mut Exchange, body: Bytes) -> Result<Head, Failure> {
        let settings = &self.client.settings;
        let request = settings.head.post(body);
        let deadline = settings.timeouts.responding(self.sent);
        let head = self
            .control
            .guard(&self.client.clock, deadline.map(|deadline| deadline.at), exchange.send(request))
            .await
            .map_err(|cut| cut_failure(cut, deadline, "before the response began"))?
            .map_err(|error| self.no_response(&error))?;
        self.control.saw_byte(head.at);
        self.record.headers = Some(self.client.offset(head.at));
        self.record.http_status = Some(head.status.as_u16());
        Ok(head)
    }

    fn no_response(&self, error: &HttpError) -> Failure {
        let reused = self.record.conn_reused == Some(true);
        let closed = error.is_close();
        if reused && closed {
            self.client.pool.saw_crossing(self.rested);
        }
        let text = match (reused, closed) {
            (true, true) => format!(
                "the server closed the idle connection as the request crossed it, or in answer to it{} \
                 ({error})",
                if self.record.attempts.is_some() { "" } else { "; not sent again" }
            ),
            (false, true) => format!("connection closed before a response: {error}"),
            _ => format!("no HTTP response: {error}"),
        };
        Failure::new(Outcome::Connect, text)
    }

    /// Why a status other than 200 came, in the server's words.
    async fn refusal(&mut self, exchange: &mut Exchange, head: &Head) -> String {
        self.retry_after = retry_after(&head.headers);
        let message = self.message(exchange).await;
        if is_compressed(head) {
            return describe_encoding(head);
        }
        if head.status.is_redirection() && !head.location.is_empty() {
            return format!("{message} (to {}, not followed)", head.location);
        }
        match quoted_retry_after(&head.headers) {
            Some(words) => format!("{message} ({words})"),
            None => message,
        }
    }

    /// One readable line from a body that is no stream. The outcome is known by now, so whatever
    /// ends the body early (its connection, a limit, the run) only makes the line shorter.
    async fn message(&mut self, exchange: &mut Exchange) -> String {
        let mut body = Vec::new();
        let (control, clock) = (self.control, &self.client.clock);
        let followed = control.follow(clock, |context| {
            while body.len() < ERROR_BODY_LIMIT {
                let read = exchange.poll_read(context, |bytes, arrival| {
                    control.saw_byte(arrival.at);
                    body.extend_from_slice(bytes);
                });
                match read {
                    Poll::Pending => return Step::Waiting(self.wait_until()),
                    Poll::Ready(Some(Ok(()))) => {}
                    Poll::Ready(_ended) => {
                        self.record.close = Some(self.client.offset(exchange.last_read()));
                        break;
                    }
                }
            }
            Step::Ready(())
        });
        // A cut only makes the line shorter.
        let _ = followed.await;
        dialect::error_message(&body)
    }

    pub(super) fn wait_until(&self) -> Option<Nanos> {
        self.stream_deadline().map(|deadline| deadline.at)
    }

    /// What a stream runs into unless something more comes.
    pub(super) fn stream_deadline(&self) -> Option<Deadline> {
        let has_token = self.record.tokens.count() > 0;
        let timeouts = &self.client.settings.timeouts;
        let whole = self.whole.map(|whole| self.client.t0 + whole);
        timeouts.streaming(self.sent, self.control.last_byte(), has_token, whole)
    }
}

/// Puts the connection back once the body has ended: at once where it has, so that the next request
/// finds it, else in the background and for a limited time.
async fn recycle(client: &Rc<Client>, mut exchange: Exchange, terms: Terms) {
    let ended = poll_fn(|context| Poll::Ready(exchange.poll_read(context, |_, _| ()))).await;
    if exchange.has_ended() {
        put_back(client, exchange, terms);
        return;
    }
    if matches!(ended, Poll::Ready(Some(Err(_)))) {
        return;
    }
    let client = client.clone();
    tokio::task::spawn_local(async move {
        let deadline = client.clock.now() + END_OF_BODY_LIMIT;
        let end = async {
            let mut next = async || poll_fn(|context| exchange.poll_read(context, |_, _| ())).await;
            while let Some(Ok(())) = next().await {}
        };
        if AttemptControl::default().guard(&client.clock, Some(deadline), end).await.is_ok() {
            put_back(&client, exchange, terms);
        }
    });
}

fn put_back(client: &Rc<Client>, exchange: Exchange, terms: Terms) {
    if let Some(connection) = exchange.into_connection()
        && client.pool.put_back(connection, terms)
    {
        let client = client.clone();
        tokio::task::spawn_local(async move { client.pool.sweep().await });
    }
}
