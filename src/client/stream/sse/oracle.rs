//! The decoder against the crate `eventsource-stream` 0.2.3, on random streams.
//!
//! Where that crate differs, the streams leave the difference out:
//! - it panics on a byte order mark at the start (it skips one byte of three), so there is none;
//! - it holds a CR back until it sees whether an LF follows, so an event that ends in a lone CR comes
//!   with the next byte: every stream ends in an event ended by LF;
//! - it drops complete lines that are pending at the end, as the standard says; ours dispatches them,
//!   so the last event is complete;
//! - it names an event without a name `message`, ours leaves the name empty;
//! - it wants UTF-8, so the text is.

use std::convert::Infallible;

use eventsource_stream::Eventsource;
use futures_util::StreamExt;
use proptest::prelude::*;

use super::Decoder;

type Events = Vec<(String, String)>;

fn ours(reads: &[Vec<u8>]) -> Events {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("only UTF-8 was fed");
    let mut events = Vec::new();
    let mut decoder = Decoder::new();
    for read in reads {
        decoder
            .feed(read, |event| events.push((text(event.name), text(event.data))))
            .expect("short");
    }
    assert_eq!(decoder.finish(|_| panic!("nothing is pending")), 0);
    events
}

/// The streams are ready at once, so one poll after the other on the spot is enough of a runtime.
fn theirs(reads: &[Vec<u8>]) -> Events {
    let reads = futures_util::stream::iter(reads.iter().cloned().map(Ok::<_, Infallible>));
    let mut stream = Box::pin(reads.eventsource());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut events = Vec::new();
    while let std::task::Poll::Ready(Some(event)) = stream.poll_next_unpin(&mut context) {
        let event = event.expect("a valid stream");
        let name = if event.event == "message" { String::new() } else { event.event };
        events.push((name, event.data));
    }
    events
}

fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "data: ?[ -~é\u{1F600}:]{0,30}",
        1 => Just("data".to_owned()),
        1 => "event: ?[a-z]{0,6}",
        1 => ":[ -~]{0,10}",
        1 => "(id|retry|other)(: ?[0-9a-z]{0,4})?",
        3 => Just(String::new()),
    ]
}

proptest! {
    #[test]
    fn the_same_events_as_eventsource_stream(
        lines in prop::collection::vec((line(), prop::sample::select(vec!["\n", "\r\n", "\r"])), 0..30),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let mut stream: String = lines.iter().flat_map(|(line, end)| [line.as_str(), end]).collect();
        stream.push_str("\n\ndata: last\n\n");
        let stream = stream.into_bytes();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len())).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let reads: Vec<Vec<u8>> =
            cuts.windows(2).map(|pair| stream[pair[0]..pair[1]].to_vec()).collect();
        prop_assert_eq!(ours(&reads), theirs(&reads));
    }
}
