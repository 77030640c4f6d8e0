//! Tells a trace's format from its first line.
//!
//! Content decides, not the file's name. Formats share keys and mean different things by them (Bailian's
//! rows have Mooncake's, but seconds for milliseconds and blocks of 16 for 512), so what a format alone
//! has is looked for first; what is merely close is refused rather than guessed at.

use super::error::{TraceError, shorten};
use super::formats::{FORMATS, Format};
use super::json::read_slots;
use super::reader::{Reader, Syntax};
use super::table::Fields;

/// JSON lines begin with a brace; nothing else that is known does.
pub(super) fn syntax_of(first: &[u8]) -> Syntax {
    if first.trim_ascii_start().first() == Some(&b'{') { Syntax::Json } else { Syntax::Csv }
}

/// The format of a file by its first line that is not blank, or a hint at what it is instead.
pub(super) fn format_of(first: &[u8]) -> Result<Format, String> {
    match syntax_of(first) {
        Syntax::Json => json_format(first),
        Syntax::Csv => csv_format(first),
    }
}

/// Whether the line may begin a document that is spread over many lines.
pub(super) fn may_be_document(first: &[u8]) -> bool {
    matches!(first.trim_ascii_start().first(), Some(b'{' | b'['))
}

/// The first format of a syntax all of one of whose sets of signs are there. What a format alone has comes
/// before what several share.
fn recognise(syntax: Syntax, is_there: impl Fn(&str) -> bool) -> Option<Format> {
    let mut known: Vec<_> =
        FORMATS.into_iter().filter(|(_, own)| own.syntaxes.contains(&syntax)).collect();
    known.sort_by_key(|(_, own)| own.shares_signs);
    let recognised = known.into_iter().find(|(_, own)| has_any_set(own.signs, &is_there));
    recognised.map(|(format, _)| format)
}

fn has_any_set(sets: &[&[&str]], is_there: impl Fn(&str) -> bool) -> bool {
    sets.iter().any(|set| set.iter().all(|sign| is_there(sign)))
}

fn json_format(first: &[u8]) -> Result<Format, String> {
    let key_of = |sign: &'static str| sign.split_once('=').map_or(sign, |(key, _)| key);
    let signs = FORMATS.iter().flat_map(|(_, own)| own.signs.iter().copied().flatten());
    let mut keys: Vec<&str> = signs.map(|sign| key_of(sign)).collect();
    keys.sort_unstable();
    keys.dedup();
    let mut slots = vec![None; keys.len()];
    read_slots(first, &keys, &mut slots, &mut Vec::new())
        .map_err(|fault| format!(" ({})", fault.problem))?;
    // Of two lengths one may be what is wrong with the row; then its reader says so.
    let is_there = |sign: &str| {
        let (key, start) = sign.split_once('=').unwrap_or((sign, ""));
        let place = keys.binary_search(&key).ok();
        place.and_then(|place| slots[place]).is_some_and(|value| value.starts_with(start))
    };
    recognise(Syntax::Json, is_there).ok_or_else(String::new)
}

/// The format of a document that is spread over lines, by its beginning.
pub(super) fn document_format(ahead: &[u8]) -> Option<Format> {
    let is_there =
        |key: &str| memchr::memmem::find(ahead, format!("\"{key}\"").as_bytes()).is_some();
    let recognised = FORMATS.iter().find(|(_, own)| match own.reader {
        Reader::Documents { signs, .. } => has_any_set(signs, is_there),
        Reader::Rows(_) => false,
    });
    recognised.map(|(format, _)| *format)
}

/// The error for content of no format, with all that is known.
pub(super) fn unknown_format(file: &str, first: &[u8], hint: String) -> TraceError {
    let recognised = FORMATS.iter().filter(|(_, own)| !own.signs.is_empty());
    let names: Vec<String> =
        recognised.map(|(_, own)| format!("{}{}", own.name, own.looks)).collect();
    let (last, others) = names.split_last().expect("some format has signs");
    let known = format!(
        "known are {} and {last}, each also as .gz or .zst; `--format` overrules",
        others.join(", ")
    );
    TraceError::UnknownFormat { file: file.to_owned(), seen: shorten(first), hint, known }
}

fn csv_format(first: &[u8]) -> Result<Format, String> {
    if first.trim_ascii_start().starts_with(b"[") {
        return Err(" (it looks like one JSON array; write one object a line)".to_owned());
    }
    let mut fields = Fields::new();
    if fields.split(first).is_err() {
        return Err(binary_hint(first).unwrap_or_default());
    }
    let has =
        |name: &str| (0..fields.len()).any(|place| fields.get(first, place) == name.as_bytes());
    if let Some(format) = recognise(Syntax::Csv, has) {
        return Ok(format);
    }
    if first.first().is_some_and(u8::is_ascii_digit) {
        return Err(" (it looks like a row; a CSV file needs a header line)".to_owned());
    }
    Err(binary_hint(first).unwrap_or_default())
}

fn binary_hint(first: &[u8]) -> Option<String> {
    let what = match first {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "UTF-16 text; save it as UTF-8",
        [b'P', b'K', 3, 4, ..] => "a zip archive; unpack it first",
        [b'P', b'A', b'R', b'1', ..] => "Parquet; write it as CSV first",
        [b'B', b'Z', b'h', ..] => "bzip2; unpack it first",
        [0xfd, b'7', b'z', b'X', b'Z', ..] => "xz; unpack it first",
        _ => return None,
    };
    Some(format!(" (it looks like {what})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The format of a file of these bytes.
    fn sniffed(bytes: &[u8]) -> Result<Format, String> {
        format_of(bytes).or_else(|hint| document_format(bytes).ok_or(hint))
    }

    #[test]
    fn known_first_lines() {
        let check = |first: &str, expect| {
            assert_eq!(sniffed(first.as_bytes()), Ok(expect), "{first}");
        };
        check("TIMESTAMP,ContextTokens,GeneratedTokens", Format::Azure);
        check("TIMESTAMP,NumImages,ContextTokens,GeneratedTokens", Format::Azure);
        check("\"TIMESTAMP\",\"ContextTokens\",\"GeneratedTokens\"", Format::Azure);
        check("output_tok,x,at_s,input_tok", Format::Native);
        check(r#"{"input_tok": 1, "at_s": 0, "output_tok": 2}"#, Format::Native);
        check(
            r#"{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [0]}"#,
            Format::Mooncake,
        );
        check(
            r#"{"output_length": 1, "input_length": 1, "timestamp": 0.5, "more": {}}"#,
            Format::Mooncake,
        );
        check("Timestamp,Model,Request tokens,Response tokens,Total tokens", Format::BurstGpt);
        check("arrived_at,num_prefill_tokens,num_decode_tokens", Format::Lengths);
        check("session_id,round_idx,prefix_len,input_len,output_len", Format::TraceLabReplay);
        check("request_id,startTime,prompt_tokens,completion_tokens", Format::LiteLlm);
        check(
            r#"{"chat_id": 0, "parent_chat_id": -1, "timestamp": 0.0, "input_length": 5}"#,
            Format::Bailian,
        );
        check(
            r#"{"timestamp": "0", "input_length": 5, "hash_ids": {"history": [1]}}"#,
            Format::RagPulse,
        );
        check(r#"{"session_id": "a", "text_input": "hi", "delay": 5}"#, Format::Mooncake);
        check(r#"{"id": "a", "hash_id_scope": "local", "requests": []}"#, Format::Weka);
        check("{\n \"id\": \"a\", \"hash_id_scope\": \"local\"", Format::Weka);
        check("{\n \"spans\": [", Format::Otel);
        check("[\n {\"name\": \"chat\", \"x\": {\"gen_ai.operation.name\": 1}}", Format::Otel);
        check(r#"{"resourceSpans": []}"#, Format::Otel);
        check(
            r#"{"session_id": "a", "round_index": 0, "input_tokens_total": 5}"#,
            Format::TraceLab,
        );
        check(r#"{"timestamp": "x", "event": "request.finished", "rid": "a"}"#, Format::SgLang);
        check(r#"{"schema": "dynamo.request.trace.v1", "event_type": "x"}"#, Format::Dynamo);
        check(r#"{"startTime": "x", "prompt_tokens": 5}"#, Format::LiteLlm);
    }

    #[test]
    fn strangers_are_refused_with_a_hint() {
        let check = |first: &[u8], part: &str| {
            let hint = sniffed(first).unwrap_err();
            assert!(hint.contains(part), "{hint}");
        };
        check(b"2023-11-16 18:17:03.9799600,4808,10", "needs a header");
        check(b"[{\"timestamp\": 0}]", "one object a line");
        check(b"{\"timestamp\": 0", "no valid JSON");
        check(b"\xff\xfeT\0I\0", "UTF-16");
        check(b"PK\x03\x04rest", "zip");
        check(b"hello", "");
    }
}
