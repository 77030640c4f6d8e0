//! One JSON object laid over another: `--extra` over the defaults, a row's `body` over both.
//!
//! Objects merge deeply, anything else replaces, null sets null. Values keep their bytes and keys their
//! order, since both reach the model: a tool's schema is put into the prompt as it is written.
//! Deliberately absent: merging of arrays, and removal of keys.

use serde_json::value::RawValue;

use super::raw::{Member, members};

/// How deep objects are merged; nothing that a server reads nests like that.
const DEPTH: usize = 64;

/// Why two objects cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// One of them is no JSON object.
    #[error("{which} is no JSON object ({reason})")]
    NotAnObject {
        /// Which one.
        which: &'static str,
        /// What the reader says.
        reason: serde_json::Error,
    },
    /// Objects within objects beyond the limit.
    #[error("objects are nested more than {DEPTH} deep")]
    TooDeep,
}

/// Lays the object `over` over the object `base`; where both have a key, `over` wins.
pub fn merge(base: &[u8], over: &RawValue) -> Result<Vec<u8>, MergeError> {
    let base = serde_json::from_slice::<&RawValue>(base)
        .map_err(|reason| MergeError::NotAnObject { which: "the body under it", reason })?;
    let mut out = Vec::with_capacity(base.get().len() + over.get().len());
    write_merged(&mut out, base.get(), over.get(), DEPTH)?;
    Ok(out)
}

/// The same of two values.
///
/// # Panics
///
/// Never: two objects make an object.
pub fn merged(base: &RawValue, over: &RawValue) -> Result<Box<RawValue>, MergeError> {
    let bytes = merge(base.get().as_bytes(), over)?;
    let text = String::from_utf8(bytes).expect("made of two texts");
    Ok(RawValue::from_string(text).expect("two objects make an object"))
}

/// Of a repeated key the last value counts, in either object, as it does for whoever reads them.
fn write_merged(out: &mut Vec<u8>, base: &str, over: &str, depth: usize) -> Result<(), MergeError> {
    if depth == 0 {
        return Err(MergeError::TooDeep);
    }
    let not_an_object = |which| move |reason| MergeError::NotAnObject { which, reason };
    let mut merged: Vec<(Member<'_>, Option<&RawValue>)> = Vec::new();
    for (key, value) in members(base).map_err(not_an_object("the body under it"))? {
        match merged.iter_mut().find(|((known, _), _)| *known == key) {
            Some(((_, earlier), _)) => *earlier = value,
            None => merged.push(((key, value), None)),
        }
    }
    for (key, value) in members(over).map_err(not_an_object("the object to merge"))? {
        match merged.iter_mut().find(|((known, _), _)| *known == key) {
            Some((_, laid)) => *laid = Some(value),
            None => merged.push(((key, value), Some(value))),
        }
    }
    out.push(b'{');
    for (at, ((key, value), laid)) in merged.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        serde_json::to_writer(&mut *out, key).expect("a string always is JSON");
        out.push(b':');
        match laid {
            Some(over) if is_object(value) && is_object(over) => {
                write_merged(out, value.get(), over.get(), depth - 1)?;
            }
            Some(over) => out.extend_from_slice(over.get().as_bytes()),
            None => out.extend_from_slice(value.get().as_bytes()),
        }
    }
    out.push(b'}');
    Ok(())
}

fn is_object(value: &RawValue) -> bool {
    value.get().starts_with('{')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).expect("JSON")
    }

    #[test]
    fn a_rows_body_wins_and_keeps_its_bytes() {
        let check = |base: &str, over: &str, expect: &str| {
            let merged = merge(base.as_bytes(), &raw(over)).expect("objects");
            assert_eq!(String::from_utf8(merged).expect("UTF-8"), expect, "{base} under {over}");
        };
        check(r#"{"a":1,"b":2}"#, r#"{"c":1.50,"a":true}"#, r#"{"a":true,"b":2,"c":1.50}"#);
        check(r#"{"a":1}"#, r#"{"a":null}"#, r#"{"a":null}"#);
        check(
            r#"{"a":{"x":1,"y":{"z":1}}}"#,
            r#"{"a":{"y":{"w":2}}}"#,
            r#"{"a":{"x":1,"y":{"z":1,"w":2}}}"#,
        );
        check(r#"{"a":{"x":1}}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#);
        check(r#"{"a":[1,2]}"#, r#"{"a":[3]}"#, r#"{"a":[3]}"#);
        check(
            r#"{"a":1}"#,
            r#"{"a":{"z":12345678901234567890.0,"b":1e400}}"#,
            r#"{"a":{"z":12345678901234567890.0,"b":1e400}}"#,
        );
        check("{}", r#"{"z":1,"a":2,"z":3}"#, r#"{"z":3,"a":2}"#);
        check(r#"{"a":1}"#, r#"{"a":2,"a":3,"\u0062":4}"#, r#"{"a":3,"b":4}"#);
        check(r#"{"a":1}"#, "{}", r#"{"a":1}"#);
        for not in ["[1]", "7", "null", "\"a\""] {
            let message = merge(b"{}", &raw(not)).expect_err(not).to_string();
            assert!(message.starts_with("the object to merge is no JSON object"), "{message}");
        }
        let deep = format!("{}1{}", r#"{"a":"#.repeat(1000), "}".repeat(1000));
        let error = merge(deep.as_bytes(), &raw(&deep)).expect_err("too deep").to_string();
        assert_eq!(error, "objects are nested more than 64 deep");
    }
}
