//! What a client makes of every fault of the simulated server: one request per fault, in virtual time,
//! so that times are exact. Each is one POST, by the server's own log.

use underfire::client::RequestHead;
use underfire::client::Timeouts;
use underfire::client::dialect::Api;
use underfire::lab::{self, Setup};
use underfire::record::{Outcome, Row, TokenSource};
use underfire::replay::drain::Drain;
use underfire::schedule::Planned;
use underfire::sim::{self, FaultPlan};
use underfire::trace::Request;
use underfire::units::Nanos;

/// First token at 200 ms, then one every 50 ms.
pub(crate) fn fixed(faults: &[&str]) -> sim::Settings {
    sim::Settings {
        prefill_base: Nanos::from_millis(200),
        prefill_per_tok: Nanos::ZERO,
        step_base: Nanos::from_millis(50),
        step_per_stream: Nanos::ZERO,
        jitter: 0.0,
        faults: FaultPlan::parse(faults).expect("rules"),
        ..sim::Settings::default()
    }
}

/// So many rows, `gap_ms` apart, each 5 tokens in and 6 out.
pub(crate) fn plan(count: u64, gap_ms: u64) -> impl Iterator<Item = Planned> {
    (0..count).map(move |row| Planned {
        index: row,
        due: Some(Nanos::from_millis(row * gap_ms)),
        request: Request { row, input_tok: 5, output_tok: 6, ..Request::default() },
    })
}

/// One request under these faults; every row must be one POST of the server's log.
fn one(faults: &[&str]) -> Row {
    one_with(faults, |_| ())
}

fn one_with(faults: &[&str], change: impl FnOnce(&mut Setup)) -> Row {
    let mut setup = Setup::chat(fixed(faults));
    change(&mut setup);
    let outcome = lab::replay(plan(1, 0), &setup).expect("a run that ends");
    assert_eq!(outcome.rows.len(), 1, "{faults:?}");
    assert_eq!(outcome.truth.len(), 1, "one POST under {faults:?}: {:#?}", outcome.truth);
    assert_eq!(outcome.truth[0].fault, faults.join("+"));
    outcome.rows.into_iter().next().expect("a row")
}

#[expect(clippy::unnecessary_wraps, reason = "cells of a row are optional")]
fn ms(at: u64) -> Option<Nanos> {
    Some(Nanos::from_millis(at))
}

/// A row in one line: outcome, status, tokens and their source, chunks, finish, then TTFT, longest
/// gap, last token and end of the stream in ms.
fn said(row: &Row) -> String {
    let number = |n: Option<u64>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
    let span =
        |at: Option<Nanos>| at.map_or_else(|| "-".to_owned(), |at| at.as_millis_f64().to_string());
    let source = match row.token_source {
        None => "-",
        Some(TokenSource::Usage) => "usage",
        Some(TokenSource::Running) => "running",
        Some(TokenSource::Tokenizer) => "tokenizer",
        Some(TokenSource::Events) => "events",
    };
    format!(
        "{} {} | {} {source} in {} | {} | {} {} {} {}",
        row.outcome,
        number(row.http_status.map(u64::from)),
        number(row.output_tok),
        number(row.chunks),
        row.finish_reason.as_deref().unwrap_or("-"),
        span(row.ttft),
        span(row.gap_max),
        span(row.e2e),
        span(row.close),
    )
}

/// Fault, the row, and words that its `error` must have.
const TABLE: &[(&str, &str, &str)] = &[
    // Faults before a stream. A time is that of the answer, and nothing is a token.
    ("refuse", "connect - | - - in - | - | - - - 0", "closed before a response"),
    ("hangup=close", "connect - | - - in - | - | - - - 0", "closed before a response"),
    ("status=429", "http_429 429 | - - in - | - | - - - 0", "refused on purpose with status 429"),
    ("status=503", "http_503 503 | - - in - | - | - - - 0", "refused on purpose with status 503"),
    ("status=500", "http_500 500 | - - in - | - | - - - 0", "refused on purpose with status 500"),
    ("redirect=302", "http_302 302 | - - in - | - | - - - 0", "moved on purpose"),
    ("redirect=307", "http_307 307 | - - in - | - | - - - 0", "/v1/chat/completions"),
    ("json", "stream_error 200 | 0 events in 0 | - | - - - 450", "got one JSON body"),
    // An error inside a 200: what came before it stands.
    (
        "error=object",
        "stream_error 200 | 0 events in 0 | - | - - - 0",
        "the engine died on purpose",
    ),
    (
        "error=string",
        "stream_error 200 | 0 events in 0 | - | - - - 0",
        "the engine died on purpose",
    ),
    ("error=event", "stream_error 200 | 0 events in 0 | - | - - - 0", "the engine died on purpose"),
    ("error=field", "stream_error 200 | 0 events in 0 | - | - - - 0", "the engine died on purpose"),
    // A line of no field is no event, and the `[DONE]` behind it does not make it good.
    ("error=bare", "stream_error 200 | 0 events in 0 | - | - - - 0", "the engine died on purpose"),
    ("error=object,3", "stream_error 200 | 3 events in 3 | - | 200 50 300 300", "died on purpose"),
    ("error=string,3", "stream_error 200 | 3 events in 3 | - | 200 50 300 300", "died on purpose"),
    ("error=event,3", "stream_error 200 | 3 events in 3 | - | 200 50 300 300", "died on purpose"),
    ("error=field,3", "stream_error 200 | 3 events in 3 | - | 200 50 300 300", "died on purpose"),
    ("error=bare,3", "stream_error 200 | 3 events in 3 | - | 200 50 300 300", "died on purpose"),
    // A stream that ends too early.
    ("cut=end", "truncated 200 | 1 events in 1 | - | 200 - 200 200", "neither a finish_reason nor"),
    ("cut=end,3", "truncated 200 | 3 events in 3 | - | 200 50 300 300", "neither a finish_reason"),
    ("cut=close,3", "truncated 200 | 3 events in 3 | - | 200 50 300 300", "connection broke"),
    ("cut=close,0", "truncated 200 | 0 events in 0 | - | - - - 0", "connection broke"),
    ("cut=end,0", "truncated 200 | 0 events in 0 | - | - - - 0", "neither a finish_reason nor"),
    // A whole answer with something missing is a whole answer as long as one end is there.
    ("no-done", "ok 200 | 6 usage in 6 | length | 200 50 450 450", ""),
    ("no-finish", "ok 200 | 6 usage in 6 | - | 200 50 450 450", ""),
    ("no-usage", "ok 200 | 6 events in 6 | length | 200 50 450 450", ""),
    ("open", "ok 200 | 6 usage in 6 | length | 200 50 450 450", ""),
    ("open=bare", "ok 200 | 6 usage in 6 | length | 200 50 450 450", ""),
    // All is there but the end, and a server that holds its streams open is not waited for.
    ("open=mute", "ok 200 | 6 usage in 6 | length | 200 50 450 10450", "neither [DONE] nor an end"),
    ("empty", "empty 200 | 0 usage in 0 | stop | - - - 450", "without a token"),
    // Time.
    ("headers=2s", "ok 200 | 6 usage in 6 | length | 2000 0 2000 2000", ""),
    ("stall=2s", "ok 200 | 6 usage in 6 | length | 200 2000 2200 2200", ""),
    ("stall=2s,3", "ok 200 | 6 usage in 6 | length | 200 2000 2300 2300", ""),
    // The usage after the last token is no token: the request's last token stays where it was.
    ("late-usage=1s", "ok 200 | 6 usage in 6 | length | 200 50 450 1450", ""),
    // Form: none of these changes anything.
    ("bytes", "ok 200 | 6 usage in 6 | length | 200 50 450 450", ""),
    ("utf8", "ok 200 | 6 usage in 6 | length | 200 50 450 450", ""),
    ("crlf", "ok 200 | 6 usage in 6 | length | 200 50 450 450", ""),
    ("cr", "ok 200 | 6 usage in 6 | length | 200 50 450 450", ""),
    ("bom", "ok 200 | 6 usage in 6 | length | 200 50 450 450", ""),
    ("comments", "ok 200 | 6 usage in 6 | length | 200 50 450 450", ""),
    ("no-space", "ok 200 | 6 usage in 6 | length | 200 50 450 450", ""),
    ("empty-choices", "ok 200 | 6 usage in 6 | length | 200 50 450 450", ""),
    ("early-role", "ok 200 | 6 usage in 6 | length | 200 50 450 450", ""),
    ("running-usage", "ok 200 | 6 usage in 6 | length | 200 50 450 450", ""),
    ("long-line=2000000", "ok 200 | 6 usage in 6 | length | 200 50 450 450", ""),
    ("reasoning", "ok 200 | 6 usage in 6 | length | 200 50 450 450", ""),
    ("reasoning-content", "ok 200 | 6 usage in 6 | length | 200 50 450 450", ""),
    ("tools", "ok 200 | 6 usage in 6 | tool_calls | 200 50 450 450", ""),
    ("idle=1s", "ok 200 | 6 usage in 6 | length | 200 50 450 450", ""),
    // Tokens come due at 200, 250, … 450; the fourth with the first event, the rest with the second.
    ("group=4", "ok 200 | 6 usage in 2 | length | 350 100 450 450", ""),
    // Identity was asked for. What cannot be read is said.
    ("gzip", "stream_error 200 | 0 events in 0 | - | - - - 0", "content-encoding: gzip"),
];

#[test]
fn every_fault_has_its_row() {
    let mut wrong = Vec::new();
    let both = TABLE.iter().flat_map(|line| [(Api::Chat, line), (Api::Completions, line)]);
    for (api, (fault, expect, error)) in both {
        let row = one_with(&[fault], |setup| {
            setup.client.head = RequestHead::in_memory(api.path());
            setup.bodies.api = api;
        });
        let got = said(&row);
        if got != *expect {
            wrong.push(format!(
                "{api} {fault}\n  expected {expect}\n  got      {got} {:?}",
                row.error
            ));
        }
        match (&row.error, *error) {
            (None, "") => {}
            (Some(text), part) if !part.is_empty() && text.contains(part) => {}
            (text, part) => wrong.push(format!("{fault}: error {text:?}, expected `{part}`")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn early_events_are_no_tokens() {
    let headers_first_and_token = |fault: &str| {
        let row = one(&[fault]);
        (row.headers, row.first_event, row.ttft)
    };
    // A comment is no event; the role and a chunk without choices are events, and no tokens.
    assert_eq!(headers_first_and_token("comments"), (ms(0), ms(200), ms(200)));
    assert_eq!(headers_first_and_token("empty-choices"), (ms(0), ms(0), ms(200)));
    assert_eq!(headers_first_and_token("early-role"), (ms(0), ms(0), ms(200)));
    assert_eq!(headers_first_and_token("headers=2s"), (ms(2000), ms(2000), ms(2000)));
}

#[test]
fn reasoning_counts_as_tokens_and_not_as_answer() {
    for key in ["reasoning", "reasoning-content"] {
        let row = one(&[&format!("{key}=4")]);
        assert_eq!((row.ttft, row.ttfo, row.reasoning_tok), (ms(200), ms(400), Some(4)), "{key}");
        let row = one(&[key]);
        assert_eq!((row.ttft, row.ttfo, row.reasoning_tok), (ms(200), None, Some(6)), "{key}");
        assert_eq!(row.outcome, Outcome::Ok, "a budget spent on thinking is an answer");
    }
    let row = one(&["tools"]);
    assert_eq!((row.ttft, row.ttfo, row.reasoning_tok), (ms(200), ms(200), None));
}

#[test]
fn several_tokens_a_chunk_are_told_from_chunks() {
    // Six tokens in two chunks at 350 and 450 ms.
    let row = one(&["group=4"]);
    assert_eq!((row.tpot, row.gap_p50), (Some(Nanos(20_000_000)), ms(100)), "100 ms over 6 − 1");
    let row = one(&["group=4", "running-usage"]);
    assert_eq!(row.tpot, ms(50), "the first chunk is known to bear four");
    // A count in mid-stream stands when the stream breaks.
    let row = one(&["running-usage", "group=2", "cut=close,4"]);
    assert_eq!(said(&row), "truncated 200 | 4 running in 2 | - | 250 100 350 350");
    // With no usage at the end the last running count is the final one.
    let row = one(&["running-usage", "no-usage", "group=4"]);
    assert_eq!(said(&row), "ok 200 | 6 usage in 2 | length | 350 100 450 450");
}

#[test]
fn an_answer_in_one_event_has_a_ttft_and_no_gaps() {
    let row = one(&["group=6", "running-usage", "no-usage"]);
    assert_eq!(said(&row), "ok 200 | 6 usage in 1 | length | 450 - 450 450");
    assert_eq!((row.tpot, row.gap_p50, row.stall), (None, None, ms(0)));
}

#[test]
fn faults_of_form_change_nothing_together_either() {
    let form = ["bom", "comments", "no-space", "empty-choices", "utf8", "long-line=5000"];
    for lines in [&["crlf"][..], &["cr"], &["bytes"], &["crlf", "bytes"], &["cr", "bytes"]] {
        for end in [&[][..], &["open=bare"], &["no-done"]] {
            let faults = [&form[..], lines, end].concat();
            let row = one(&faults);
            let expect = "ok 200 | 6 usage in 6 | length | 200 50 450 450";
            assert_eq!(said(&row), expect, "{faults:?}: {:?}", row.error);
        }
    }
}

#[test]
fn a_whole_answer_that_is_held_open_is_cut_where_the_run_ends_and_not_before_all_is_there() {
    let after = |s: u64| move |setup: &mut Setup| setup.drain = Drain::After(Nanos::from_secs(s));
    let row = one_with(&["open=mute"], after(2));
    assert_eq!(said(&row), "incomplete 200 | 6 usage in 6 | length | 200 50 450 2000");
    let error = row.error.expect("words");
    assert!(error.contains("after its finish_reason and usage, before [DONE]"), "{error}");
    // A usage that is late is waited for, and so is the end where none was told.
    let row = one_with(&["open=mute", "late-usage=30s"], after(50));
    assert_eq!(said(&row), "ok 200 | 6 usage in 6 | length | 200 50 450 40450");
    let row = one_with(&["open=mute", "no-usage"], after(50));
    assert_eq!(said(&row), "incomplete 200 | 6 events in 6 | length | 200 50 450 50000");
}

#[test]
fn a_stream_that_lacks_both_ends_is_truncated() {
    let row = one(&["no-done", "no-finish"]);
    assert_eq!(said(&row), "truncated 200 | 6 usage in 6 | - | 200 50 450 450");
}

#[test]
fn too_long_a_line_is_an_error_that_names_the_limit() {
    let row = one(&["long-line=16777216"]);
    assert_eq!(row.outcome.to_string(), "stream_error");
    let error = row.error.expect("a reason");
    assert!(error.contains("16777216 bytes (MAX_EVENT_BYTES)"), "{error}");
}

#[test]
fn an_answer_shorter_than_demanded_is_short() {
    let row = one_with(&["no-usage"], |setup| {
        setup.client.ignore_eos = true;
        setup.sim.mean_output_tok = Some(1.0);
    });
    // Without a count nothing is claimed of how many tokens there were.
    assert_eq!(said(&row), "ok 200 | 1 events in 1 | stop | 200 - 200 200");
    let row = one_with(&["running-usage"], |setup| {
        setup.client.ignore_eos = true;
        setup.sim.mean_output_tok = Some(1.0);
    });
    assert_eq!(said(&row), "short 200 | 1 usage in 1 | stop | 200 - 200 200");
    assert_eq!(row.error.as_deref(), Some("asked for 6 tokens, got 1"));
}

#[test]
fn each_time_limit_has_its_own_words() {
    let second = Nanos::from_secs(1);
    let check = |faults: &[&str], at_ms: u64, words: &str, set: fn(&mut Timeouts)| {
        let row = one_with(faults, |setup| set(&mut setup.client.timeouts));
        assert_eq!((row.outcome, row.close), (Outcome::Timeout, ms(at_ms)), "{words}");
        let error = row.error.expect("words");
        assert!(error.contains(words), "{error}, not {words}");
    };
    check(&["headers=1h"], 1_000, "no token within 1 s (--first-token-timeout)", |t| {
        t.first_token = Some(Nanos::from_secs(1));
    });
    check(&["headers=1h"], 1_000, "given up before the response began", |t| {
        t.first_token = Some(Nanos::from_secs(1));
    });
    check(&["empty-choices"], 100, "no token within 0.1 s (--first-token-timeout)", |t| {
        t.first_token = Some(Nanos::from_millis(100));
    });
    check(&["stall=1h,3"], 1_300, "nothing received for 1 s (--idle-timeout)", |t| {
        t.idle = Some(Nanos::from_secs(1));
    });
    check(&["stall=1h,3"], 2_000, "not ended within 2 s (--timeout)", |t| {
        t.total = Some(Nanos::from_secs(2));
    });
    check(&["headers=1h"], 2_000, "not ended within 2 s (--timeout)", |t| {
        t.total = Some(Nanos::from_secs(2));
    });
    // A limit that is not passed cuts nothing.
    let row = one_with(&["stall=999ms,3"], |setup| setup.client.timeouts.idle = Some(second));
    assert_eq!(row.outcome, Outcome::Ok);
}

#[test]
fn faults_fall_on_their_rows_only() {
    let faults = ["status=429@rows=3", "cut=end,2@rows=5-6", "error=string@rows=8"];
    let outcome = lab::replay(plan(12, 1_000), &Setup::chat(fixed(&faults))).expect("a run");
    let mut rows = outcome.rows;
    rows.sort_by_key(|row| row.row);
    let words: Vec<String> = rows.iter().map(|row| row.outcome.to_string()).collect();
    let mut expect = ["ok"; 12];
    (expect[3], expect[5], expect[6]) = ("http_429", "truncated", "truncated");
    expect[8] = "stream_error";
    assert_eq!(words, expect);
    assert_eq!(outcome.truth.len(), 12);
}

#[test]
fn a_share_of_failures_is_that_share_of_the_rows_and_one_post_each() {
    let faults = ["status=503@rate=10%", "cut=close,2@rate=10%", "hangup=close@rate=5%"];
    let outcome = lab::replay(plan(2_000, 10), &Setup::chat(fixed(&faults))).expect("a run");
    assert_eq!((outcome.rows.len(), outcome.truth.len()), (2_000, 2_000));
    let failed = outcome.rows.iter().filter(|row| row.outcome != Outcome::Ok).count();
    let hit = outcome.truth.iter().filter(|row| !row.fault.is_empty()).count();
    assert_eq!(failed, hit);
    assert!((350..560).contains(&hit), "{hit} of an expected 461");
}

#[test]
fn an_idle_connection_that_the_server_closes_costs_no_row() {
    // The answer takes 450 ms, so the connection is idle for 550 ms before each next row: kept,
    // closed in between, and closed at the very instant.
    for (fault, reused) in [("idle=1s", 39), ("idle=100ms", 0), ("idle=550ms", 0)] {
        let outcome = lab::replay(plan(40, 1_000), &Setup::chat(fixed(&[fault]))).expect("a run");
        assert_eq!(outcome.truth.len(), 40, "40 POSTs under {fault}");
        let failed = outcome.rows.iter().filter(|row| row.outcome != Outcome::Ok).count();
        assert!(failed <= 1, "{failed} failed under {fault}: {:#?}", outcome.rows);
        let again = outcome.rows.iter().filter(|row| row.conn_reused == Some(true)).count();
        assert_eq!(again, reused, "{fault}");
    }
}

#[test]
fn nothing_holds_back_rows_while_a_server_stalls() {
    // 300 rows at once; the server says nothing for ten seconds, and 200 ms later the first tokens come.
    let outcome = lab::replay(plan(300, 0), &Setup::chat(fixed(&["headers=10s"]))).expect("a run");
    assert_eq!(outcome.truth.len(), 300);
    assert!(outcome.truth.iter().all(|row| row.arrival == Nanos::ZERO), "300 in flight at once");
    for row in &outcome.rows {
        assert_eq!((row.outcome, row.lag, row.ttft), (Outcome::Ok, ms(0), ms(10_000)), "from due");
    }
}

#[test]
fn a_reader_waits_through_a_stall_and_not_through_slow_steps() {
    // Steps of 50 ms feed a reader of 20 tok/s exactly; one of 10 tok/s never waits.
    let row = one(&[]);
    assert_eq!((row.stall, row.stalls), (ms(0), Some(0)));
    // Three tokens last him to 350 ms; the next come 2 s after the third, at 2,300.
    let row = one(&["stall=2s,3"]);
    assert_eq!((row.stall, row.stalls), (ms(1_950), Some(1)));
    let row = one(&["status=500"]);
    assert_eq!((row.stall, row.stalls), (None, None));
}
