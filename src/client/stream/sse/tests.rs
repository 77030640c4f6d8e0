//! The decoder against tables, a slow obvious reading of the standard, and its own promises.

use proptest::prelude::*;

use super::line::BOM;
use super::*;

/// An event as `name|data`, or only `data` where there is no name.
fn shown(event: Event<'_>) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    match event.name {
        b"" => text(event.data),
        name => format!("{}|{}", text(name), text(event.data)),
    }
}

/// What a stream says, fed in pieces that end at `cuts`; last the length of the unfinished line.
fn decoded(stream: &[u8], cuts: &[usize]) -> (Vec<String>, usize) {
    let mut decoder = Decoder::new();
    let mut events = Vec::new();
    let mut start = 0;
    for end in cuts.iter().copied().chain([stream.len()]) {
        decoder.feed(&stream[start..end], |event| events.push(shown(event))).expect("short");
        start = end;
    }
    let unfinished = decoder.finish(|event| events.push(shown(event)));
    (events, unfinished)
}

/// The standard's rules, read line by line over the whole stream.
fn slowly(stream: &[u8]) -> (Vec<String>, usize) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut rest = stream.strip_prefix(BOM).unwrap_or(stream);
    let (mut events, mut name, mut data) = (Vec::new(), Vec::new(), None::<Vec<u8>>);
    let dispatch = |name: &mut Vec<u8>, data: &mut Option<Vec<u8>>, events: &mut Vec<String>| {
        if let Some(data) = data.take() {
            events.push(if name.is_empty() {
                text(&data)
            } else {
                format!("{}|{}", text(name), text(&data))
            });
        }
        name.clear();
    };
    let error = |line: &[u8]| {
        let value = line.strip_prefix(b"error:")?;
        let value = value.strip_prefix(b" ").unwrap_or(value);
        (!value.is_empty()).then(|| format!("error|{}", text(value)))
    };
    while let Some(end) = rest.iter().position(|byte| b"\r\n".contains(byte)) {
        let line = &rest[..end];
        rest = &rest[end + if rest[end..].starts_with(b"\r\n") { 2 } else { 1 }..];
        if line.is_empty() {
            dispatch(&mut name, &mut data, &mut events);
            continue;
        }
        if let Some(error) = error(line) {
            dispatch(&mut name, &mut data, &mut events);
            events.push(error);
            continue;
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let value = colon.map_or(&b""[..], |at| &line[at + 1..]);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon.unwrap_or(line.len())] {
            b"event" => name = value.to_vec(),
            b"data" => match &mut data {
                Some(data) => data.extend([b"\n", value].concat()),
                None => data = Some(value.to_vec()),
            },
            _ => {}
        }
    }
    dispatch(&mut name, &mut data, &mut events);
    if let Some(error) = error(rest) {
        events.push(error);
        rest = b"";
    }
    if [&b"data:[DONE]"[..], b"data: [DONE]"].contains(&rest) {
        events.push("[DONE]".to_owned());
        rest = b"";
    }
    (events, rest.len())
}

fn check(stream: &[u8], expect: &[&str]) {
    let whole = decoded(stream, &[]);
    assert_eq!(whole.0, expect, "{:?}", String::from_utf8_lossy(stream));
    assert_eq!(whole, slowly(stream), "the slow reading of {:?}", String::from_utf8_lossy(stream));
    for cut in 0..=stream.len() {
        assert_eq!(decoded(stream, &[cut]), whole, "cut at {cut}");
    }
    let each: Vec<usize> = (1..stream.len()).collect();
    assert_eq!(decoded(stream, &each), whole, "byte by byte");
}

#[test]
fn line_ends_are_lf_crlf_and_cr() {
    check(b"data: a\n\ndata: b\n\n", &["a", "b"]);
    check(b"data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]);
    check(b"data: a\r\rdata: b\r\r", &["a", "b"]);
    check(b"data: a\n\rdata: b\r\n\n", &["a", "b"]);
    check(b"data: a\rdata: b\ndata: c\r\n\n", &["a\nb\nc"]);
    check(b"data: a\r\n\r", &["a"]);
    check(b"\r\n\n\r\ndata: a\n\n\n\n", &["a"]);
}

#[test]
fn fields_and_comments() {
    check(b"data:a\n\ndata:  a\n\ndata: a \n\n", &["a", " a", "a "]);
    check(b": ping\n\n:\n\n: OPENROUTER PROCESSING\ndata: a\n: more\n\n", &["a"]);
    check(b"id: 7\nretry: 10\nevent: error\ndata: a\nother: x\n\ndata: b\n\n", &["error|a", "b"]);
    check(b"event: x\n\ndata: a\n\n", &["a"]);
    check(b"event: x\nevent: y\ndata: a\n\n", &["y|a"]);
    check(b"event: x\nevent\ndata: a\n\n", &["a"]);
    check(b"dat: a\ndataa: a\n data: a\nDATA: a\neventdata: a\ndata\x00: a\n\n", &[]);
    check(b"data: {\"a\":\"b: c\"}\n\n", &["{\"a\":\"b: c\"}"]);
}

#[test]
fn an_error_field_is_an_event_of_its_own() {
    check(b"data: a\n\nerror: {\"code\":500}\n\ndata: b\n\n", &["a", "error|{\"code\":500}", "b"]);
    check(b"error:e\n", &["error|e"]);
    check(b"error: e", &["error|e"]);
    // What came before it in the same event is not spoilt by it.
    check(b"event: x\ndata: a\nerror: e\ndata: b\n\n", &["x|a", "error|e", "b"]);
    check(b"error\n\nerror:\n\nerror: \n\nerrors: e\n\n error: e\n\n", &[]);
}

#[test]
fn lines_of_no_field_are_kept_within_bounds() {
    let stray = |stream: &[u8], piece: usize| {
        let mut decoder = Decoder::new();
        for part in stream.chunks(piece) {
            decoder.feed(part, |_| ()).expect("short");
        }
        decoder.finish(|_| ());
        String::from_utf8_lossy(&decoder.into_stray()).into_owned()
    };
    let stream =
        b"{\"error\":\n\"e\"}\ndata: a\nid: 1\nretry\nevent: x\n: c\nerror: e\n\n<p>\r\n</p>";
    for piece in [1, 3, stream.len()] {
        assert_eq!(stray(stream, piece), "{\"error\":\n\"e\"}\n<p>\n</p>\n");
        assert_eq!(stray(b"data: a\n\ndata: cut", piece), "");
    }
    let long = b"0123456789\n".repeat(20_000);
    assert_eq!(stray(&long, 999).len(), STRAY_BYTES);
}

#[test]
fn data_lines_are_joined() {
    check(b"data: a\ndata: b\n\n", &["a\nb"]);
    check(b"data: a\ndata\ndata: b\n\n", &["a\n\nb"]);
    check(b"data:\ndata:\n\n", &["\n"]);
    // The standard dispatches an empty `data` line as an event with empty data; no line, no event.
    check(b"data\n\ndata: \n\nid: 1\n\n", &["", ""]);
}

#[test]
fn a_byte_order_mark_counts_once_and_at_the_start() {
    check(b"\xef\xbb\xbfdata: a\n\n", &["a"]);
    check(b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n", &["b"]);
    check(b"data: a\n\n\xef\xbb\xbfdata: b\n\n", &["a"]);
    check(b"\xef\xbbdata: a\n\ndata: b\n\n", &["b"]);
    check(b"\xef\xbb", &[]);
    check(b"\xef\n\ndata: a\n\n", &["a"]);
    check(b"", &[]);
}

#[test]
fn the_end_of_a_stream() {
    check(b"data: a\n\ndata: b\n", &["a", "b"]);
    check(b"event: e\ndata: a\ndata: b\r", &["e|a\nb"]);
    check(b"data: a\n\ndata: {\"cut\":", &["a"]);
    check(b"data: a\ndata: b", &["a"]);
    check(b"data: a\n\ndata: [DONE]", &["a", "[DONE]"]);
    check(b"data: a\n\ndata:[DONE]", &["a", "[DONE]"]);
    check(b"data: a\n\ndata: [DONE]\n", &["a", "[DONE]"]);
    check(b"data: a\n\ndata: [DON", &["a"]);
    check(b"data: a\ndata: [DONE]", &["a", "[DONE]"]);
    assert_eq!(decoded(b"data: a\n\ndata: b", &[]).1, 7);
}

#[test]
fn done_is_seen_while_its_event_is_pending() {
    let held = |stream: &[u8]| {
        let mut decoder = Decoder::new();
        decoder.feed(stream, |_| ()).expect("short");
        decoder.holds_done()
    };
    assert!(held(b"data: a\n\ndata: [DONE]"));
    assert!(held(b"data: a\n\ndata: [DONE]\n"));
    assert!(held(b"data: a\n\ndata:[DONE]\r"));
    assert!(!held(b"data: a\n\ndata: [DONE]\n\n"), "dispatched already");
    assert!(!held(b"data: a\n\ndata: [DONE"));
    assert!(!held(b"data: a\ndata: [DONE]"));
    assert!(!held(b"data: a\ndata: [DONE]\n"));
    assert!(!held(b""));
}

#[test]
fn a_whole_event_is_a_slice_of_the_read() {
    let stream = b"event: m\ndata: abc\n\n: ping\n\ndata: d\n\n".to_vec();
    let mut decoder = Decoder::new();
    let mut events = 0;
    decoder
        .feed(&stream, |event| {
            events += 1;
            assert!(stream.as_ptr_range().contains(&event.data.as_ptr()));
        })
        .expect("short");
    assert_eq!((events, decoder.buffer.capacity(), decoder.name.capacity()), (2, 0, 0));
}

#[test]
fn a_large_buffer_is_given_back() {
    let mut decoder = Decoder::new();
    let mut longest = 0;
    for part in [&b"data: "[..], &vec![b'x'; 2 << 20], b"\n", b"\ndata: a\n\n"] {
        decoder.feed(part, |event| longest = longest.max(event.data.len())).expect("2 MiB");
    }
    assert_eq!(longest, 2 << 20);
    assert!(decoder.buffer.capacity() <= KEEP_BYTES);
}

/// Ten bytes a line and a limit of twenty: the same verdict wherever the stream is cut.
#[test]
fn the_limit_names_itself_and_ignores_the_cut() {
    let fed = |stream: &[u8], cut: usize| {
        let mut decoder = Decoder::with_limit(20);
        let mut events = 0;
        let mut result = Ok(());
        for part in [&stream[..cut], &stream[cut..]] {
            result = result.and_then(|()| decoder.feed(part, |_| events += 1));
        }
        (result, events)
    };
    let too_long = Err(SseError::TooLong { limit: 20 });
    for (stream, expect) in [
        (&b"data: 1234\ndata: 5678\n\ndata: 1234\n\n"[..], (Ok(()), 2)),
        (b"data: 1\n\ndata: 1234\ndata: 56789", (too_long, 1)),
        (b"data: 1\n\ndata: 1234\nevent: 6789\n", (too_long, 1)),
        (b"data: 123456789012345", (too_long, 0)),
        (b": comment\n: comment\n: comment\n: comment\ndata: 1\n\n", (Ok(()), 1)),
        (b": comment of 21 bytes", (too_long, 0)),
    ] {
        for cut in 0..=stream.len() {
            assert_eq!(fed(stream, cut), expect, "{} at {cut}", String::from_utf8_lossy(stream));
        }
    }
    let error = SseError::TooLong { limit: MAX_EVENT_BYTES }.to_string();
    assert!(error.contains("16777216 bytes (MAX_EVENT_BYTES)"), "{error}");
}

/// Linear time by counting: a byte is searched once, copied once and moved once at the most.
#[test]
fn work_is_linear_on_any_fragmentation() {
    let mut long = b"data: ".to_vec();
    long.resize(1 << 20, b'x');
    long.extend(b"\n\n");
    let many = b"data: {\"a\":\"b\"}\n\n: ping\n\ndata: 1\ndata: 2\r\n\r\n".repeat(20_000);
    for stream in [&long, &many] {
        for piece in [1, 2, 7, 1_448, 65_536, stream.len()] {
            let mut decoder = Decoder::new();
            for part in stream.chunks(piece) {
                decoder.feed(part, |_| ()).expect("1 MiB");
            }
            assert!(decoder.work <= 3 * stream.len(), "{} for pieces of {piece}", decoder.work);
        }
    }
    let mut decoder = Decoder::new();
    decoder.feed(b"data: whole\n\n", |_| ()).expect("short");
    assert_eq!(decoder.work, 13, "searched once and never copied");
}

/// Streams made of the pieces that matter to the decoder.
fn streams() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        &b"data: "[..],
        b"data:",
        b"data",
        b"event: ",
        b"event:e",
        b"error: ",
        b"error:e",
        b"id: 1",
        b": ping",
        b":",
        b" ",
        b"{\"a\":1}",
        b"[DONE]",
        b"\xc3\xa9",
        b"\xef",
        b"\xbb\xbf",
        BOM,
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"\r\n\r\n",
        b"\x00",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_cut_gives_the_events_of_the_standard(
        stream in streams(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.sort_unstable();
        prop_assert_eq!(decoded(&stream, &cuts), slowly(&stream));
    }

    #[test]
    fn no_bytes_make_it_panic(
        stream in prop::collection::vec(any::<u8>(), 0..200),
        cut in any::<prop::sample::Index>(),
    ) {
        let cut = cut.index(stream.len() + 1);
        prop_assert_eq!(decoded(&stream, &[cut]), slowly(&stream));
    }
}
