//! JSON taken apart one level at a time, as slices of its text: for the paths that must lose nothing.
//!
//! Key order, number spelling and repeated keys stay as they are, and a part that nobody asks for
//! is never judged. Deliberately absent: a value tree, and depth: taking apart does not recurse.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A key and its value, unread.
pub(super) type Member<'a> = (Cow<'a, str>, &'a RawValue);

/// The members of an object in their order.
pub(super) fn members(text: &str) -> Result<Vec<Member<'_>>, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let members = deserializer.deserialize_map(Members)?;
    deserializer.end()?;
    Ok(members)
}

/// The members of an object; none of anything else.
pub(super) fn members_or_none(value: &RawValue) -> Vec<Member<'_>> {
    members(value.get()).unwrap_or_default()
}

/// The value of a key; of a repeated one the last.
pub(super) fn last<'a>(members: &[Member<'a>], key: &str) -> Option<&'a RawValue> {
    members.iter().rev().find(|(name, _)| name == key).map(|(_, value)| *value)
}

/// The elements of an array; none of anything else.
pub(super) fn elements(value: &RawValue) -> Vec<&RawValue> {
    serde_json::from_str(value.get()).unwrap_or_default()
}

/// A string's text; `None` for anything else and for the empty string.
pub(super) fn text_of(value: &RawValue) -> Option<Cow<'_, str>> {
    let text = value.get();
    // Most strings have no escape and need no copy.
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let words = if inner.contains('\\') {
        Cow::Owned(serde_json::from_str(text).ok()?)
    } else {
        Cow::Borrowed(inner)
    };
    Some(words).filter(|words| !words.is_empty())
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<Member<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(Key(key)) = map.next_key()? {
            members.push((key, map.next_value()?));
        }
        Ok(members)
    }
}

/// `Cow` on its own never borrows.
#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);
