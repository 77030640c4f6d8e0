//! Pages as they look, from runs known beforehand.

use super::*;
use crate::metrics::{Metrics, Window};
use crate::record::{Kind, Row, StreamRecord, Usage};

fn answer(i: u64, tokens: u64, usage: Option<u64>) -> StreamRecord {
    let due = Nanos::from_millis(100 * i);
    let mut record = StreamRecord {
        due,
        sent: Some(due + Nanos(20_000 + i)),
        http_status: Some(200),
        outcome: Outcome::Ok,
        input_tok_asked: Some(1_000),
        output_tok_asked: Some(10),
        usage: usage.map(|n| Usage {
            input_tok: Some(1_003),
            output_tok: Some(n),
            ..Usage::default()
        }),
        ..StreamRecord::default()
    };
    for k in 0..tokens {
        record.tokens.push(due + Nanos::from_millis(80 + i % 7 + 25 * k), Kind::Content, None);
    }
    record.first_answer = record.tokens.first();
    record.close = record.tokens.last();
    record
}

fn page(warmup: Nanos, records: &[StreamRecord]) -> String {
    let mut metrics = Metrics::new(Window { warmup, last_due: None });
    for record in records {
        metrics.add(&Row::of(record, warmup), record);
    }
    let facts = RunFacts {
        name: "chat".into(),
        target: "http://127.0.0.1:8000".into(),
        model: Some("tiny".into()),
        folder: Some("results/chat-20261130T120000Z".into()),
        ..RunFacts::default()
    };
    render(&metrics.finish(), &facts, false)
}

#[test]
fn a_good_run() {
    let mut records: Vec<StreamRecord> = (0..400).map(|i| answer(i, 10, Some(10))).collect();
    records[50].outcome = Outcome::Timeout;
    records[60].outcome = Outcome::Http(503);
    let wanted = "\
chat → http://127.0.0.1:8000 (tiny)
requests   400 · 398 ok · 1 http_503 · 1 timeout
errors     0.5% of the 380 due in the window (20 were warm-up)
tokens     input 400,000 asked, 401,200 got · output 4,000 asked, 4,000 got
rate       offered 10.03 req/s · completed 9.95 req/s
output     99.47 tok/s in the window · 98.99 tok/s over the whole run
wasted     0.528 tok/s in the window, on failed requests
window     37.9 s measured by due time, after 2.0 s of warm-up · drain 0.3 s

latency, ms                p50       p90       p99       max          n    cut
TTFT from due            83.00     86.00     86.00     86.00        379
TTFT from sent           82.98     85.98     85.98     85.98        379
TPOT                     25.00     25.00     25.00     25.00        378      1
ITL                      25.00     25.00     25.00     25.00      3,411      1
chunk gap                25.00     25.00     25.00     25.00      3,411      1
E2E from due             308.0     311.0     311.0     311.0        378      1
lag, sent − due          0.020     0.020     0.020     0.020        380
results    results/chat-20261130T120000Z
";
    assert_eq!(page(Nanos::from_secs(2), &records), wanted);
}

#[test]
fn a_poor_run_says_what_is_missing() {
    let mut records: Vec<StreamRecord> = (0..12).map(|i| answer(i, 9, None)).collect();
    for cut in &mut records[2..9] {
        *cut = StreamRecord { sent: None, outcome: Outcome::Unsent, ..answer(cut.row, 0, None) };
    }
    let text = page(Nanos::ZERO, &records);
    for wanted in [
        "requests   12 · 5 ok · 7 unsent\n",
        "input 12,000 asked, not counted by the server · output 120 asked, 45 got\n",
        "no warm-up",
        "TTFT from due              cut         –         –     84.00          5      7\n",
        "– too few values to bound it; needed: p90 36, p99 368\n",
        "cut: the figure falls on a request that was ended",
        "warning: 7 requests fell due and were never sent: this client's own doing\n",
        "note: 5 answers came without a token count",
        "token_source events",
        "chunk gap only, no ITL",
    ] {
        assert!(text.contains(wanted), "{wanted:?} is not in\n{text}");
    }
    assert!(!text.contains("\nITL"), "{text}");
}

#[test]
fn lengths_other_than_asked_are_warned_of() {
    let run =
        |tokens| page(Nanos::ZERO, &[answer(0, tokens, Some(tokens)), answer(1, 10, Some(10))]);
    let short = run(8);
    assert!(
        short.contains("answers are 10.0% shorter than asked for (18 of 20 tokens)"),
        "{short}"
    );
    assert!(short.contains("--ignore-eos"), "{short}");
    assert!(run(13).contains("15.0% longer"));
    assert!(!run(10).contains("answers are"));
    let mut long_prompt = answer(0, 10, Some(10));
    long_prompt.input_tok_asked = Some(900);
    assert!(page(Nanos::ZERO, &[long_prompt]).contains("prompts are 11.4% longer than asked for"));
}

#[test]
fn reasoning_late_sends_and_interrupts_show() {
    let mut record = answer(3, 10, Some(10));
    record.first_answer = record.tokens.last();
    record.sent = Some(record.due + Nanos::from_millis(7));
    let text = page(Nanos::ZERO, &[record.clone()]);
    assert!(text.contains("TTFO from due"), "{text}");
    assert!(text.contains("warning: requests left 7.0 ms late (max): this client's own"), "{text}");

    let mut metrics = Metrics::new(Window::default());
    metrics.add(&Row::of(&record, Nanos::ZERO), &record);
    let facts = RunFacts { interrupted: true, notices: vec!["b".into()], ..RunFacts::default() };
    let summary = metrics.finish();
    let (plain, colored) = (render(&summary, &facts, false), render(&summary, &facts, true));
    assert!(
        plain.contains("interrupted: these are partial results") && plain.contains("note: b\n")
    );
    let mut stripped = colored.clone();
    for code in [BOLD, RED, YELLOW, "0"] {
        stripped = stripped.replace(&format!("\x1b[{code}m"), "");
    }
    assert!(colored.contains('\x1b') && !plain.contains('\x1b'));
    assert_eq!(stripped, plain);
}

#[test]
fn an_empty_run_has_a_page_too() {
    let text = page(Nanos::ZERO, &[]);
    assert!(text.contains("requests   0 · 0 ok\nerrors     –\n"), "{text}");
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
}

#[test]
fn cache_hits_that_nobody_asked_for_are_warned_of() {
    let told = |cached_tok: u64, each_tok: Option<u32>| {
        let mut record = answer(0, 10, Some(10));
        record.usage = record.usage.map(|usage| Usage { cached_tok: Some(cached_tok), ..usage });
        let mut metrics = Metrics::new(Window { warmup: Nanos::ZERO, last_due: None });
        metrics.add(&Row::of(&record, Nanos::ZERO), &record);
        let facts = RunFacts { cache_unasked_tok: each_tok, ..RunFacts::default() };
        render(&metrics.finish(), &facts, false)
    };
    let page = told(530, Some(30));
    assert!(page.contains("warning: 500 prompt tokens (49.9%) came from"), "{page}");
    assert!(page.contains("--salt run"), "{page}");
    for (cached_tok, each_tok) in [(30, Some(30)), (0, Some(0)), (530, None)] {
        let page = told(cached_tok, each_tok);
        assert!(!page.contains("warning:"), "{page}");
        assert_eq!(page.contains("prefix cache"), cached_tok > 0, "{page}");
    }
}

#[test]
fn prompts_of_a_file_ask_for_no_length() {
    let mut record = answer(0, 10, Some(10));
    record.input_tok_asked = None;
    let page = page(Nanos::ZERO, &[record]);
    assert!(page.contains("tokens     input 1,003 got · output"), "{page}");
    assert!(!page.contains("prompts are"), "{page}");
}

#[test]
fn a_prompt_of_another_length_names_the_remedy() {
    let mut record = answer(0, 10, Some(10));
    record.input_tok_asked = Some(900);
    let mut metrics = Metrics::new(Window { warmup: Nanos::ZERO, last_due: None });
    metrics.add(&Row::of(&record, Nanos::ZERO), &record);
    let facts = RunFacts { input_remedy: Some("do this".into()), ..RunFacts::default() };
    let page = render(&metrics.finish(), &facts, false);
    assert!(page.contains("(1,003 tokens, 900 asked): do this\n"), "{page}");
}

/// Answers of two minutes in a window of three look like a server that cannot keep up.
#[test]
fn a_window_that_is_short_beside_an_answer_is_warned_of() {
    let warned = |rows: u64, warmup: Nanos| {
        let records: Vec<StreamRecord> = (0..rows).map(|i| answer(i, 10, Some(10))).collect();
        page(warmup, &records)
    };
    // An answer takes 308 ms, and rows are 100 ms apart.
    let short = warned(9, Nanos::ZERO);
    assert!(
        short.contains("window of 0.8 s is short beside an answer (E2E p50 307.0 ms)"),
        "{short}"
    );
    assert!(short.contains("--duration") && short.contains("--limit"), "{short}");
    let few = warned(3, Nanos::ZERO);
    assert!(few.contains("short beside an answer (E2E mean 306.0 ms)"), "{few}");
    for long in [warned(18, Nanos::ZERO), warned(12, Nanos::from_millis(400))] {
        assert!(!long.contains("short beside"), "{long}");
    }
}

/// Fewer rows than a closed loop has slots: figures without a window say why they are missing.
#[test]
fn rates_without_a_window_say_why_there_are_none() {
    let at_once: Vec<StreamRecord> = (0..5).map(|_| answer(0, 10, Some(10))).collect();
    let text = page(Nanos::ZERO, &at_once);
    assert!(text.contains("offered – · completed –"), "{text}");
    assert!(text.contains("note: all 5 measured requests were due at one instant"), "{text}");
    assert!(text.contains("--concurrency") && text.contains("--limit"), "{text}");
    let text = page(Nanos::from_secs(9), &at_once);
    assert!(text.contains("note: the warm-up of 9.0 s took all requests"), "{text}");
    let one = page(Nanos::ZERO, &at_once[..1]);
    assert!(one.contains("note: a single request makes no window"), "{one}");
}
