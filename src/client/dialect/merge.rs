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
