//! One JSON line into the raw text of the keys a format knows.
//!
//! Values stay as they were written, so that a number never passes through floating point and a body
//! is kept to the byte. No value tree is built; unknown keys are skipped and their names kept.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::error::{Fault, shorten};
use super::number::{TimeUnit, float_time_ns, token_count};
use crate::json_scan::Scan;

/// Names of unknown keys that are remembered; a hostile file must not fill memory with them.
const UNKNOWN_LIMIT: usize = 64;

/// The raw value of each known key, in the order of the names given; JSON `null` counts as absent.
pub(super) type Slots<'a, const N: usize> = [Option<&'a str>; N];

/// Reads one object. Names of keys it does not know are added to `unknown`, once each.
pub(super) fn read_object<'a, const N: usize>(
    line: &'a [u8],
    names: &[&str; N],
    unknown: &mut Vec<String>,
) -> Result<Slots<'a, N>, Fault> {
    let mut slots = [None; N];
    read_slots(line, names, &mut slots, unknown)?;
    Ok(slots)
}

/// Reads one object into as many empty slots as there are names.
pub(super) fn read_slots<'a>(
    line: &'a [u8],
    names: &[&str],
    slots: &mut [Option<&'a str>],
    unknown: &mut Vec<String>,
) -> Result<(), Fault> {
    let text = std::str::from_utf8(line).map_err(|error| {
        Fault::row(format!("byte {} is not UTF-8; save the file as UTF-8", error.valid_up_to() + 1))
    })?;
    let mut json = serde_json::Deserializer::from_str(text);
    let read = (&mut json).deserialize_map(ObjectVisitor { names, slots, unknown });
    read.and_then(|()| json.end()).map_err(|error| syntax_fault(line, &error))
}

/// What `serde_json` found, without the place that it adds.
fn problem_of(error: &serde_json::Error) -> String {
    let mut message = error.to_string();
    message.truncate(message.find(" at line ").unwrap_or(message.len()));
    message
}

/// Says what `serde_json` found, where, and what stands there.
fn syntax_fault(line: &[u8], error: &serde_json::Error) -> Fault {
    let what = problem_of(error);
    if error.is_data() {
        return Fault::row(what);
    }
    let at = error.column().saturating_sub(1).min(line.len());
    let near = &line[at..];
    let remedy = if ["NaN", "Infinity", "-Infinity"]
        .iter()
        .any(|word| near.starts_with(word.as_bytes()) || near.starts_with(&word.as_bytes()[1..]))
    {
        "NaN and Infinity are no JSON; write a number or leave the row out"
    } else {
        "each line must hold one whole JSON object"
    };
    Fault::row(format!("no valid JSON at byte {} (`{}`): {what}; {remedy}", at + 1, shorten(near)))
}

struct ObjectVisitor<'n, 'de> {
    names: &'n [&'n str],
    slots: &'n mut [Option<&'de str>],
    unknown: &'n mut Vec<String>,
}

impl<'de> Visitor<'de> for ObjectVisitor<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one JSON object on the line")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { names, slots, unknown } = self;
        while let Some(known) = map.next_key_seed(KeySeed { names, unknown: &mut *unknown })? {
            let Some(place) = known else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if slots[place].is_some() {
                let name = names[place];
                return Err(de::Error::custom(format_args!("key `{name}` stands twice; keep one")));
            }
            slots[place] = Some(map.next_value::<&'de RawValue>()?.get());
        }
        for slot in slots {
            *slot = slot.filter(|value| *value != "null");
        }
        Ok(())
    }
}

/// A key's place among the names, or `None` after noting that it is unknown.
struct KeySeed<'n> {
    names: &'n [&'n str],
    unknown: &'n mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for KeySeed<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeySeed<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<Self::Value, E> {
        let place = self.names.iter().position(|name| *name == key);
        if place.is_none()
            && self.unknown.len() < UNKNOWN_LIMIT
            && !self.unknown.iter().any(|name| name == key)
        {
            let name = shorten(key.as_bytes());
            if !self.unknown.contains(&name) {
                self.unknown.push(name);
            }
        }
        Ok(place)
    }
}

/// The text of a number; anything else is a fault that names it.
pub(super) fn number_text<'a>(raw: &'a str, key: &str) -> Result<&'a [u8], Fault> {
    match raw.as_bytes().first() {
        Some(b'"') => Err(Fault::at(
            key,
            format!("{} is a string; write the number without quotes", shorten(raw.as_bytes())),
        )),
        Some(b'[' | b'{' | b't' | b'f') => {
            Err(Fault::at(key, format!("`{}` is not a number; write one", shorten(raw.as_bytes()))))
        }
        _ => Ok(raw.as_bytes()),
    }
}

/// What `serde_json` found within a value, and where in it.
pub(super) fn json_fault(error: &serde_json::Error) -> String {
    let what = problem_of(error);
    match (error.line(), error.column()) {
        (0, _) => what,
        (1, byte) => format!("{what} (byte {byte})"),
        (line, byte) => format!("{what} (its line {line}, byte {byte})"),
    }
}

/// A name: text, or a number taken as text. Empty text is no name.
pub(super) fn word<'a>(raw: &'a str, key: &str) -> Result<Option<Cow<'a, str>>, Fault> {
    let text = match raw.as_bytes().first() {
        Some(b'"') => Cow::Owned(text(raw, key)?),
        Some(b'0'..=b'9' | b'-') => Cow::Borrowed(raw),
        _ => return Err(Fault::at(key, "is neither text nor a number; write text")),
    };
    Ok(Some(text).filter(|text| !text.is_empty()))
}

pub(super) fn text(raw: &str, key: &str) -> Result<String, Fault> {
    serde_json::from_str(raw).map_err(|_| Fault::at(key, "is no text; write a JSON string"))
}

/// The keys of one object, told by the names of their format.
pub(super) struct JsonRow<'a, const N: usize> {
    pub(super) slots: Slots<'a, N>,
    names: &'static [&'static str; N],
}

impl<'a, const N: usize> JsonRow<'a, N> {
    /// Reads a line.
    pub(super) fn read(
        line: &'a [u8],
        names: &'static [&'static str; N],
        unknown: &mut Vec<String>,
    ) -> Result<Self, Fault> {
        Ok(Self { slots: read_object(line, names, unknown)?, names })
    }

    /// Reads an object within a row, if it is there; what it does not know is of no interest.
    pub(super) fn nested(
        raw: Option<&'a str>,
        key: &str,
        names: &'static [&'static str; N],
    ) -> Result<Self, Fault> {
        let Some(raw) = raw else { return Ok(Self { slots: [None; N], names }) };
        if !raw.starts_with('{') {
            return Err(Fault::at(key, "is no JSON object; write one"));
        }
        Self::read(raw.as_bytes(), names, &mut Vec::new())
    }

    /// The fault of a key that must be there.
    pub(super) fn missing(&self, name: usize) -> Fault {
        Fault::at(self.names[name], "the key is missing; every row needs it")
    }

    /// The text of a number that must be there.
    fn number(&self, name: usize) -> Result<&'a [u8], Fault> {
        self.number_if_any(name)?.ok_or_else(|| self.missing(name))
    }

    /// A time that must be there.
    pub(super) fn time(&self, name: usize, unit: TimeUnit) -> Result<i64, Fault> {
        let read = float_time_ns(self.number(name)?, unit);
        read.map_err(|what| Fault::at(self.names[name], what))
    }

    pub(super) fn time_if_any(&self, name: usize, unit: TimeUnit) -> Result<Option<i64>, Fault> {
        self.slots[name].map(|_| self.time(name, unit)).transpose()
    }

    pub(super) fn number_if_any(&self, name: usize) -> Result<Option<&'a [u8]>, Fault> {
        self.slots[name].map(|raw| number_text(raw, self.names[name])).transpose()
    }

    /// A token count that must be there.
    pub(super) fn tokens(&self, name: usize) -> Result<u32, Fault> {
        token_count(self.number(name)?).map_err(|what| Fault::at(self.names[name], what))
    }

    pub(super) fn tokens_if_any(&self, name: usize) -> Result<Option<u32>, Fault> {
        let count = |text| token_count(text).map_err(|what| Fault::at(self.names[name], what));
        self.number_if_any(name)?.map(count).transpose()
    }

    /// Block ids that may be there.
    pub(super) fn ids(&self, name: usize) -> Result<Option<Vec<u64>>, Fault> {
        self.slots[name].map(|raw| id_list(raw, self.names[name])).transpose()
    }

    /// A name that may be there.
    pub(super) fn word(&self, name: usize) -> Result<Option<Cow<'a, str>>, Fault> {
        self.slots[name].map(|raw| word(raw, self.names[name])).transpose().map(Option::flatten)
    }
}

/// An array or object as it was written, by the bracket that it has to begin with.
pub(super) fn raw_value(raw: &str, opening: char, key: &str) -> Result<Box<RawValue>, Fault> {
    if !raw.starts_with(opening) {
        let kind = if opening == '[' { "array" } else { "object" };
        return Err(Fault::at(key, format!("is no {kind}; write a JSON {kind}")));
    }
    RawValue::from_string(raw.to_owned()).map_err(|error| Fault::at(key, error.to_string()))
}

/// A list of block ids.
pub(super) fn id_list(raw: &str, key: &str) -> Result<Vec<u64>, Fault> {
    let mut scan = Scan::new(raw.as_bytes());
    if let Some(ids) = scan.integers(0).filter(|_| scan.is_at_end()) {
        return Ok(ids);
    }
    serde_json::from_str(raw).map_err(|error| {
        let what = problem_of(&error);
        Fault::at(key, format!("{what}; write a list of whole numbers from 0 to 2^64 - 1"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<([Option<&str>; 2], Vec<String>), String> {
        let mut unknown = Vec::new();
        let slots = read_object(line.as_bytes(), &["a", "b"], &mut unknown)
            .map_err(|fault| fault.problem)?;
        Ok((slots, unknown))
    }

    #[test]
    fn values_stay_as_written() {
        let check = |line: &str, expect: [Option<&str>; 2], unknown: &[&str]| {
            let (slots, names) = read(line).unwrap();
            assert_eq!(
                (slots, names.iter().map(String::as_str).collect::<Vec<_>>()),
                (expect, unknown.to_vec())
            );
        };
        check(r#"{"a": 1.50, "b": [1, 2]}"#, [Some("1.50"), Some("[1, 2]")], &[]);
        check(r#" {"b":"x\n","c":{"d":[1]},"a":null} "#, [None, Some("\"x\\n\"")], &["c"]);
        check(r#"{"\u0061": 3}"#, [Some("3"), None], &[]);
        check("{}", [None, None], &[]);
    }

    #[test]
    fn broken_lines_say_where() {
        let check = |line: &str, part: &str| {
            let message = read(line).unwrap_err();
            assert!(message.contains(part), "{line}: {message}");
        };
        check("[1]", "expected one JSON object on the line");
        check("{\"a\": 1", "no valid JSON at byte");
        check("{\"a\": 1} {", "no valid JSON at byte 10");
        check("{\"a\": 1, \"a\": 2}", "key `a` stands twice");
        check("{\"a\": NaN}", "NaN and Infinity are no JSON");
        check("{\"a\": -Infinity}", "NaN and Infinity are no JSON");
        check("{\"a\": nope}", "one whole JSON object");
        let mut unknown = Vec::new();
        let fault = read_object(b"{\"a\": \"\xff\"}", &["a"], &mut unknown).unwrap_err();
        assert!(fault.problem.contains("byte 8 is not UTF-8"), "{}", fault.problem);
    }

    #[test]
    fn unknown_keys_are_bounded() {
        let mut unknown = Vec::new();
        for i in 0..1000 {
            read_object(format!("{{\"k{i}\": 1}}").as_bytes(), &["a"], &mut unknown).unwrap();
        }
        assert_eq!(unknown.len(), UNKNOWN_LIMIT);
    }
}
