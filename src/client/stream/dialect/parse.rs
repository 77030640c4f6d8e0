//! The data of one event as a chunk, by the quick reading where it takes it, else by the lenient one.

use super::chunk::Chunk;
use super::error_text::{error_message, one_line};
use super::{lenient, quick};

/// What one event of a stream says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// `[DONE]`: the end of the stream.
    Done,
    /// Anything else.
    Chunk(Chunk<'a>),
}

/// An event whose data is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is no JSON object ({reason}): `{excerpt}`")]
pub struct ChunkError {
    reason: String,
    excerpt: String,
}

/// Characters of an event that its error quotes.
const EXCERPT_CHARS: usize = 80;

/// Reads one event. An event named `error` is one, whatever form its data has.
pub fn parse_event<'a>(name: &[u8], data: &'a [u8]) -> Result<Parsed<'a>, ChunkError> {
    if name != b"error" {
        return parse(data);
    }
    let mut chunk = match parse(data) {
        Ok(Parsed::Chunk(chunk)) => chunk,
        _ => Chunk::default(),
    };
    chunk.error.get_or_insert_with(|| error_message(data));
    Ok(Parsed::Chunk(chunk))
}

/// Reads the data of one event. Empty data says nothing, so it is a chunk without anything.
pub fn parse(data: &[u8]) -> Result<Parsed<'_>, ChunkError> {
    let data = data.trim_ascii();
    if data == b"[DONE]" {
        return Ok(Parsed::Done);
    }
    if data.is_empty() {
        return Ok(Parsed::Chunk(Chunk::default()));
    }
    let mut chunk = match quick::read(data) {
        Some(chunk) => chunk,
        None => read_slowly(data)?,
    };
    chunk.mark_running();
    Ok(Parsed::Chunk(chunk))
}

/// Reads whatever is a JSON object, in whatever encoding.
pub(super) fn read_slowly(data: &[u8]) -> Result<Chunk<'_>, ChunkError> {
    let chunk = match std::str::from_utf8(data) {
        Ok(text) => lenient::read(text),
        Err(_) => lenient::read(&String::from_utf8_lossy(data)).map(Chunk::into_owned),
    };
    chunk.map_err(|reason| ChunkError {
        reason: reason.to_string(),
        excerpt: one_line(&String::from_utf8_lossy(data), EXCERPT_CHARS),
    })
}

/// The server's words where text outside of any event is an error as JSON: all of it, or a line of it.
#[must_use]
pub fn error_outside(text: &[u8]) -> Option<String> {
    std::iter::once(text).chain(text.split(|byte| *byte == b'\n')).find_map(|json| {
        match parse(json).ok()? {
            Parsed::Chunk(chunk) => chunk.error,
            Parsed::Done => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_outside_of_events_is_found_among_other_lines() {
        let check = |text: &str, expect: Option<&str>| {
            assert_eq!(error_outside(text.as_bytes()).as_deref(), expect, "{text}");
        };
        check("{\"error\":{\n\"message\":\"a\"}}\n", Some("a"));
        check("junk\n{\"error\":\"a\"}\n{\"error\":\"b\"}\n", Some("a"));
        check("{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n", None);
        check("Internal Server Error\n[DONE]\n", None);
        check("", None);
    }
}
