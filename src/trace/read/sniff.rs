//! Tells a trace's format from its first line.
//!
//! Content decides, not the file's name. Formats share keys and mean different things by them (Bailian's
//! rows have Mooncake's, but seconds for milliseconds and blocks of 16 for 512), so what a format alone
//! has is looked for first; what is merely close is refused rather than guessed at.

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

/// The format of a file by its first line that is not blank, or a hint at what it is instead.
pub(super) fn format_of(first: &[u8]) -> Result<Format, String> {
    match dress(first) {
        Dress::Json => json_format(first),
        Dress::Csv => csv_format(first),
    }
}

/// Whether the line may begin a document that is spread over many lines.
pub(super) fn may_be_document(first: &[u8]) -> bool {
    matches!(first.trim_ascii_start().first(), Some(b'{' | b'['))
}

const JSON_KEYS: [&str; 24] = [
    "at_s",
    "input_tok",
    "timestamp",
    "input_length",
    "output_length",
    "chat_id",
    "parent_chat_id",
    "hash_ids",
    "requests",
    "hash_id_scope",
    "round_index",
    "input_tokens_total",
    "spans",
    "resourceSpans",
    "attributes",
    "schema",
    "event_type",
    "startTime",
    "prompt_tokens",
    "event",
    "rid",
    "session_id",
    "text_input",
    "payload",
];

fn json_format(first: &[u8]) -> Result<Format, String> {
    let slots = read_object(first, &JSON_KEYS, &mut Vec::new())
        .map_err(|fault| format!(" ({})", fault.problem))?;
    let value = |key: &str| JSON_KEYS.iter().position(|name| *name == key).and_then(|at| slots[at]);
    let has = |key: &str| value(key).is_some();
    let is_dynamo = value("schema").is_some_and(|schema| schema.starts_with("\"dynamo.request"));
    // What a format alone has comes before what several share. Of two lengths one may be what is wrong
    // with the row; then its reader says so.
    let known = [
        (has("at_s") || has("input_tok"), Format::Native),
        (has("chat_id") || has("parent_chat_id"), Format::Bailian),
        (value("hash_ids").is_some_and(|ids| ids.starts_with('{')), Format::RagPulse),
        (has("requests") && has("hash_id_scope"), Format::Weka),
        (has("round_index") && has("input_tokens_total"), Format::TraceLab),
        (has("spans") || has("resourceSpans") || has("attributes"), Format::Otel),
        (is_dynamo, Format::Dynamo),
        (has("event") && has("rid"), Format::SgLang),
        (has("startTime") && has("prompt_tokens"), Format::LiteLlm),
        (has("timestamp") && (has("input_length") || has("output_length")), Format::Mooncake),
        (has("session_id") && (has("text_input") || has("payload")), Format::Mooncake),
        (has("timestamp") && (has("text_input") || has("payload")), Format::Mooncake),
    ];
    known.iter().find(|(is, _)| *is).map(|(_, format)| *format).ok_or_else(String::new)
}

/// The format of a document that is spread over lines, by its beginning.
pub(super) fn document_format(ahead: &[u8]) -> Option<Format> {
    let has = |key: &str| {
        let quoted = format!("\"{key}\"");
        memchr::memmem::find(ahead, quoted.as_bytes()).is_some()
    };
    if has("resourceSpans") || has("spans") || has("gen_ai.operation.name") {
        return Some(Format::Otel);
    }
    (has("hash_id_scope") || (has("hash_ids") && has("requests"))).then_some(Format::Weka)
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
    let known = [
        (has("at_s") || has("input_tok"), Format::Native),
        (has("TIMESTAMP") || has("ContextTokens"), Format::Azure),
        (has("Request tokens") || has("Response tokens"), Format::BurstGpt),
        (has("num_prefill_tokens") || has("num_decode_tokens"), Format::Lengths),
        (has("round_idx") && has("prefix_len"), Format::TraceLabReplay),
        (has("startTime") && has("prompt_tokens"), Format::LiteLlm),
    ];
    if let Some((_, format)) = known.iter().find(|(is, _)| *is) {
        return Ok(*format);
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

    /// As a file of these bytes is told.
    fn told(bytes: &[u8]) -> Result<Format, String> {
        format_of(bytes).or_else(|hint| document_format(bytes).ok_or(hint))
    }

    #[test]
    fn known_first_lines() {
        let check = |first: &str, expect| {
            assert_eq!(told(first.as_bytes()), Ok(expect), "{first}");
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
            let hint = told(first).unwrap_err();
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
