//! The decoder of server-sent events: any bytes, cut anywhere, give the same events as in one piece,
//! and none of them makes it panic. The first byte says how many of the following ones are cuts.

#![no_main]

use libfuzzer_sys::fuzz_target;
use underfire::client::sse::Decoder;

type Events = Vec<(Vec<u8>, Vec<u8>)>;

/// The events, the length of the unfinished line at the end, and whether `[DONE]` was held back there.
fn decode(pieces: &[&[u8]]) -> (Events, usize, bool) {
    let mut events = Vec::new();
    let mut decoder = Decoder::new();
    for piece in pieces {
        let mut take = |event: underfire::client::sse::Event<'_>| {
            events.push((event.name.to_vec(), event.data.to_vec()));
        };
        // Far below the limit, so that it cannot fail.
        decoder.feed(piece, &mut take).expect("a short stream");
    }
    let holds_done = decoder.holds_done();
    let rest = decoder.finish(|event| events.push((event.name.to_vec(), event.data.to_vec())));
    (events, rest, holds_done)
}

fuzz_target!(|input: &[u8]| {
    let Some((count, rest)) = input.split_first() else { return };
    let (cuts, stream) = rest.split_at(usize::from(*count % 16).min(rest.len()));
    let whole = decode(&[stream]);
    let mut pieces = Vec::new();
    let mut left = stream;
    for cut in cuts {
        let (piece, after) = left.split_at(usize::from(*cut).min(left.len()));
        pieces.push(piece);
        left = after;
    }
    pieces.push(left);
    assert_eq!(decode(&pieces), whole);
    let bytes: Vec<&[u8]> = stream.chunks(1).collect();
    assert_eq!(decode(&bytes), whole);
});
