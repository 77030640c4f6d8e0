//! Signs that an exchange is not what it should be, read from a response.
//!
//! Pure. Absent: outcomes, which are the stream's to name.

use super::exchange::Head;

/// What a body is that is no stream of events, by its type. Other types are read as one, since not
/// every server names it.
pub(super) fn other_form(content_type: &str) -> Option<&'static str> {
    match content_type {
        "application/json" | "application/problem+json" => Some("JSON body"),
        "text/html" => Some("HTML page"),
        _ => None,
    }
}

/// The same, by what stands in the body outside of any event.
pub(super) fn form_of_text(text: &[u8]) -> Option<&'static str> {
    match text.trim_ascii_start().first()? {
        b'{' | b'[' => Some("JSON body"),
        b'<' => Some("HTML page"),
        _ => None,
    }
}

pub(super) fn no_events_words(form: &str, message: &str) -> String {
    format!("expected a stream of events, got one {form}: {message}")
}

pub(super) fn is_compressed(head: &Head) -> bool {
    !matches!(head.encoding.as_str(), "" | "identity")
}

pub(super) fn compressed_words(head: &Head) -> String {
    let encoding = &head.encoding;
    format!(
        "the answer came compressed (content-encoding: {encoding}) although identity was asked for, \
         so its events cannot be timed; turn compression off for event streams"
    )
}
