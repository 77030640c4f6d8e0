//! Where the body of an HTTP/1.1 response begins and ends among the bytes of its connection: bytes in,
//! pieces of body out, however the bytes were cut.
//!
//! The rules are those of RFC 9112 §6.3 and §7.1. A piece is a slice of what came in, so nothing is
//! copied and nothing allocated. Deliberately absent: sockets, trailers' meaning (they are skipped), and
//! codings other than `chunked`.

use hyper::header::{CONTENT_LENGTH, HeaderMap, TRANSFER_ENCODING};
use hyper::{StatusCode, Version};

/// Bytes that all the extensions of a body's chunks may have.
const EXTENSION_LIMIT: u32 = 16 << 10;
/// Bytes that the trailers of a body may have.
const TRAILER_LIMIT: u32 = 16 << 10;

/// What makes a body unreadable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// In the head.
    #[error("its content-length is not one number")]
    Length,
    /// In the head.
    #[error("it is HTTP/1.0 and has a transfer-encoding, which that version does not know")]
    Coding,
    /// Not a chunk.
    #[error("its body is not in the chunks that its head promises")]
    Chunk,
    /// More than `EXTENSION_LIMIT`.
    #[error("the extensions of its chunks are longer than {EXTENSION_LIMIT} bytes")]
    Extensions,
    /// More than `TRAILER_LIMIT`.
    #[error("its trailers are longer than {TRAILER_LIMIT} bytes")]
    Trailers,
}

/// A body under way.
#[derive(Debug)]
pub(super) enum Framing {
    Length(u64),
    Chunked(Chunked),
    /// The end of the connection is that of the body.
    UntilClose,
}

impl Framing {
    /// How the body of a response to anything but HEAD and CONNECT is framed.
    pub(super) fn of(
        status: StatusCode,
        version: Version,
        headers: &HeaderMap,
    ) -> Result<Self, FramingError> {
        let has_none = status.is_informational()
            || [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&status);
        if has_none {
            return Ok(Self::Length(0));
        }
        if let Some(coding) = headers.get_all(TRANSFER_ENCODING).iter().next_back() {
            if version < Version::HTTP_11 {
                return Err(FramingError::Coding);
            }
            let last = coding.to_str().unwrap_or("").rsplit(',').next().unwrap_or("").trim();
            return Ok(if last.eq_ignore_ascii_case("chunked") {
                Self::Chunked(Chunked::default())
            } else {
                Self::UntilClose
            });
        }
        let mut lengths = headers
            .get_all(CONTENT_LENGTH)
            .iter()
            .flat_map(|value| value.to_str().unwrap_or("?").split(','))
            .map(|text| length(text.trim()));
        let Some(first) = lengths.next() else {
            return Ok(Self::UntilClose);
        };
        let first = first.ok_or(FramingError::Length)?;
        if lengths.any(|other| other != Some(first)) {
            return Err(FramingError::Length);
        }
        Ok(Self::Length(first))
    }

    /// Whether nothing more belongs to the body.
    pub(super) fn has_ended(&self) -> bool {
        match self {
            Self::Length(left) => *left == 0,
            Self::Chunked(chunked) => chunked.part == Part::End,
            Self::UntilClose => false,
        }
    }

    /// Whether the body may end with its connection.
    pub(super) fn ends_with_connection(&self) -> bool {
        matches!(self, Self::UntilClose)
    }

    /// Takes the next piece of body off the front of `bytes`; `None` when they are used up or the body
    /// has ended, in which case those that follow it are left.
    pub(super) fn next<'a>(
        &mut self,
        bytes: &mut &'a [u8],
    ) -> Result<Option<&'a [u8]>, FramingError> {
        match self {
            Self::Length(left) => Ok(take(bytes, left)),
            Self::Chunked(chunked) => chunked.next(bytes),
            Self::UntilClose => {
                let mut endless = u64::MAX;
                Ok(take(bytes, &mut endless))
            }
        }
    }
}

fn length(digits: &str) -> Option<u64> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// At most `left` bytes off the front; `None` for none.
fn take<'a>(bytes: &mut &'a [u8], left: &mut u64) -> Option<&'a [u8]> {
    let at = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
    if at == 0 {
        return None;
    }
    let (piece, rest) = bytes.split_at(at);
    *bytes = rest;
    *left -= at as u64;
    Some(piece)
}

/// The state of a chunked body.
#[derive(Debug, Default)]
pub(super) struct Chunked {
    part: Part,
    /// The size being read, then what is left of the chunk.
    size: u64,
    extensions: u32,
    trailers: u32,
}

/// What comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    FirstDigit,
    Digits,
    SpaceAfterSize,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    TrailerStart,
    Trailer,
    TrailerLf,
    EndLf,
    End,
}

impl Chunked {
    fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Result<Option<&'a [u8]>, FramingError> {
        loop {
            if self.part == Part::Data {
                let piece = take(bytes, &mut self.size);
                if self.size == 0 {
                    self.part = Part::DataCr;
                }
                return Ok(piece);
            }
            if self.part == Part::End {
                return Ok(None);
            }
            let Some((&byte, rest)) = bytes.split_first() else {
                return Ok(None);
            };
            *bytes = rest;
            self.part = self.step(byte)?;
        }
    }

    /// One byte of what is no data.
    fn step(&mut self, byte: u8) -> Result<Part, FramingError> {
        Ok(match (self.part, byte) {
            (Part::FirstDigit | Part::Digits, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = char::from(byte).to_digit(16).map_or(0, u64::from);
                let size = self.size.checked_mul(16).ok_or(FramingError::Chunk)?;
                self.size = size | digit;
                Part::Digits
            }
            (Part::Digits | Part::SpaceAfterSize, b' ' | b'\t') => Part::SpaceAfterSize,
            (Part::Digits | Part::SpaceAfterSize, b';') => Part::Extension,
            (Part::Digits | Part::SpaceAfterSize | Part::Extension, b'\r') => Part::SizeLf,
            (Part::Extension, b'\n') => return Err(FramingError::Chunk),
            (Part::Extension, _) => {
                self.extensions += 1;
                if self.extensions > EXTENSION_LIMIT {
                    return Err(FramingError::Extensions);
                }
                Part::Extension
            }
            (Part::SizeLf, b'\n') if self.size == 0 => Part::TrailerStart,
            (Part::SizeLf, b'\n') => Part::Data,
            (Part::DataCr, b'\r') => Part::DataLf,
            (Part::DataLf, b'\n') => Part::FirstDigit,
            (Part::TrailerStart, b'\r') => Part::EndLf,
            (Part::Trailer, b'\r') => Part::TrailerLf,
            (Part::TrailerStart | Part::Trailer, _) => {
                self.trailers += 1;
                if self.trailers > TRAILER_LIMIT {
                    return Err(FramingError::Trailers);
                }
                Part::Trailer
            }
            (Part::TrailerLf, b'\n') => Part::TrailerStart,
            (Part::EndLf, b'\n') => Part::End,
            _ => return Err(FramingError::Chunk),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All of a body, fed `step` bytes at a time: what it holds, whether it ended, what was left over.
    fn decode(
        mut framing: Framing,
        bytes: &[u8],
        step: usize,
    ) -> Result<(String, bool, usize), FramingError> {
        let (mut body, mut left) = (Vec::new(), 0);
        for mut part in bytes.chunks(step) {
            while let Some(piece) = framing.next(&mut part)? {
                assert!(!piece.is_empty());
                body.extend_from_slice(piece);
            }
            left += part.len();
        }
        Ok((String::from_utf8_lossy(&body).into_owned(), framing.has_ended(), left))
    }

    #[track_caller]
    fn check(
        framing: fn() -> Framing,
        bytes: &str,
        expect: Result<(&str, bool, usize), FramingError>,
    ) {
        let expect = expect.map(|(body, ended, left)| (body.to_owned(), ended, left));
        for step in 1..=bytes.len() {
            assert_eq!(decode(framing(), bytes.as_bytes(), step), expect, "{bytes:?} by {step}");
        }
    }

    #[test]
    fn bodies_end_where_their_framing_says() {
        check(|| Framing::Length(3), "abc", Ok(("abc", true, 0)));
        check(|| Framing::Length(3), "abcde", Ok(("abc", true, 2)));
        check(|| Framing::Length(3), "ab", Ok(("ab", false, 0)));
        check(|| Framing::UntilClose, "abc", Ok(("abc", false, 0)));
        let chunked = || Framing::Chunked(Chunked::default());
        check(chunked, "3\r\nabc\r\n0\r\n\r\n", Ok(("abc", true, 0)));
        check(
            chunked,
            "3\r\nabc\r\nA;x=\"y\"\r\n0123456789\r\n00\r\nT: 1\r\nU:2\r\n\r\nrest",
            Ok(("abc0123456789", true, 4)),
        );
        check(chunked, "3 \t\r\nabc\r\n0\r\n\r", Ok(("abc", false, 0)));
        for wrong in [
            "\r\n",
            "g\r\n",
            "-1\r\n",
            "1\nx",
            "1\r\nxx",
            "1\r\nx\rx",
            "3 3\r\n",
            "1;a\n",
            "0\r\nT:1\r\r",
            "11111111111111111\r\n",
            "0\r\n\rx",
        ] {
            check(chunked, wrong, Err(FramingError::Chunk));
        }
    }

    #[test]
    fn nothing_grows_without_bound() {
        let chunked = || Framing::Chunked(Chunked::default());
        let many = "x".repeat(20_000);
        let extension = format!("1;{many}");
        assert_eq!(decode(chunked(), extension.as_bytes(), 999), Err(FramingError::Extensions));
        let trailers = format!("0\r\nT: {many}");
        assert_eq!(decode(chunked(), trailers.as_bytes(), 999), Err(FramingError::Trailers));
    }

    #[test]
    fn the_head_says_how_a_body_is_framed() {
        let of = |status: u16, version: Version, lines: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                headers.append(*name, hyper::header::HeaderValue::from_static(value));
            }
            let status = StatusCode::from_u16(status).expect("a status");
            Framing::of(status, version, &headers).map(|framing| match framing {
                Framing::Length(n) => n.to_string(),
                Framing::Chunked(_) => "chunked".to_owned(),
                Framing::UntilClose => "close".to_owned(),
            })
        };
        let (old, new) = (Version::HTTP_10, Version::HTTP_11);
        let check = |got: Result<String, FramingError>, expect: &str| {
            assert_eq!(got.as_deref(), Ok(expect));
        };
        check(of(200, new, &[]), "close");
        check(of(200, old, &[("content-length", "7")]), "7");
        check(of(200, new, &[("content-length", "7, 7"), ("content-length", "7")]), "7");
        check(
            of(200, new, &[("transfer-encoding", "gzip, Chunked"), ("content-length", "7")]),
            "chunked",
        );
        check(of(200, new, &[("transfer-encoding", "chunked, gzip")]), "close");
        check(of(204, new, &[("transfer-encoding", "chunked")]), "0");
        check(of(304, new, &[("content-length", "9")]), "0");
        assert_eq!(of(200, new, &[("content-length", "7, 8")]), Err(FramingError::Length));
        assert_eq!(of(200, new, &[("content-length", "+7")]), Err(FramingError::Length));
        assert_eq!(of(200, new, &[("content-length", "")]), Err(FramingError::Length));
        assert_eq!(of(200, old, &[("transfer-encoding", "chunked")]), Err(FramingError::Coding));
    }
}
