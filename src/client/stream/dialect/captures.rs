//! Real servers' bytes through decoder and parser, against what was counted by hand.
//!
//! The captures lie outside the repository, in `../shared/captures`; without them these tests see
//! nothing. Deliberately absent: time, and the HTTP client, whose framing a few lines undo here.

use std::borrow::Cow;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::*;
use crate::client::sse::Decoder;
use crate::record::{Kind, Usage};

/// Stream, then `events token-events/reasoning finish usage(in/out/cached/reasoning) end`.
const EXPECT: &[(&str, &str)] = &[
    // The opening chunk has a role and empty content; four and five tokens a chunk later on.
    ("vllm/chat_stream", "7 5/0 length - done"),
    ("vllm/chat_stream_usage", "10 7/0 length 19/12/-/- done"),
    ("vllm/chat_stream_cont_usage", "9 6/0 length 19/6/-/- done"),
    ("vllm/chat_stream_len200", "180 175/0 length 19/200/-/- done"),
    // Two choices; one of them ends on an empty content.
    ("vllm/chat_stream_n2", "12 7/0 length 19/8/-/- done"),
    ("vllm/chat_stream_logprobs", "5 3/0 length - done"),
    ("vllm/completions_stream", "13 12/0 length - done"),
    ("vllm/completions_stream_usage", "14 12/0 length 5/12/-/- done"),
    ("vllm/completions_tokenids", "4 3/0 length - done"),
    ("vllm/chat_stream_cut", "27 26/0 - - cut"),
    ("extra/vllm_cut", "5 5/0 - - cut"),
    ("extra/vllm_tput300", "294 285/0 length 2/300/-/- done"),
    // All of it reasoning, of which the server counts none.
    ("vllm-reasoning-spec/chat_reasoning", "10 7/7 length 19/16/0/0 done"),
    ("vllm-reasoning-spec/chat_reasoning_len128", "38 35/35 length 19/128/0/0 done"),
    ("vllm-reasoning-spec/chat_return_token_ids", "5 2/2 length 19/16/0/0 done"),
    ("vllm-reasoning-spec/chat_include_reasoning_false", "4 0/0 length 19/16/0/0 done"),
    ("vllm-reasoning-spec/completions_spec", "23 21/0 length 5/64/0/- done"),
    // Role and null content in the same HTTP chunk as the first token; finish with an empty delta.
    ("llamacpp/chat_stream", "15 12/0 length - done"),
    ("llamacpp/chat_stream_usage", "16 12/0 length 36/12/35/- done"),
    ("llamacpp/chat_stream_n2", "15 8/0 length 36/4/35/- done"),
    ("llamacpp/chat_stream_cut", "6 5/0 - - cut"),
    // Usage on the finish chunk, unasked.
    ("llamacpp/completions_stream", "14 12/0 length 4/12/0/- done"),
    ("llamacpp/completions_tokenids", "5 3/0 length 4/3/0/- done"),
    // Four comments.
    ("extra/llamacpp_ping", "9 4/0 length - done"),
    // Role and first text in one chunk; one of 200 tokens had no text.
    ("dynamo/chat_stream", "14 12/0 length - done"),
    ("dynamo/chat_stream_cont_usage", "9 6/0 length 19/6/0/- done"),
    ("dynamo/chat_stream_len200", "202 199/0 length 19/200/0/- done"),
    ("dynamo/completions_stream_usage", "15 12/0 length 5/12/0/- done"),
    // Usage on a chunk with a choice that says nothing; no `finish_reason` key elsewhere.
    ("litellm-vllm/chat_stream_usage", "16 12/0 length 19/12/-/0 done"),
    ("litellm-vllm/completions_stream_usage", "11 8/0 length 5/8/-/0 done"),
    ("nginx-default-vllm/chat_stream_len64", "67 62/0 length 19/64/-/- done"),
    ("nginx-default-vllm/chat_stream_cut", "237 234/0 - - cut"),
    ("nginx-gzip-vllm/chat_stream_accept_gzip", "67 64/0 length 19/64/-/- done"),
];

/// Error bodies and what is made of them.
const ERRORS: &[(&str, &str)] = &[
    ("vllm/err_404", "Not Found"),
    ("vllm/err_bad_model", "The model `no-such-model` does not exist. Valid aliases: tiny-llama."),
    ("llamacpp/err_404", "File Not Found"),
    ("llamacpp/err_bad_type", "Expected 'messages' to be an array"),
    ("dynamo/err_404", "Route not found: POST /v1/nope"),
    ("dynamo/err_405", "empty body"),
    ("dynamo/err_bad_model", "Model not found"),
    ("nginx-errors/dead_upstream_502", "502 Bad Gateway nginx/1.22.1"),
    ("nginx-errors/rl_2", "429 Too Many Requests nginx/1.22.1"),
    ("extra/haproxy_timeout", "504 Gateway Time-out The server didn't respond in time."),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/captures")
}

/// Head, in lower case, and body of a captured response; `None` without the captures.
fn response(name: &str) -> Option<(String, Vec<u8>)> {
    let raw = std::fs::read(folder().join(name).with_extension("raw")).ok()?;
    let end = raw.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&raw[..end]).to_lowercase();
    let mut body = raw[end + 4..].to_vec();
    if head.contains("transfer-encoding: chunked") {
        body = without_chunks(&body);
    }
    if head.contains("content-encoding: gzip") {
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&body[..]).read_to_end(&mut plain).expect("gzip");
        body = plain;
    }
    Some((head, body))
}

/// Undoes the chunked framing, of a cut stream as far as it goes.
fn without_chunks(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|bytes| bytes == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).expect("a chunk size");
        let size = usize::from_str_radix(size, 16).expect("a chunk size");
        rest = &rest[end + 2..];
        body.extend_from_slice(&rest[..size.min(rest.len())]);
        rest = rest.get(size + 2..).unwrap_or_default();
        if size == 0 {
            break;
        }
    }
    body
}

/// Every captured event stream, by name.
fn streams() -> Vec<(String, Vec<u8>)> {
    let mut streams = Vec::new();
    for server in std::fs::read_dir(folder()).into_iter().flatten().flatten() {
        for file in std::fs::read_dir(server.path()).into_iter().flatten().flatten() {
            let path = file.path();
            if path.extension().is_some_and(|end| end == "raw") {
                let name = path.strip_prefix(folder()).expect("in it").to_string_lossy();
                let (head, body) = response(&name).expect("a response");
                if head.contains("content-type: text/event-stream") {
                    streams.push((name.into_owned(), body));
                }
            }
        }
    }
    streams
}

/// What a stream says, in the words of [`EXPECT`], fed in pieces that end at `cuts`.
fn said(stream: &[u8], cuts: impl IntoIterator<Item = usize>) -> String {
    let mut decoder = Decoder::new();
    let (mut events, mut tokens, mut reasoning) = (0, 0, 0);
    let (mut finish, mut usage, mut end) = (None, None, "cut");
    let mut take = |event: crate::client::sse::Event<'_>| {
        events += 1;
        match parse_event(event.name, event.data).expect("a chunk") {
            Parsed::Done => end = "done",
            Parsed::Chunk(chunk) => {
                assert_eq!(chunk.error, None);
                assert!(chunk.id.is_some());
                tokens += u32::from(chunk.kind.is_some());
                reasoning += u32::from(chunk.kind == Some(Kind::Reasoning));
                finish = chunk.finish_reason.map(Cow::into_owned).or(finish.take());
                usage = chunk.usage.or(usage);
            }
        }
    };
    let mut start = 0;
    for cut in cuts.into_iter().chain([stream.len()]) {
        decoder.feed(&stream[start..cut], &mut take).expect("short events");
        start = cut;
    }
    assert_eq!(decoder.finish(&mut take), 0);
    let number = |n: Option<u64>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
    let usage = usage.map_or_else(
        || "-".to_owned(),
        |u: Usage| {
            assert!(!u.running, "the last one is final");
            [u.input_tok, u.output_tok, u.cached_tok, u.reasoning_tok].map(number).join("/")
        },
    );
    format!("{events} {tokens}/{reasoning} {} {usage} {end}", finish.as_deref().unwrap_or("-"))
}

#[test]
fn streams_say_what_was_counted_by_hand() {
    for (name, expect) in EXPECT {
        if let Some((_, body)) = response(name) {
            assert_eq!(said(&body, []), *expect, "{name}");
        }
    }
}

#[test]
fn every_stream_says_the_same_in_any_pieces() {
    for (name, body) in streams() {
        let whole = said(&body, []);
        for piece in [1, 3, 61, 1_448] {
            let cuts = (piece..body.len()).step_by(piece);
            assert_eq!(said(&body, cuts), whole, "{name} in pieces of {piece}");
        }
    }
}

#[test]
fn a_stream_says_the_same_at_every_cut() {
    for name in ["vllm/chat_stream", "llamacpp/chat_max_completion_tokens", "extra/llamacpp_ping"] {
        if let Some((_, body)) = response(name) {
            let whole = said(&body, []);
            for cut in 0..body.len() {
                assert_eq!(said(&body, [cut]), whole, "{name} at {cut}");
            }
        }
    }
}

/// No real chunk needs the lenient reading, and both agree.
#[test]
fn the_quick_reading_reads_every_real_chunk() {
    for (name, body) in streams() {
        let mut decoder = Decoder::new();
        let mut take = |event: crate::client::sse::Event<'_>| {
            let text = std::str::from_utf8(event.data).expect("UTF-8");
            if text != "[DONE]" {
                assert_eq!(quick::read(event.data), lenient::read(text).ok(), "{name}: {text}");
            }
        };
        decoder.feed(&body, &mut take).expect("short events");
    }
}

#[test]
fn running_usage_is_told_from_the_final_one() {
    for name in ["vllm/chat_stream_cont_usage", "dynamo/chat_stream_cont_usage"] {
        let Some((_, body)) = response(name) else { return };
        let mut counts = Vec::new();
        let mut take = |event: crate::client::sse::Event<'_>| {
            if let Ok(Parsed::Chunk(Chunk { usage: Some(usage), .. })) = parse(event.data) {
                counts.push((usage.output_tok.expect("a count"), usage.running));
            }
        };
        Decoder::new().feed(&body, &mut take).expect("short events");
        let last = counts.pop().expect("usage");
        assert_eq!(last, (6, false), "{name}");
        assert!(counts.is_sorted_by_key(|(count, _)| *count), "{name}");
        assert!(counts[..counts.len() - 1].iter().all(|(_, running)| *running), "{name}");
    }
}

#[test]
fn error_bodies_become_one_line() {
    for (name, expect) in ERRORS {
        if let Some((_, body)) = response(name) {
            assert_eq!(error_message(&body), *expect, "{name}");
        }
    }
}
