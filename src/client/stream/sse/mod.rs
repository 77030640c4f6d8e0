//! The decoder of server-sent events: bytes in, events out, however the bytes were cut.
//!
//! The rules are those of the WHATWG HTML standard (§9.2.6, "interpreting an event stream"), applied
//! to bytes, with departures that a measuring client needs. Complete `data:` lines that are
//! pending at the end of a stream are dispatched, since what a server wrote has arrived; a last
//! `data: [DONE]` counts without any line end, since nothing can be missing from it; and an `error`
//! field, which older llama.cpp servers write in the place of `data`, is an event named `error`.
//! Lines that are of no field at all are kept for whoever wants to know what a server said there.
//!
//! Each byte is searched once, copied at most once when its line was cut by a read, and moved at most
//! once more: linear time on any fragmentation. An event that lies whole in one read is handed over
//! as a slice of that read, without a copy and without an allocation.
//!
//! Deliberately absent: sockets and clocks (the caller stamps a read before feeding it), JSON (see
//! [`super::dialect`]), UTF-8 validation, `id` and `retry` (nothing here ever reconnects).

mod line;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;

use line::{ERROR, Field, field, without_mark};

/// The most bytes that the lines of one event may have: 16 MiB, some eight times the largest known.
pub const MAX_EVENT_BYTES: usize = 16 << 20;

/// Bytes kept of lines that are of no field: more than any error page has for a good reason.
const STRAY_BYTES: usize = 64 << 10;

/// What stays allocated between events; the buffer of a larger one is given back.
const KEEP_BYTES: usize = 64 << 10;

const DONE: &[u8] = b"[DONE]";

/// One event, borrowed from the read or from the decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The `event:` field; empty where there was none (the standard calls such an event `message`).
    pub name: &'a [u8],
    /// The values of the `data` lines, joined with line feeds.
    pub data: &'a [u8],
}

/// Why a stream cannot be decoded any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// More than [`MAX_EVENT_BYTES`] without an end of event.
    #[error("an event of the stream is longer than {limit} bytes (MAX_EVENT_BYTES)")]
    TooLong {
        /// The limit that was passed.
        limit: usize,
    },
}

/// The state between two reads. One decoder serves one stream, and after an error none.
#[derive(Debug)]
pub struct Decoder {
    /// The data of the event under way, then from `line_start` the unfinished line as it came.
    buffer: Vec<u8>,
    line_start: usize,
    /// Whether the event under way has had a `data` line, maybe an empty one.
    has_data: bool,
    /// The `event` field of the event under way.
    name: Vec<u8>,
    /// Bytes of the field lines of the event under way, for the limit.
    event_bytes: usize,
    limit: usize,
    /// Lines that are of no field, as far as [`STRAY_BYTES`] go.
    stray: Vec<u8>,
    /// The last read ended in CR: an LF at the start of the next belongs to it.
    skip_lf: bool,
    /// No line has ended yet: a byte order mark may stand at the front of this one.
    is_first_line: bool,
    /// Bytes searched, copied and moved, which the tests hold against the bytes fed.
    #[cfg(test)]
    work: usize,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

/// The fields of the event under way that lie in the present read, not yet copied.
#[derive(Default)]
struct Borrowed<'a> {
    data: Option<&'a [u8]>,
    name: Option<&'a [u8]>,
}

impl Decoder {
    /// A decoder at the start of a stream.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(MAX_EVENT_BYTES)
    }

    fn with_limit(limit: usize) -> Self {
        Self {
            buffer: Vec::new(),
            line_start: 0,
            has_data: false,
            name: Vec::new(),
            event_bytes: 0,
            limit,
            stray: Vec::new(),
            skip_lf: false,
            is_first_line: true,
            #[cfg(test)]
            work: 0,
        }
    }

    /// Takes the bytes of one read and hands over every event that they complete, in order.
    ///
    /// An event is complete with the line end of its empty line, so with a lone CR at the end of a
    /// read: it is not held back to see whether an LF follows.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        mut on_event: impl FnMut(Event<'_>),
    ) -> Result<(), SseError> {
        let mut rest = bytes;
        if self.skip_lf && !rest.is_empty() {
            self.skip_lf = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        let mut borrowed = Borrowed::default();
        while let Some(end) = memchr::memchr2(b'\n', b'\r', rest) {
            self.count_work(end + 1);
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            rest = match (rest[end], after) {
                (b'\r', [b'\n', after @ ..]) => after,
                (b'\r', []) => {
                    self.skip_lf = true;
                    after
                }
                _ => after,
            };
            if self.buffer.len() == self.line_start {
                self.take_line(line, &mut borrowed, &mut on_event)?;
            } else {
                self.hold(line)?;
                self.take_held_line(&mut on_event);
            }
            self.is_first_line = false;
        }
        self.settle(&borrowed);
        self.count_work(rest.len());
        self.hold(rest)
    }

    /// Ends the stream: dispatches what complete `data` lines are pending, and a last `data: [DONE]` or
    /// `error` without a line end.
    ///
    /// Returns the length of an unfinished last line, which is dropped; above zero means that the
    /// stream was cut within a line.
    pub fn finish(&mut self, mut on_event: impl FnMut(Event<'_>)) -> usize {
        let last = self.buffer.split_off(self.line_start);
        let last = without_mark(&last, self.is_first_line);
        self.dispatch_held(&mut on_event);
        match field(last) {
            Field::Data(DONE) => on_event(Event { name: b"", data: DONE }),
            Field::Error(data) => on_event(Event { name: ERROR, data }),
            kind => {
                if matches!(kind, Field::Stray) {
                    self.keep_stray(last);
                }
                return last.len();
            }
        }
        0
    }

    /// The lines that were of no field, one below the other: JSON or HTML where a server forgot what it
    /// was asked for. An unfinished last one is among them once the stream is [finished](Self::finish).
    #[must_use]
    pub fn into_stray(self) -> Vec<u8> {
        self.stray
    }

    /// Whether the bytes held back are exactly `data: [DONE]`, with or without its line end.
    ///
    /// A gateway may keep the socket open after it, so that no blank line and no end ever comes.
    #[must_use]
    pub fn holds_done(&self) -> bool {
        let (data, line) = self.buffer.split_at(self.line_start);
        match (self.has_data, line.is_empty()) {
            (true, true) => data == DONE,
            (false, false) => {
                matches!(field(without_mark(line, self.is_first_line)), Field::Data(DONE))
            }
            _ => false,
        }
    }

    /// A line that lies whole in the present read.
    fn take_line<'a>(
        &mut self,
        line: &'a [u8],
        borrowed: &mut Borrowed<'a>,
        on_event: &mut impl FnMut(Event<'_>),
    ) -> Result<(), SseError> {
        let line_len = line.len();
        let line = without_mark(line, self.is_first_line);
        if line.is_empty() {
            self.end_event(borrowed, on_event);
            return Ok(());
        }
        self.check_limit(line_len)?;
        match field(line) {
            Field::Data(value) if borrowed.data.is_none() && !self.has_data => {
                borrowed.data = Some(value);
            }
            Field::Data(value) => {
                if let Some(first) = borrowed.data.take() {
                    self.push_data(first);
                }
                self.push_data(value);
            }
            Field::Name(value) => borrowed.name = Some(value),
            Field::Error(data) => {
                self.end_event(borrowed, on_event);
                on_event(Event { name: ERROR, data });
                return Ok(());
            }
            Field::Ignored => return Ok(()),
            Field::Stray => {
                self.keep_stray(line);
                return Ok(());
            }
        }
        self.event_bytes += line_len;
        Ok(())
    }

    /// Hands over the event under way, if there is one.
    fn end_event(&mut self, borrowed: &mut Borrowed<'_>, on_event: &mut impl FnMut(Event<'_>)) {
        let Some(data) = borrowed.data.take() else {
            self.settle(&std::mem::take(borrowed));
            self.dispatch_held(on_event);
            return;
        };
        // Data in the buffer would have kept this data out of `borrowed`, so this is all of it.
        let name = borrowed.name.take().unwrap_or(&self.name);
        on_event(Event { name, data });
        self.reset();
    }

    /// The line in the buffer, which began in an earlier read, so it is not empty, and is complete now.
    fn take_held_line(&mut self, on_event: &mut impl FnMut(Event<'_>)) {
        let line_len = self.buffer.len() - self.line_start;
        let mut kept = self.line_start;
        match field(without_mark(&self.buffer[kept..], self.is_first_line)) {
            Field::Data(value) => {
                let value_len = value.len();
                let from = self.buffer.len() - value_len;
                if self.has_data {
                    // Five bytes of `data:` stand here, so there is room for the separator.
                    self.buffer[kept] = b'\n';
                    kept += 1;
                }
                self.buffer.copy_within(from.., kept);
                self.count_work(value_len);
                kept += value_len;
                self.has_data = true;
                self.event_bytes += line_len;
            }
            Field::Name(value) => {
                self.name.clear();
                self.name.extend_from_slice(value);
                self.event_bytes += line_len;
            }
            Field::Ignored => {}
            Field::Error(_) | Field::Stray => {
                // Neither is seen in a stream that goes well.
                let line = self.buffer.split_off(kept);
                let line = without_mark(&line, self.is_first_line);
                if let Field::Error(data) = field(line) {
                    self.dispatch_held(on_event);
                    on_event(Event { name: ERROR, data });
                    return;
                }
                self.keep_stray(line);
            }
        }
        self.buffer.truncate(kept);
        self.line_start = kept;
    }

    /// Copies what is still borrowed from a read that ends before the event does.
    fn settle(&mut self, borrowed: &Borrowed<'_>) {
        if let Some(data) = borrowed.data {
            self.push_data(data);
        }
        if let Some(name) = borrowed.name {
            self.name.clear();
            self.name.extend_from_slice(name);
        }
    }

    /// Appends the value of a `data` line to the event under way.
    fn push_data(&mut self, value: &[u8]) {
        debug_assert_eq!(self.line_start, self.buffer.len(), "no unfinished line is held");
        if self.has_data {
            self.buffer.push(b'\n');
        }
        self.buffer.extend_from_slice(value);
        self.count_work(value.len());
        self.line_start = self.buffer.len();
        self.has_data = true;
    }

    /// Keeps a line that is of no field, or its beginning.
    fn keep_stray(&mut self, line: &[u8]) {
        let room = STRAY_BYTES.saturating_sub(self.stray.len());
        let line = &line[..line.len().min(room)];
        self.stray.extend_from_slice(line);
        if room > line.len() {
            self.stray.push(b'\n');
        }
        self.count_work(line.len());
    }

    /// Appends to the unfinished line.
    fn hold(&mut self, part: &[u8]) -> Result<(), SseError> {
        self.check_limit(self.buffer.len() - self.line_start + part.len())?;
        self.buffer.extend_from_slice(part);
        self.count_work(part.len());
        Ok(())
    }

    /// Hands over the event in the buffer, unless no `data` line belongs to it.
    fn dispatch_held(&mut self, on_event: &mut impl FnMut(Event<'_>)) {
        if self.has_data {
            on_event(Event { name: &self.name, data: &self.buffer });
        }
        self.reset();
    }

    fn reset(&mut self) {
        self.buffer.clear();
        self.buffer.shrink_to(KEEP_BYTES);
        self.name.clear();
        self.line_start = 0;
        self.has_data = false;
        self.event_bytes = 0;
    }

    /// The limit is on lines as they came, so that it does not depend on how a stream was cut.
    fn check_limit(&self, line_len: usize) -> Result<(), SseError> {
        if self.event_bytes.saturating_add(line_len) > self.limit {
            return Err(SseError::TooLong { limit: self.limit });
        }
        Ok(())
    }

    #[cfg_attr(not(test), expect(clippy::unused_self, reason = "counts in tests only"))]
    #[inline]
    fn count_work(&mut self, bytes: usize) {
        #[cfg(test)]
        {
            self.work += bytes;
        }
        let _ = bytes;
    }
}
