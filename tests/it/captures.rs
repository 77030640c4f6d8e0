//! Real servers' bytes through the whole client, over a pipe in virtual time, in whatever pieces.
//!
//! The captures lie outside the repository, in `../shared/captures`; without them these tests see
//! nothing. What is expected of each was counted from its bytes by other means (`captures.txt`).

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use underfire::client::{AttemptControl, Client, Dial, RequestHead, Retries, Settings, Timeouts};
use underfire::clock::{Clock, VirtualTime};
use underfire::record::{Outcome, Row, StreamRecord, TokenSource};
use underfire::units::Nanos;

const EXPECT: &str = include_str!("captures.txt");

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/captures")
}

/// Name, expectation and bytes of every capture that is there.
fn captures() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    EXPECT
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let (name, expect) = line.split_once(": ").expect("name and expectation");
            let bytes = std::fs::read(folder().join(format!("{name}.raw"))).ok()?;
            Some((name, expect, bytes))
        })
        .collect()
}

/// Reads one request to its end, and answers with these pieces, a millisecond apart.
async fn answer(mut io: DuplexStream, pieces: Vec<Vec<u8>>, clock: Clock) {
    let mut request = Vec::new();
    while !request.ends_with(b"{}") {
        if io.read_buf(&mut request).await.is_ok_and(|read| read == 0) {
            return;
        }
    }
    for piece in pieces {
        // A client that has seen enough hangs up.
        if io.write_all(&piece).await.is_err() {
            return;
        }
        clock.sleep_until(clock.now() + Nanos::from_millis(1)).await;
    }
}

/// The row of a request that is answered with `bytes`, cut at `cuts`.
fn row(bytes: &[u8], cuts: impl IntoIterator<Item = usize>) -> Row {
    let mut pieces = Vec::new();
    let mut from = 0;
    for cut in cuts.into_iter().chain([bytes.len()]) {
        pieces.push(bytes[from..cut].to_vec());
        from = cut;
    }
    let time = Arc::new(VirtualTime::default());
    let ran = time.run(|| {
        let clock = Clock::of_virtual(&time);
        let dial = {
            let clock = clock.clone();
            Dial::Memory(Rc::new(move || {
                let (near, far) = tokio::io::duplex(1 << 20);
                tokio::task::spawn_local(answer(far, pieces.clone(), clock.clone()));
                near
            }))
        };
        let settings = Settings {
            head: RequestHead::in_memory("/v1/chat/completions"),
            timeouts: Timeouts::default(),
            ignore_eos: false,
            retries: Retries::default(),
            keep_kinds: false,
        };
        let client = Client::new(dial, clock, Nanos::ZERO, settings);
        async move {
            let record = StreamRecord::default();
            client
                .perform(record, bytes::Bytes::from_static(b"{}"), &AttemptControl::default())
                .await
        }
    });
    Row::of(&ran.expect("a runtime").expect("no stall"), Nanos::ZERO)
}

/// A row in the words of `captures.txt`, without its error.
fn said(row: &Row) -> String {
    let number = |n: Option<u64>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
    let output = match (row.output_tok, row.token_source) {
        (Some(n), Some(TokenSource::Usage)) => format!("{n}/usage"),
        (Some(n), Some(TokenSource::Events)) => format!("{n}/events"),
        (Some(n), Some(TokenSource::Running)) => format!("{n}/running"),
        _ => "-".to_owned(),
    };
    format!(
        "{} {} {output} {} {} {} {} {}",
        row.outcome,
        number(row.http_status.map(u64::from)),
        number(row.chunks),
        number(row.reasoning_tok),
        row.finish_reason.as_deref().unwrap_or("-"),
        number(row.input_tok),
        number(row.cached_tok),
    )
}

/// Whether a row is what `captures.txt` expects.
fn check(name: &str, expect: &str, row: &Row) -> Result<(), String> {
    let (words, error) = expect.split_once(" |").expect("an error part");
    let got = said(row);
    if got != words {
        return Err(format!("{name}\n  expected {words}\n  got      {got} {:?}", row.error));
    }
    match (&row.error, error.trim()) {
        (None, "") => Ok(()),
        (Some(text), part) if !part.is_empty() && text.contains(part) => Ok(()),
        (text, part) => Err(format!("{name}: error {text:?}, expected `{part}`")),
    }
}

#[test]
fn every_captured_response_has_its_row() {
    let wrong: Vec<String> = captures()
        .into_iter()
        .filter_map(|(name, expect, bytes)| check(name, expect, &row(&bytes, [])).err())
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_capture_is_expected_to_be_something() {
    let Ok(servers) = std::fs::read_dir(folder()) else { return };
    for server in servers {
        for file in std::fs::read_dir(server.expect("a folder").path()).into_iter().flatten() {
            let path = file.expect("a file").path();
            if path.extension().is_some_and(|end| end == "raw") {
                let name = path.strip_prefix(folder()).expect("in it").with_extension("");
                let line = format!("\n{}: ", name.display());
                assert!(EXPECT.contains(&line), "{} is not in captures.txt", name.display());
            }
        }
    }
}

#[test]
fn pieces_of_any_size_say_the_same() {
    for (name, expect, bytes) in captures().into_iter().filter(|(_, _, bytes)| bytes.len() < 2_000)
    {
        for size in if bytes.len() < 1_200 { [1, 61] } else { [7, 1_448] } {
            let cuts = (size..bytes.len()).step_by(size);
            if let Err(wrong) = check(name, expect, &row(&bytes, cuts)) {
                panic!("in pieces of {size}: {wrong}");
            }
        }
    }
}

#[test]
fn a_response_cut_short_anywhere_is_never_a_whole_answer() {
    for (name, _, bytes) in captures() {
        if bytes.len() > 2_500 || !bytes.windows(6).any(|word| word == b"[DONE]") {
            continue;
        }
        let finish = bytes.windows(18).position(|word| word == br#""finish_reason":"l"#);
        let whole = row(&bytes, []).chunks;
        for end in 0..bytes.len() {
            let row = row(&bytes[..end], []);
            match row.outcome {
                Outcome::Connect => assert!(row.http_status.is_none(), "{name} at {end}"),
                Outcome::Truncated => assert!(row.error.is_some(), "{name} at {end}"),
                outcome => {
                    assert!(outcome == Outcome::Ok || outcome == Outcome::Empty, "{name} at {end}");
                    assert!(finish.is_some_and(|finish| end > finish), "{name} at {end}: {row:?}");
                }
            }
            assert!(row.chunks <= whole || row.chunks.is_none());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_cuts_say_the_same(
        which in any::<prop::sample::Index>(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        static CAPTURES: LazyLock<Vec<(&str, &str, Vec<u8>)>> = LazyLock::new(captures);
        let captures = &*CAPTURES;
        if captures.is_empty() {
            return Ok(());
        }
        let (name, expect, bytes) = &captures[which.index(captures.len())];
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        cuts.sort_unstable();
        if let Err(wrong) = check(name, expect, &row(bytes, cuts.iter().copied())) {
            prop_assert!(false, "cut at {cuts:?}: {wrong}");
        }
    }
}
