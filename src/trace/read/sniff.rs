//! Tells a trace's format from its first line.
//!
//! Content decides, not the file's name. A format that is merely close is refused rather than guessed
//! at: Bailian's rows have Mooncake's keys, but seconds for milliseconds and blocks of 16 for 512.

use super::Format;
use super::fields::Fields;
use super::json::read_object;

/// How the rows of a format are written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dress {
    Csv,
    Json,
}

/// JSON lines begin with a brace; nothing else that is known does.
pub(super) fn dress(first: &[u8]) -> Dress {
    if first.trim_ascii_start().first() == Some(&b'{') { Dress::Json } else { Dress::Csv }
}

/// The format of the first line that is not blank, or a hint at what it is instead.
pub(super) fn format_of(first: &[u8]) -> Result<Format, String> {
    match dress(first) {
        Dress::Json => json_format(first),
        Dress::Csv => csv_format(first),
    }
}

const JSON_KEYS: [&str; 10] = [
    "at_s",
    "timestamp",
    "input_length",
    "output_length",
    "input_tok",
    "chat_id",
    "parent_chat_id",
    "hash_ids",
    "requests",
    "round_index",
];

fn json_format(first: &[u8]) -> Result<Format, String> {
    let slots = read_object(first, &JSON_KEYS, &mut Vec::new())
        .map_err(|fault| format!(" ({})", fault.problem))?;
    let has = |key: &str| {
        JSON_KEYS.iter().position(|name| *name == key).is_some_and(|at| slots[at].is_some())
    };
    if has("at_s") || has("input_tok") {
        return Ok(Format::Native);
    }
    if has("chat_id") || has("parent_chat_id") {
        return Err(looks_like("Qwen-Bailian"));
    }
    if slots[7].is_some_and(|ids| ids.starts_with('{')) {
        return Err(looks_like("RAGPulse"));
    }
    if has("requests") {
        return Err(looks_like("WEKA kv-cache-tester"));
    }
    if has("round_index") {
        return Err(looks_like("TraceLab"));
    }
    // One of the two lengths may be what is wrong with the row; then its reader says so.
    if has("timestamp") && (has("input_length") || has("output_length")) {
        return Ok(Format::Mooncake);
    }
    Err(String::new())
}

fn csv_format(first: &[u8]) -> Result<Format, String> {
    let mut fields = Fields::new();
    if fields.split(first).is_err() {
        return Err(binary_hint(first).unwrap_or_default());
    }
    let has =
        |name: &str| (0..fields.len()).any(|place| fields.get(first, place) == name.as_bytes());
    if has("at_s") || has("input_tok") {
        return Ok(Format::Native);
    }
    if has("TIMESTAMP") || has("ContextTokens") {
        return Ok(Format::Azure);
    }
    if has("Request tokens") {
        return Err(looks_like("BurstGPT"));
    }
    if has("num_prefill_tokens") {
        return Err(looks_like("vidur"));
    }
    if first.trim_ascii_start().starts_with(b"[") {
        return Err(" (it looks like one JSON array; write one object a line)".to_owned());
    }
    if first.first().is_some_and(u8::is_ascii_digit) {
        return Err(" (it looks like a row; a CSV file needs a header line)".to_owned());
    }
    Err(binary_hint(first).unwrap_or_default())
}

fn looks_like(name: &str) -> String {
    format!(" (it looks like {name}, which is not read; convert it to the native format)")
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

    #[test]
    fn known_first_lines() {
        let check =
            |first: &str, expect| assert_eq!(format_of(first.as_bytes()), Ok(expect), "{first}");
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
    }

    #[test]
    fn strangers_are_refused_with_a_hint() {
        let check = |first: &[u8], part: &str| {
            let hint = format_of(first).unwrap_err();
            assert!(hint.contains(part), "{hint}");
        };
        check(b"Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type", "BurstGPT");
        check(b"arrived_at,num_prefill_tokens,num_decode_tokens", "vidur");
        check(
            br#"{"chat_id": 0, "parent_chat_id": -1, "timestamp": 0.0, "input_length": 5}"#,
            "Bailian",
        );
        check(
            br#"{"timestamp": "0", "input_length": 5, "hash_ids": {"history": [1]}}"#,
            "RAGPulse",
        );
        check(b"2023-11-16 18:17:03.9799600,4808,10", "needs a header");
        check(b"[{\"timestamp\": 0}]", "one object a line");
        check(b"{\"timestamp\": 0", "no valid JSON");
        check(b"\xff\xfeT\0I\0", "UTF-16");
        check(b"PK\x03\x04rest", "zip");
        check(b"hello", "");
    }
}
