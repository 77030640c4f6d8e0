//! One line of a stream of events, without its end: of which field it is, and the value.

/// The field of older llama.cpp servers, and the name of the event that it makes.
pub(super) const ERROR: &[u8] = b"error";

/// The byte order mark, in UTF-8.
pub(super) const BOM: &[u8] = b"\xef\xbb\xbf";

/// What a line says.
pub(super) enum Field<'a> {
    Data(&'a [u8]),
    Name(&'a [u8]),
    /// No field of the standard, and never an empty one.
    Error(&'a [u8]),
    /// A comment, or a field that says nothing here.
    Ignored,
    Stray,
}

/// A line without the byte order mark that may stand at the very start of a stream.
pub(super) fn without_mark(line: &[u8], is_first: bool) -> &[u8] {
    if is_first { line.strip_prefix(BOM).unwrap_or(line) } else { line }
}

/// Reads a line: its field's name, then its value after one optional space.
pub(super) fn field(line: &[u8]) -> Field<'_> {
    let value = |name: &[u8]| match line.strip_prefix(name)? {
        [] => Some(&[][..]),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    };
    match line.first() {
        Some(b'd') => value(b"data").map_or(Field::Stray, Field::Data),
        Some(b'e') => match (value(b"event"), value(ERROR)) {
            (Some(name), _) => Field::Name(name),
            (_, Some([])) => Field::Ignored,
            (_, Some(error)) => Field::Error(error),
            _ => Field::Stray,
        },
        Some(b':') | None => Field::Ignored,
        _ if value(b"id").or_else(|| value(b"retry")).is_some() => Field::Ignored,
        _ => Field::Stray,
    }
}
